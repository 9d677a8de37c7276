//! Asking a command: exit code 0 passes, another may warn.

use std::time::Duration;

use super::failure::ProbeFailure;
use crate::apply::CommandFacts;
use crate::apply::exec::{CommandExit, probe};
use crate::config::recipe::Command;

/// Runs the command, killing its group at its end or at the limit.
pub(super) async fn ask(
    command: &Command,
    warning: Option<i32>,
    facts: &CommandFacts,
    limit: Duration,
) -> Result<Option<String>, ProbeFailure> {
    let ended = probe(command, facts, limit).await;
    let last = ended.tail.lines().next_back().unwrap_or_default();
    match ended.exit {
        CommandExit::Success => Ok(None),
        CommandExit::Code(code) if Some(code) == warning => {
            Ok(Some(if last.is_empty() { format!("exit code {code}") } else { last.to_owned() }))
        }
        exit @ (CommandExit::NotYet
        | CommandExit::Code(_)
        | CommandExit::Signal(_)
        | CommandExit::TimedOut(_)
        | CommandExit::NotStarted(_)) => {
            let message = if last.is_empty() { exit.to_string() } else { format!("{exit}: {last}") };
            Err(ProbeFailure { message, said: ended.tail })
        }
    }
}
