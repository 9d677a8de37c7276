//! Revalidation: the validation of the running version is repeated from time to time. By itself it changes nothing; a
//! failure is reported, and leads to another apply unless the node is paused.

use bellwether_core::local::delay;
use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::records::order::Order;
use bellwether_core::words::version::Version;

use super::rest::{NextStep, ended};
use super::task::EntityTask;
use crate::apply::part::{PartContext, run_all};
use crate::config::recipe::Recipe;

impl EntityTask {
    /// Repeats the validation of the running version, and remembers its outcome.
    pub(super) async fn revalidate(&mut self, recipe: &Recipe, version: &Version) -> NextStep {
        let Some(_running) = self.context.steps.begin() else { return self.rest(None).await };
        let run = self.next_run();
        self.entry.run = Some(run.clone());
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        self.recent.clear();
        let facts = self.facts(version, run.clone());
        let (mut log, tasks) = (self.log(), self.context.tasks.clone());
        let mut job = PartContext::new(&facts, recipe.timeout.to_duration(), &mut log, &tasks);
        let token = tasks.token();
        let name = self.name.clone();
        let assigned = move |order: &Order| {
            let version = order.content.entities.get(&name).map(|assigned| assigned.version.clone());
            (version, order.content.paused.clone())
        };
        let mut orders = self.context.orders.clone();
        let before = orders.borrow().as_deref().map(&assigned);
        let otherwise = orders.wait_for(|order| order.as_deref().map(&assigned) != before);
        // Dropping the validation kills its command; it is repeated later unless something else follows.
        let outcome = tokio::select! {
            outcome = run_all("validate", &recipe.validation, &mut job) => outcome,
            () = ended(self.process.as_mut().filter(|process| process.ended().is_none())) => return NextStep::Observe,
            _ = otherwise => return NextStep::Observe,
            () = token.cancelled() => return NextStep::Stop,
        };
        self.entry.run = None;
        self.validate_later();
        // One log per failure is enough: the first shows how it began.
        if self.revalidation_failure.is_none() || outcome == StepOutcome::Done {
            self.keep_log(ApplyProgress::Validated, version, &run, &outcome).await;
        }
        match outcome {
            StepOutcome::Done => self.revalidation_failure = None,
            // Neither a success nor a failure: the verdict before stays.
            StepOutcome::NotYet(_) => {}
            StepOutcome::Failed(evidence) => {
                if self.revalidation_failure.is_none() {
                    let (entity, reason) = (&self.name, &evidence.summary);
                    tracing::warn!(%entity, %version, reason, "the validation fails now");
                }
                self.revalidation_failure = Some(evidence);
            }
        }
        NextStep::Observe
    }

    /// Schedules the next revalidation, spread so that a fleet does not validate in step.
    pub(super) fn validate_later(&mut self) {
        let every = self.recipe.as_ref().and_then(|recipe| recipe.validate_every);
        let salt = u32::try_from(self.runs & 0xffff).unwrap_or_default();
        self.validate_at = every.map(|every| self.now().plus(delay::spread(every, self.seed(), salt)));
    }
}
