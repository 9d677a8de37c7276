//! The context of one part: the facts, the log and the deadline that its runners share.

use std::time::Duration;

use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_rt::observed::TimeLimit;
use bellwether_rt::tasks::Tasks;
use tokio_util::sync::CancellationToken;

use crate::apply::CommandFacts;
use crate::apply::exec::{self, CommandExit, CommandLimit, CommandResult};
use crate::apply::log::EntityLog;
use crate::config::recipe::Command;

/// The context that the runners of a part share.
#[derive(Debug)]
pub(crate) struct PartContext<'a> {
    pub(crate) facts: &'a CommandFacts,
    pub(crate) log: &'a mut EntityLog,
    pub(super) tasks: &'a Tasks,
    pub(super) limit: Duration,
    /// What is left of the limit.
    ends: TimeLimit,
    /// Cancelled once what the part does is not wanted any more.
    pub(super) stop: CancellationToken,
}

impl<'a> PartContext<'a> {
    /// A context whose deadline is `limit` of observed time from now.
    pub(crate) fn new(
        facts: &'a CommandFacts,
        limit: Duration,
        log: &'a mut EntityLog,
        tasks: &'a Tasks,
    ) -> Self {
        let stop = CancellationToken::new();
        Self { facts, log, tasks, limit, ends: TimeLimit::new(limit), stop }
    }

    /// The same, stopped once the token is cancelled.
    pub(crate) fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// The time that is left until its deadline.
    pub(crate) fn left(&mut self) -> Duration {
        self.ends.left()
    }

    /// Sleeps this long, but not beyond the deadline.
    pub(super) async fn sleep(&mut self, pause: Duration) {
        let pause = pause.min(self.left());
        self.ends.count_during(tokio::time::sleep(pause)).await;
    }

    pub(super) async fn run(&mut self, command: &Command) -> CommandResult {
        let limit = CommandLimit { deadline: self.left(), stop: self.stop.clone() };
        self.ends.count_during(exec::run(command, self.facts, limit, Some(self.log))).await
    }

    /// The exit of a command, as text. The limit is the part's, not what was left of it for this command.
    pub(super) fn words(&self, exit: &CommandExit) -> String {
        match exit {
            CommandExit::TimedOut(_) => format!("killed after the timeout of the part, {:?}", self.limit),
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
