//! Following: when the services that it is made from change, the dynamic part alone runs again.

use bellwether_core::local::memory::StepOutcome;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;

use super::rest::NextStep;
use super::step::StepEnd;
use super::task::EntityTask;
use crate::config::recipe::Recipe;

/// Changes that come within this lead to one run.
const GATHER: Span = Span::from_secs(1);

/// Shortest time until the next run after one that ended with "not yet".
const AGAIN: Span = Span::from_secs(5);

impl EntityTask {
    /// Digest of the followed services; `None` while no catalogue is known, or nothing is followed.
    pub(super) fn followed_now(&mut self, recipe: &Recipe) -> Option<u64> {
        let snapshot = self.context.snapshot.borrow_and_update().clone();
        let known = snapshot.index > 0 && !recipe.follows.is_empty();
        known.then(|| snapshot.catalogue.digest(recipe.follows.iter()))
    }

    /// When the dynamic part is to run again because a followed service changed, if it is.
    pub(super) fn follow_at(&mut self, recipe: &Recipe) -> Option<Timestamp> {
        let Some(now) = self.followed_now(recipe).filter(|now| self.entry.followed != Some(*now)) else {
            self.follow_at = None;
            return None;
        };
        if self.entry.followed.is_none() && self.entry.memory.settled().is_some() {
            // Following begins with the present state.
            self.entry.followed = Some(now);
            return None;
        }
        let soon = self.now().plus(GATHER);
        Some(*self.follow_at.get_or_insert(soon))
    }

    /// Runs the commands of the dynamic part again, and remembers the services they were made from.
    pub(super) async fn refresh(&mut self, recipe: &Recipe, version: &Version) -> NextStep {
        let Some(_running) = self.context.steps.begin() else { return self.rest(None).await };
        let from = self.followed_now(recipe);
        let run = self.next_run();
        self.entry.run = Some(run.clone());
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        tracing::info!(entity = %self.name, %version, "a followed service changed");
        self.recent.clear();
        let facts = self.facts(version, run.clone());
        let outcome = match self.commands("dynamic", &recipe.dynamics, recipe, &facts).await {
            StepEnd::This(outcome) => outcome,
            StepEnd::Superseded => return NextStep::Observe,
            StepEnd::Stopped => return NextStep::Stop,
        };
        self.entry.run = None;
        let aim = bellwether_core::local::memory::ApplyProgress::Dynamic;
        self.log_outcome(version, aim, &outcome);
        self.keep_log(aim, version, &run, &outcome).await;
        let now = self.now();
        self.follow_at = None;
        match outcome {
            StepOutcome::Done => self.entry.followed = from,
            StepOutcome::NotYet(_) => self.follow_at = Some(now.plus(AGAIN)),
            // It is applied again as a whole, with backoff, from the services there are then.
            failed @ StepOutcome::Failed(_) => {
                let seed = self.seed();
                self.entry.memory.ended(aim, failed, now, seed);
            }
        }
        NextStep::Observe
    }
}
