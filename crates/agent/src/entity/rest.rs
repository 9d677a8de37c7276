//! Waiting: until anything may change the plan, or until the ledger can be written again.

use std::time::Duration;

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::plan::IdleReason;
use bellwether_core::words::time::Timestamp;

use super::task::EntityTask;
use crate::apply::process::SupervisedProcess;
use crate::check::EntityChecks;

/// A ledger that cannot be written is tried again after this: a full disk is emptied by people.
const HOLD: Duration = Duration::from_secs(2);

/// Whether the entity's work goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    Look,
    Stop,
}

impl EntityTask {
    /// Says that a person paused the node, and waits.
    pub(super) async fn rest_paused(&mut self, until: Option<Timestamp>) -> NextStep {
        let why = self.paused.as_deref().unwrap_or_default();
        self.say(&AgentActivity::Held(format!("{}: {why}", IdleReason::Paused)));
        self.rest(until).await
    }

    /// Waits for anything that may change the plan.
    pub(super) async fn rest(&mut self, until: Option<Timestamp>) -> NextStep {
        let token = self.context.tasks.token();
        let wait = until.map(|until| until.since(self.now()).to_duration() + Duration::from_millis(1));
        let alarm = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        let follows = self.recipe.as_ref().is_some_and(|recipe| !recipe.follows.is_empty());
        let needing = self.is_needing() || follows;
        let process = self.process.as_mut().filter(|process| process.ended().is_none());
        // All arms only wait; whatever happened is looked at afterwards.
        tokio::select! {
            () = token.cancelled() => return NextStep::Stop,
            changed = self.context.orders.changed() => if changed.is_err() {
                return NextStep::Stop;
            },
            learned = self.context.snapshot.changed(), if needing => if learned.is_err() {
                return NextStep::Stop;
            },
            () = turned(self.checks.as_mut()) => {}
            () = ended(process) => {}
            () = alarm => {}
        }
        NextStep::Look
    }

    /// Says that nothing can be begun, and waits before trying again.
    pub(super) async fn hold(&mut self, reason: String) -> NextStep {
        if !self.held {
            tracing::error!(entity = %self.name, "could not {reason}; nothing is begun before it can");
        }
        self.held = true;
        self.say(&AgentActivity::Held(format!("could not {reason}")));
        let token = self.context.tasks.token();
        tokio::select! {
            () = token.cancelled() => NextStep::Stop,
            () = tokio::time::sleep(HOLD) => NextStep::Look,
        }
    }
}

/// Waits for a verdict to turn; for ever, without checks.
async fn turned(checks: Option<&mut EntityChecks>) {
    match checks {
        Some(checks) => checks.turned().await,
        None => std::future::pending().await,
    }
}

/// Waits for a process to end; for ever, without one.
pub(super) async fn ended(process: Option<&mut SupervisedProcess>) {
    match process {
        Some(process) => drop(process.wait().await),
        None => std::future::pending().await,
    }
}
