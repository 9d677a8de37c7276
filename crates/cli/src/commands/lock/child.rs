//! The process that becomes the command of `lock run`: it ends with its guard, however that ends.

use std::os::unix::process::CommandExt;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::args::LockChild;
use crate::exit::{CommandResult, Exit, Failure};

/// The exit code of a shell when there is no such command.
const NOT_FOUND: Exit = Exit::Child(127);

/// Becomes the command, to be killed when its guard ends. The kernel guarantees that for this process,
/// even after `kill -9`; not for processes that it starts.
pub(in crate::commands) fn run(child: &LockChild) -> CommandResult {
    let set = set_parent_process_death_signal(Some(Signal::KILL));
    set.map_err(|error| Failure::ours(format!("follow the guard of the command: {error}")))?;
    // The parent may have ended before that.
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(child.parent) {
        return Err(Failure::ours("run the command: its guard has ended"));
    }
    let Some((program, arguments)) = child.command.split_first() else { return Ok(NOT_FOUND) };
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(Failure::new(NOT_FOUND, format!("run {}: {error}", program.display())))
}
