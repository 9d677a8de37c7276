//! What keeps a run from beginning on this node: another that is in progress or failed here, and whoever made the node not runnable. It
//! is looked at when the turn has come, so that nothing changes in between.

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::memory::RunOutcome;
use bellwether_core::local::runs_here::RunsHere;
use bellwether_core::words::name::EntityName;
use bellwether_rt::wait::changed_or_never;

use super::rest::NextStep;
use super::task::EntityTask;

impl EntityTask {
    /// Why this run does not begin on the node now; `None` if it may, or is in progress.
    pub(super) fn held_run(&self) -> Option<String> {
        let has_begun = self.stored_work.as_ref().is_some_and(|stored| stored.has_begun());
        let order = self.context.orders.borrow().clone()?;
        self.context.runs_here.borrow().hold(&self.name, &order.content, has_begun)
    }

    /// Tells the other runs of this node, when the agent starts, of a run that has begun here and goes on.
    pub(crate) async fn recall_run(&mut self) {
        // Of one that has not begun it is not known yet whether it waits.
        if self.entry.memory.ran.is_some() {
            self.note_run();
        }
        let goes_on = |outcome| outcome == RunOutcome::Begun;
        let Some(ran) = self.entry.memory.ran.as_ref().filter(|ran| goes_on(ran.outcome)) else { return };
        // What cannot be read is told by the run itself, which does nothing until it can be.
        let stored = self.context.ledger.runs().work(&self.name).await.ok().flatten();
        if stored.is_some_and(|stored| stored.version == ran.version && stored.has_begun()) {
            self.begins_here();
        }
    }

    /// Tells the other runs of this node whether this one ended or failed here. One that is to begin again holds them until it has its turn,
    /// so that it comes first.
    pub(super) fn note_run(&self) {
        match self.entry.memory.ran.as_ref().map(|ran| ran.outcome).filter(|_| self.is_run()) {
            Some(RunOutcome::Failed) => self.tell_runs(RunsHere::fails),
            Some(RunOutcome::Begun | RunOutcome::Retry) => {}
            // With its ledger was lost what others wait for: they are lost too.
            Some(RunOutcome::Done | RunOutcome::Lost) | None => self.ends_here(),
        }
    }

    /// Tells the other runs of this node that this one waits to begin.
    pub(super) fn waits_here(&self) {
        self.tell_runs(RunsHere::waits);
    }

    /// Tells the other runs of this node that this one is forgotten.
    pub(super) fn forgotten_here(&self) {
        self.tell_runs(RunsHere::forgets);
    }

    /// Tells the other runs of this node that this one begins, or begins again.
    pub(super) fn begins_here(&self) {
        self.tell_runs(RunsHere::begins);
    }

    /// Tells the other runs of this node that this one is no reason to wait.
    pub(super) fn ends_here(&self) {
        self.tell_runs(RunsHere::ends);
    }

    fn tell_runs(&self, how: impl FnOnce(&mut RunsHere, &EntityName) -> bool) {
        self.context.runs_here.send_if_modified(|runs| how(runs, &self.name));
    }

    /// Waits for what may end the hold of this run.
    pub(super) async fn rest_held(&mut self, reason: String) -> NextStep {
        self.waits_here();
        self.report(&AgentActivity::Held(reason.clone()));
        let token = self.context.tasks.token();
        let (mut orders, mut runs) = (self.context.orders.clone(), self.context.runs_here.subscribe());
        // What has changed since the reason was found.
        while self.held_run().as_ref() == Some(&reason) {
            // All arms only wait.
            tokio::select! {
                () = token.cancelled() => return NextStep::Stop,
                changed = orders.changed() => if changed.is_err() {
                    return NextStep::Stop;
                },
                () = changed_or_never(&mut runs) => {}
            }
            let order = self.context.orders.borrow().clone();
            if order.is_some_and(|order| !order.content.entities.contains_key(&self.name)) {
                break;
            }
        }
        NextStep::Observe
    }
}
