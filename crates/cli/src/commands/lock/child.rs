//! The command of `lock run`, on its way to be run: it is to end with whoever holds the lock, however that ends.

use std::os::unix::process::CommandExt;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::args::LockChild;
use crate::exit::{CommandResult, Exit, Failure};

/// What a shell answers when there is no such command.
const NOT_FOUND: Exit = Exit::Child(127);

/// Becomes the command, to be killed when the process that holds the lock is gone. That is the kernel's promise, kept also
/// after kill -9, to this one process; those that it starts are its own business.
pub(in crate::commands) fn run(child: &LockChild) -> CommandResult {
    let set = set_parent_process_death_signal(Some(Signal::KILL));
    set.map_err(|error| Failure::ours(format!("end with whoever holds the lock: {error}")))?;
    // It may have ended before that.
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(child.parent) {
        return Err(Failure::ours("run the command: whoever holds the lock is gone"));
    }
    let Some((program, arguments)) = child.command.split_first() else { return Ok(NOT_FOUND) };
    let error = std::process::Command::new(program).args(arguments).exec();
    Err(Failure::new(NOT_FOUND, format!("run {}: {error}", program.display())))
}
