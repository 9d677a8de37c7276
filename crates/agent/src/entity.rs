//! One task per entity: looks at what is, asks core for the next step, does it, and remembers the outcome.
//!
//! Nothing is begun that is not in the ledger first. Only this task changes its entity's memory and its process.

mod action;
mod files;
mod follow;
mod log;
mod need;
mod observe;
mod rest;
mod retry;
mod step;
mod task;
mod validate;

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::health_tracker::CheckSummary;
use bellwether_core::local::memory::ApplyProgress;
use bellwether_core::local::plan::{self, ApplyStep, IdleReason, LocalObservation};

use crate::config::recipe::RecipeKind;
use rest::NextStep;
pub(crate) use task::{EntityContext, EntityTask};

impl EntityTask {
    /// Works until the level is asked to stop.
    pub(crate) async fn run(mut self) {
        self.wake().await;
        while self.turn().await == NextStep::Look {}
        self.leave().await;
    }

    /// Looks once, and does the one thing that follows.
    async fn turn(&mut self) -> NextStep {
        self.look();
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        let Some(recipe) = self.recipe.clone() else {
            self.say_without_recipe();
            return self.rest(None).await;
        };
        if let Some(summary) = self.mismatch(&recipe) {
            self.say_refused(summary);
            return self.rest(None).await;
        }
        if let RecipeKind::Action(name, action) = &recipe.kind {
            return self.act(name, action).await;
        }
        let seen = LocalObservation {
            paused: self.paused.is_some(),
            unhealthy: matches!(self.vital, CheckSummary::Unhealthy(_)),
            validate_at: self.validate_at,
            follow_at: self.follow_at(&recipe),
        };
        match plan::next(&self.entry.memory, seen, self.now()) {
            ApplyStep::Static(version) => {
                self.entry.memory.begins(&version);
                self.refuted = None;
                self.step(&recipe, &version, ApplyProgress::Static).await
            }
            ApplyStep::Dynamic(version) => match self.unmet(&recipe) {
                unmet if unmet.is_empty() => self.step(&recipe, &version, ApplyProgress::Dynamic).await,
                unmet => self.wait_for(&unmet).await,
            },
            ApplyStep::Validate(version) => self.step(&recipe, &version, ApplyProgress::Validated).await,
            ApplyStep::Refresh(version) => self.refresh(&recipe, &version).await,
            ApplyStep::Revalidate(version) => self.revalidate(&recipe, &version).await,
            ApplyStep::Rest(IdleReason::Paused, until) => self.rest_paused(until).await,
            ApplyStep::Rest(
                IdleReason::UpToDate
                | IdleReason::NoAssignment
                | IdleReason::BackingOff
                | IdleReason::AttemptsExhausted,
                until,
            ) => {
                self.say(&AgentActivity::Idle);
                self.rest(until).await
            }
        }
    }
}
