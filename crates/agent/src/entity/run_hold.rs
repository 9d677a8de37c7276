//! The hold of a node on which a run failed, or that a person made not runnable: a run that waits for its turn does not begin. It is looked
//! at when the turn has come, so that nothing changes in between.

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::memory::RunOutcome;
use bellwether_core::local::work::runs_held;
use bellwether_rt::wait::changed_or_never;

use super::rest::NextStep;
use super::task::EntityTask;

impl EntityTask {
    /// Why this run does not begin on the node now; `None` if it may, or has begun.
    pub(super) fn held_run(&self) -> Option<String> {
        if self.stored_work.as_ref().is_some_and(|stored| stored.memory.has_begun()) {
            return None;
        }
        let order = self.context.orders.borrow().clone()?;
        runs_held(&order.content, &self.context.failed_runs.borrow())
    }

    /// Tells the other runs of this node whether this one has failed here. One that is to begin again holds them until it has its turn, so
    /// that it comes first.
    pub(crate) fn note_failed_run(&self) {
        match self.entry.memory.ran.as_ref().map(|ran| ran.outcome).filter(|_| self.is_run()) {
            Some(RunOutcome::Failed) => {
                self.context.failed_runs.send_if_modified(|failed| failed.insert(self.name.clone()));
            }
            Some(RunOutcome::Begun | RunOutcome::Retry) => {}
            // With its ledger was lost what others wait for: they are lost too.
            Some(RunOutcome::Done | RunOutcome::Lost) | None => self.holds_no_run(),
        }
    }

    /// Tells the other runs of this node that this one has not failed here, or has begun again.
    pub(super) fn holds_no_run(&self) {
        self.context.failed_runs.send_if_modified(|failed| failed.remove(&self.name));
    }

    /// Waits for what may end the hold of this run.
    pub(super) async fn rest_held(&mut self, reason: String) -> NextStep {
        self.report(&AgentActivity::Held(reason.clone()));
        let token = self.context.tasks.token();
        let (mut orders, mut failed) = (self.context.orders.clone(), self.context.failed_runs.subscribe());
        // What has changed since the reason was found.
        while self.held_run().as_ref() == Some(&reason) {
            // All arms only wait.
            tokio::select! {
                () = token.cancelled() => return NextStep::Stop,
                changed = orders.changed() => if changed.is_err() {
                    return NextStep::Stop;
                },
                () = changed_or_never(&mut failed) => {}
            }
            let order = self.context.orders.borrow().clone();
            if order.is_some_and(|order| !order.content.entities.contains_key(&self.name)) {
                break;
            }
        }
        NextStep::Observe
    }
}
