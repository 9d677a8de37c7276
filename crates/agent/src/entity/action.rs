//! An entity whose versions are runs of an action: each is begun at most once, and is in the ledger before it begins.

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::action::{ActionStep, next};
use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::local::plan::IdleReason;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::name::ActionName;
use bellwether_core::words::version::Version;

use super::rest::NextStep;
use super::task::EntityTask;
use crate::apply::exec::{CommandExit, run};
use crate::config::recipe::ActionRecipe;

impl EntityTask {
    /// Looks once at what was told of an action, and does the one thing that follows.
    pub(super) async fn act(&mut self, name: &ActionName, action: &ActionRecipe) -> NextStep {
        match next(&self.entry.memory, self.paused.is_some()) {
            ActionStep::Run(version) => self.run_once(name, action, &version).await,
            ActionStep::Acknowledge(version) => {
                tracing::info!(entity = %self.name, %version, "is taken as run; nothing is run");
                self.entry.memory.acknowledges(&version);
                NextStep::Look
            }
            ActionStep::Rest(IdleReason::Paused) => self.rest_paused(None).await,
            ActionStep::Rest(
                IdleReason::UpToDate
                | IdleReason::NoAssignment
                | IdleReason::BackingOff
                | IdleReason::AttemptsExhausted,
            ) => {
                self.say(&AgentActivity::Idle);
                self.rest(None).await
            }
        }
    }

    async fn run_once(&mut self, name: &ActionName, action: &ActionRecipe, version: &Version) -> NextStep {
        self.entry.memory.runs(version);
        let run_name = self.next_run();
        self.entry.run = Some(run_name.clone());
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        tracing::info!(entity = %self.name, %version, action = %name, "runs");
        self.say(&AgentActivity::Step(ApplyProgress::Dynamic));
        self.recent.clear();
        let (facts, mut log) = (self.facts(version, run_name.clone()), self.log());
        let token = self.context.tasks.token();
        // An agent that ends here leaves the run in its ledger: the next one says that it was cut short.
        let ended = tokio::select! {
            ended = run(&action.command, &facts, action.timeout.to_duration(), Some(&mut log)) => ended,
            () = token.cancelled() => return NextStep::Stop,
        };
        let outcome = match ended.exit {
            CommandExit::Success => StepOutcome::Done,
            exit @ (CommandExit::NotYet
            | CommandExit::Code(_)
            | CommandExit::Signal(_)
            | CommandExit::TimedOut(_)
            | CommandExit::NotStarted(_)) => {
                let summary = format!("action {name}: {exit}");
                let (exit_code, tail) = (exit.code(), ended.tail);
                let evidence = Evidence { summary, exit_code, tail, failing_checks: Vec::new() };
                StepOutcome::Failed(evidence)
            }
        };
        self.entry.run = None;
        self.log_outcome(version, ApplyProgress::Dynamic, &outcome);
        self.keep_log(ApplyProgress::Dynamic, version, (&run_name, &outcome)).await;
        let (now, seed) = (self.now(), self.seed());
        self.entry.memory.finished(outcome, now, seed);
        NextStep::Look
    }
}
