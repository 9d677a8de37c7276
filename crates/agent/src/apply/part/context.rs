//! What the runners of one part share: the facts, the log and the deadline.

use std::time::Duration;

use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_rt::tasks::Tasks;
use tokio::time::Instant;

use crate::apply::CommandFacts;
use crate::apply::exec::{self, CommandExit, CommandResult};
use crate::apply::log::EntityLog;
use crate::config::recipe::Command;

/// What the runners of a part share.
#[derive(Debug)]
pub(crate) struct PartContext<'a> {
    pub(crate) facts: &'a CommandFacts,
    pub(crate) log: &'a mut EntityLog,
    pub(super) tasks: &'a Tasks,
    pub(super) limit: Duration,
    pub(super) ends: Instant,
}

impl<'a> PartContext<'a> {
    /// A job that may take as long as `limit`, from now on.
    pub(crate) fn new(
        facts: &'a CommandFacts,
        limit: Duration,
        log: &'a mut EntityLog,
        tasks: &'a Tasks,
    ) -> Self {
        Self { facts, log, tasks, limit, ends: Instant::now() + limit }
    }

    pub(super) fn left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    pub(super) async fn run(&mut self, command: &Command) -> CommandResult {
        let left = self.left();
        exec::run(command, self.facts, left, Some(self.log)).await
    }

    /// How a command ended, in words. The limit is the part's, not what was left of it for this command.
    pub(super) fn words(&self, exit: &CommandExit) -> String {
        match exit {
            CommandExit::TimedOut(_) => format!("killed, because the part took longer than {:?}", self.limit),
            CommandExit::Success
            | CommandExit::NotYet
            | CommandExit::Code(_)
            | CommandExit::Signal(_)
            | CommandExit::NotStarted(_) => exit.to_string(),
        }
    }

    /// Runs one command: exit code 0 is done, 75 not yet, anything else failed.
    pub(super) async fn exec(&mut self, which: &str, command: &Command) -> StepOutcome {
        let ended = self.run(command).await;
        let summary = format!("{which}: {}", self.words(&ended.exit));
        let evidence =
            Evidence { summary, exit_code: ended.exit.code(), tail: ended.tail, failing_checks: Vec::new() };
        match ended.exit {
            CommandExit::Success => StepOutcome::Done,
            CommandExit::NotYet => StepOutcome::NotYet(evidence),
            CommandExit::Code(_)
            | CommandExit::Signal(_)
            | CommandExit::TimedOut(_)
            | CommandExit::NotStarted(_) => StepOutcome::Failed(evidence),
        }
    }
}
