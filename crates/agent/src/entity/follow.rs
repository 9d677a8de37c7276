//! Following: when the services that it is made from change, the dynamic part alone runs again; when live params change, its
//! files are rendered again.

use std::sync::Arc;

use bellwether_api::v1::node_params::LiveParams;
use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;

use super::files::RenderInputs;
use super::rest::NextStep;
use super::step::StepEnd;
use super::task::EntityTask;
use crate::apply::CommandFacts;
use crate::config::recipe::{Recipe, RecipeKind};

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

    /// The live params, for an entity whose files are rendered from them.
    pub(super) fn live_params(&mut self, recipe: &Recipe) -> Option<Arc<LiveParams>> {
        let live = self.context.live_params.borrow_and_update().clone();
        matches!(recipe.kind, RecipeKind::Files(_)).then_some(live)
    }

    /// When this is to follow a change of services or live params, if there is one. A paused node renders nothing.
    pub(super) fn follow_at(&mut self, recipe: &Recipe) -> Option<Timestamp> {
        let live = self.live_params(recipe).filter(|_| self.paused.is_none());
        let rendered = live.is_none_or(|live| live.digest() == self.entry.rendered);
        let services = self.followed_now(recipe).filter(|now| self.entry.followed != Some(*now));
        if services.is_some() && self.entry.followed.is_none() && self.entry.memory.settled().is_some() {
            // Following begins with the present state.
            self.entry.followed = services;
        } else if services.is_some() || !rendered {
            let soon = self.now().plus(GATHER);
            return Some(*self.follow_at.get_or_insert(soon));
        }
        self.follow_at = None;
        None
    }

    /// Renders the files again if live params changed, runs the commands of the dynamic part again if services did, and remembers
    /// what they were made from.
    pub(super) async fn refresh(&mut self, recipe: &Recipe, version: &Version) -> NextStep {
        let Some(_running) = self.context.steps.begin() else { return self.rest(None).await };
        let (services, live) = (self.followed_now(recipe), self.live_params(recipe));
        let live = live.filter(|live| live.digest() != self.entry.rendered);
        let run = self.next_run();
        self.entry.run = Some(run.clone());
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        let what = if live.is_some() { "live params changed" } else { "a followed service changed" };
        tracing::info!(entity = %self.name, %version, "{what}");
        self.recent.clear();
        let facts = self.facts(version, run.clone());
        let mut did = match &live {
            Some(live) => self.rerender(recipe, version, &facts, live).await,
            None => StepEnd::This(StepOutcome::Done),
        };
        if matches!(did, StepEnd::This(StepOutcome::Done)) && services != self.entry.followed {
            did = self.commands("dynamic", &recipe.dynamics, recipe, &facts).await;
        }
        let outcome = match did {
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
            StepOutcome::Done => {
                self.entry.followed = services;
                if let Some(live) = live {
                    self.entry.rendered = live.digest();
                    // Whether it works with them is seen at once, not at the next turn.
                    self.validate_at = self.validate_at.map(|_| now);
                }
            }
            StepOutcome::NotYet(_) => self.follow_at = Some(now.plus(AGAIN)),
            // It is applied again as a whole, with backoff, from the services there are then.
            failed @ StepOutcome::Failed(_) => {
                let seed = self.seed();
                self.entry.memory.ended(aim, failed, now, seed);
            }
        }
        NextStep::Observe
    }

    /// Renders the files of the running version again, puts them in place, and reloads what changed.
    async fn rerender(
        &self,
        recipe: &Recipe,
        version: &Version,
        facts: &CommandFacts,
        live: &LiveParams,
    ) -> StepEnd {
        let RecipeKind::Files(files) = &recipe.kind else { return StepEnd::This(StepOutcome::Done) };
        let token = self.context.tasks.token();
        let work = async {
            match self.install(recipe, files, RenderInputs { version, live }, facts).await {
                StepOutcome::Done => self.reload(recipe, files, facts).await,
                other @ (StepOutcome::NotYet(_) | StepOutcome::Failed(_)) => other,
            }
        };
        // Files are moved by a blocking task that is not interrupted; by the journal the next agent repeats a reload.
        let outcome = tokio::select! {
            outcome = work => outcome,
            () = token.cancelled() => return StepEnd::Stopped,
        };
        StepEnd::This(match outcome {
            StepOutcome::Failed(evidence) => {
                let summary = format!("the params of the node changed: {}", evidence.summary);
                StepOutcome::Failed(Evidence { summary, ..evidence })
            }
            other @ (StepOutcome::Done | StepOutcome::NotYet(_)) => other,
        })
    }
}
