//! Following: the dynamic part runs again when the services it is made from changed, without anything else being done again.

use bellwether_core::local::memory::StepOutcome;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;

use super::rest::NextStep;
use super::step::StepEnd;
use super::task::EntityTask;
use crate::config::recipe::Recipe;

/// Changes that come within this are one.
const GATHER: Span = Span::from_secs(1);

/// After a run that said "not yet", it is run again no sooner.
const AGAIN: Span = Span::from_secs(5);

impl EntityTask {
    /// What the services that the recipe follows are made of now; none while no catalogue is known, or nothing is followed.
    pub(super) fn followed_now(&mut self, recipe: &Recipe) -> Option<u64> {
        let snapshot = self.context.snapshot.borrow_and_update().clone();
        let known = snapshot.index > 0 && !recipe.follows.is_empty();
        known.then(|| snapshot.catalogue.digest(recipe.follows.iter()))
    }

    /// When the dynamic part is to run again because of what it follows, if it is.
    pub(super) fn follow_at(&mut self, recipe: &Recipe) -> Option<Timestamp> {
        let Some(now) = self.followed_now(recipe).filter(|now| self.entry.followed != Some(*now)) else {
            self.follow_at = None;
            return None;
        };
        if self.entry.followed.is_none() && self.entry.memory.settled().is_some() {
            // Whoever begins to follow has the present for its past.
            self.entry.followed = Some(now);
            return None;
        }
        let soon = self.now().plus(GATHER);
        Some(*self.follow_at.get_or_insert(soon))
    }

    /// Runs the dynamic part's commands once more, and remembers what they were made from.
    pub(super) async fn refresh(&mut self, recipe: &Recipe, version: &Version) -> NextStep {
        let from = self.followed_now(recipe);
        let run = self.next_run();
        self.entry.run = Some(run.clone());
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        tracing::info!(entity = %self.name, %version, "what it follows changed");
        self.recent.clear();
        let facts = self.facts(version, run.clone());
        let outcome = match self.commands("dynamic", &recipe.dynamics, recipe, &facts).await {
            StepEnd::This(outcome) => outcome,
            StepEnd::Superseded => return NextStep::Look,
            StepEnd::Stopped => return NextStep::Stop,
        };
        self.entry.run = None;
        let aim = bellwether_core::local::memory::ApplyProgress::Dynamic;
        self.log_outcome(version, aim, &outcome);
        self.keep_log(aim, version, (&run, &outcome)).await;
        let now = self.now();
        self.follow_at = None;
        match outcome {
            StepOutcome::Done => self.entry.followed = from,
            StepOutcome::NotYet(_) => self.follow_at = Some(now.plus(AGAIN)),
            // It is configured again as a whole, with back-off: then it is made from what there is.
            failed @ StepOutcome::Failed(_) => {
                let seed = self.seed();
                self.entry.memory.ended(aim, failed, now, seed);
            }
        }
        NextStep::Look
    }
}
