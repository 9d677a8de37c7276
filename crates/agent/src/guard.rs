//! The guard of a job: a small process that is the parent of its scripts, and ends with everything they started once the agent that
//! started it has ended, or the lease of its logical node is over. It decides nothing else.
//!
//! The kernel gives it every process of the job that loses its parent, so nothing escapes it by a process group of its own. It is
//! this same program, by an argument that is looked for before anything else: it has neither a runtime nor a log.

mod descendants;
mod events;
mod keeper;
pub(crate) mod message;
mod reap;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use keeper::Keeper;

pub use descendants::{Descendants, Spared, descendants, signal};
pub use events::{Event, Events, left};
pub use reap::{Reaped, reap};

/// The argument by which the program becomes a guard.
pub const COMMAND: &str = "job-guard";

/// The exit code of a program that is not used as it is meant (`EX_USAGE`).
const MISUSED: u8 = 64;

/// Runs the guard until nothing of the job is left. Its standard input is the socket to its agent, and its standard output the
/// output of the scripts.
#[must_use]
pub fn run() -> ExitCode {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let kept = socket.and_then(Keeper::start);
    match kept {
        Ok(keeper) => {
            keeper.run();
            ExitCode::SUCCESS
        }
        // Nobody listens to it but the agent, which sees that it has ended.
        Err(_) => ExitCode::from(MISUSED),
    }
}
