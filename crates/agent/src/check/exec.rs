//! Asking a command: exit code 0 passes.

use std::time::Duration;

use crate::apply::Facts;
use crate::apply::exec::{Exit, run};
use crate::config::recipe::Command;

/// Runs the command, killing its group at the limit.
pub(super) async fn ask(command: &Command, facts: &Facts, limit: Duration) -> Result<(), String> {
    let ended = run(command, facts, limit, None).await;
    match ended.exit {
        Exit::Done => Ok(()),
        exit @ (Exit::NotYet | Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut(_) | Exit::NotStarted(_)) => {
            let last = ended.tail.lines().next_back().unwrap_or_default();
            Err(if last.is_empty() { exit.to_string() } else { format!("{exit}: {last}") })
        }
    }
}
