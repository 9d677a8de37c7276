//! Validating what runs, from time to time: it changes nothing by itself. What fails is told, and leads to configuration
//! again unless the node is paused.

use bellwether_core::local::delay;
use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::records::order::Order;
use bellwether_core::words::version::Version;

use super::rest::{NextStep, ended};
use super::task::EntityTask;
use super::validate::commands;
use crate::config::recipe::Recipe;

impl EntityTask {
    /// Runs the validation of what runs once more, and remembers what it said.
    pub(super) async fn revalidate(&mut self, recipe: &Recipe, version: &Version) -> NextStep {
        let run = self.next_run();
        self.entry.run = Some(run.clone());
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        self.recent.clear();
        let facts = self.facts(version, run.clone());
        let (mut log, tasks) = (self.log(), self.context.tasks.clone());
        let token = tasks.token();
        let name = self.name.clone();
        let told = move |order: &Order| {
            let version = order.content.entities.get(&name).map(|told| told.version.clone());
            (version, order.content.paused.clone())
        };
        let mut orders = self.context.orders.clone();
        let before = orders.borrow().as_deref().map(&told);
        let otherwise = orders.wait_for(|order| order.as_deref().map(&told) != before);
        // Dropping the validation kills its command; it is begun again unless there is something else to do.
        let outcome = tokio::select! {
            outcome = commands(recipe, &facts, &tasks, &mut log) => outcome,
            () = ended(self.process.as_mut().filter(|process| process.ended().is_none())) => return NextStep::Look,
            _ = otherwise => return NextStep::Look,
            () = token.cancelled() => return NextStep::Stop,
        };
        self.entry.run = None;
        self.validate_later();
        // One log of each breakdown is enough: the first shows how it began.
        if self.refuted.is_none() || outcome == StepOutcome::Done {
            self.keep_log(ApplyProgress::Validated, version, (&run, &outcome)).await;
        }
        match outcome {
            StepOutcome::Done => self.refuted = None,
            // Neither a yes nor a no: what was known stays.
            StepOutcome::NotYet(_) => {}
            StepOutcome::Failed(evidence) => {
                if self.refuted.is_none() {
                    let (entity, reason) = (&self.name, &evidence.summary);
                    tracing::warn!(%entity, %version, reason, "is no longer valid");
                }
                self.refuted = Some(evidence);
            }
        }
        NextStep::Look
    }

    /// Begins the time until what runs is validated again, spread so that a fleet does not validate in step.
    pub(super) fn validate_later(&mut self) {
        let every = self.recipe.as_ref().and_then(|recipe| recipe.validate_every);
        let salt = u32::try_from(self.runs & 0xffff).unwrap_or_default();
        self.validate_at = every.map(|every| self.now().plus(delay::spread(every, self.seed(), salt)));
    }
}
