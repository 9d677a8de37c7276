//! An entity whose versions are runs of an action: each run begins at most once, and is in the ledger before it begins.

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::action::{ActionStep, next};
use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::local::plan::IdleReason;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::name::ActionName;
use bellwether_core::words::version::Version;

use super::describe::running_step;
use super::rest::NextStep;
use super::task::EntityTask;
use crate::apply::exec::{CommandExit, run};
use crate::config::recipe::ActionRecipe;

impl EntityTask {
    /// Does the one step that follows from the assignment.
    pub(super) async fn act(&mut self, name: &ActionName, action: &ActionRecipe) -> NextStep {
        match next(&self.entry.memory, self.context.ledger.id(), self.paused.is_some()) {
            ActionStep::Run(version) => match self.held_by_store(&version).await {
                Some(next) => next,
                None => self.run_once(name, action, &version).await,
            },
            ActionStep::Lose(version) => {
                tracing::warn!(entity = %self.name, %version, "the ledger was lost: it may have run before");
                let (now, seed) = (self.now(), self.seed());
                self.entry.memory.loses(&version, action.idempotent, now, seed);
                NextStep::Observe
            }
            ActionStep::Acknowledge(version) => {
                tracing::info!(entity = %self.name, %version, "acknowledged without a run");
                self.entry.memory.acknowledges(&version);
                NextStep::Observe
            }
            ActionStep::Rest(IdleReason::Paused) => self.rest_paused(None).await,
            ActionStep::Rest(reason @ IdleReason::LedgerNotRecorded) => {
                self.report(&AgentActivity::Held(reason.to_string()));
                self.rest(None).await
            }
            ActionStep::Rest(
                IdleReason::UpToDate
                | IdleReason::NoAssignment
                | IdleReason::BackingOff
                | IdleReason::AttemptsExhausted,
            ) => {
                self.report(&AgentActivity::Idle);
                self.rest(None).await
            }
        }
    }

    async fn run_once(&mut self, name: &ActionName, action: &ActionRecipe, version: &Version) -> NextStep {
        let Some(_turn) = self.turn().await else { return NextStep::Stop };
        let Some(_running) = self.context.steps.begin() else { return self.rest(None).await };
        self.entry.memory.runs(version);
        let run_name = self.next_run();
        self.entry.run = Some(run_name.clone());
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        // Before the action runs: from now on, the loss of the entry is noticed.
        if let Err(error) = self.context.ledger.mark_begun(&self.name).await {
            return self.hold(error.to_string()).await;
        }
        tracing::info!(entity = %self.name, %version, action = %name, "runs");
        let command = action.command.argv.join(" ");
        self.running_step = Some(running_step("action", command, (self.now(), action.timeout)));
        self.report(&AgentActivity::Step(ApplyProgress::Dynamic));
        self.recent.clear();
        let (facts, mut log) = (self.facts(version, run_name.clone()), self.log());
        let token = self.context.tasks.token();
        // If the agent ends here, the run is in its ledger: the next agent reports it as interrupted.
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
        (self.entry.run, self.running_step) = (None, None);
        self.log_outcome(version, ApplyProgress::Dynamic, &outcome);
        self.keep_log(ApplyProgress::Dynamic, version, &run_name, &outcome).await;
        let (now, seed) = (self.now(), self.seed());
        self.entry.memory.finished(outcome, now, seed);
        NextStep::Observe
    }
}
