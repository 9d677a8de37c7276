//! Waiting: until anything may change the plan, or until the ledger can be written again.

use std::time::Duration;

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::plan::IdleReason;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::wait::sleep_or_never;

use super::task::EntityTask;
use crate::apply::process::SupervisedProcess;
use crate::check::EntityChecks;
use crate::config::recipe::RecipeKind;

/// How long to wait before the ledger is written again after a failure: a full disk is cleared by people.
pub(super) const HOLD: Duration = Duration::from_secs(2);

/// What follows a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    Observe,
    Stop,
}

impl EntityTask {
    /// Reports that the node is paused, and waits.
    pub(super) async fn rest_paused(&mut self, until: Option<Timestamp>) -> NextStep {
        let why = self.paused.as_deref().unwrap_or_default();
        self.report(&AgentActivity::Held(format!("{}: {why}", IdleReason::Paused)));
        self.rest(until).await
    }

    /// Waits for anything that may change the plan.
    pub(super) async fn rest(&mut self, until: Option<Timestamp>) -> NextStep {
        self.running_step = None;
        let token = self.context.tasks.token();
        let wait = until.map(|until| until.since(self.now()).to_duration() + Duration::from_millis(1));
        let follows = self.recipe.as_ref().is_some_and(|recipe| !recipe.follows.is_empty());
        let renders = self.recipe.as_ref().is_some_and(|recipe| matches!(recipe.kind, RecipeKind::Files(_)));
        let watches_services = self.waits_for_needs() || follows;
        let process = self.process.as_mut().filter(|process| process.ended().is_none());
        // All arms only wait; what happened is observed afterwards.
        tokio::select! {
            () = token.cancelled() => return NextStep::Stop,
            changed = self.context.orders.changed() => if changed.is_err() {
                return NextStep::Stop;
            },
            learned = self.context.snapshot.changed(), if watches_services => if learned.is_err() {
                return NextStep::Stop;
            },
            learned = self.context.live_params.changed(), if renders => if learned.is_err() {
                return NextStep::Stop;
            },
            () = checks_changed(self.checks.as_mut(), self.soak.is_asking()) => {}
            () = self.soak.advanced() => {}
            () = ended(process) => {}
            () = sleep_or_never(wait) => {}
        }
        NextStep::Observe
    }

    /// What an earlier agent left has been looked at: nothing is held because of that any more.
    pub(super) fn looked(&mut self) {
        if std::mem::take(&mut self.ledger_failed) {
            self.context.board.send_if_modified(|board| board.unrecorded.remove(&self.name).is_some());
        }
    }

    /// Reports that nothing can begin, and waits before the next attempt.
    pub(super) async fn hold(&mut self, reason: String) -> NextStep {
        if !self.ledger_failed {
            tracing::error!(entity = %self.name, "cannot {reason}; no step begins until that succeeds");
        }
        self.ledger_failed = true;
        self.running_step = None;
        let unrecorded = format!("cannot {reason}");
        self.context.board.send_if_modified(|board| {
            let before = board.unrecorded.insert(self.name.clone(), unrecorded.clone());
            before.as_ref() != Some(&unrecorded)
        });
        self.report(&AgentActivity::Held(format!("cannot {reason}")));
        let token = self.context.tasks.token();
        tokio::select! {
            () = token.cancelled() => NextStep::Stop,
            () = tokio::time::sleep(HOLD) => NextStep::Observe,
        }
    }
}

/// Waits until a verdict changes, or one passes that was asked again, if that `is_awaited`; for ever without checks.
async fn checks_changed(checks: Option<&mut EntityChecks>, is_awaited: bool) {
    match checks {
        Some(checks) if is_awaited => checks.changed_or_answered().await,
        Some(checks) => checks.changed().await,
        None => std::future::pending().await,
    }
}

/// Waits until the process ends; for ever without one.
pub(super) async fn ended(process: Option<&mut SupervisedProcess>) {
    match process {
        Some(process) => drop(process.wait().await),
        None => std::future::pending().await,
    }
}
