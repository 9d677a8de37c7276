//! One task per entity: it observes the host, gets the next step from core, does it, and remembers the outcome.
//!
//! The ledger has every step before it begins. Only this task changes its entity's memory and process.

mod action;
mod boot_hold;
mod boot_turn;
mod describe;
mod files;
mod follow;
mod handover;
mod handover_wait;
mod job;
mod job_condition;
mod job_environment;
mod job_outputs;
mod log;
mod naming;
mod need;
mod observe;
mod rest;
mod retry;
mod run_hold;
mod soak;
mod step;
pub(crate) mod step_gate;
mod task;
mod validate;
mod work;

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::health_tracker::CheckSummary;
use bellwether_core::local::memory::ApplyProgress;
use bellwether_core::local::plan::{self, ApplyStep, IdleReason, LocalObservation};

use bellwether_core::records::order::ApplyMethod;

use crate::config::recipe::RecipeKind;
use rest::NextStep;
pub(crate) use task::{EntityContext, EntityTask};

impl EntityTask {
    /// Runs until the agent stops.
    pub(crate) async fn run(mut self) {
        let now = self.now();
        self.entry.memory.restarted(now);
        let mut next = NextStep::Observe;
        while let Err(reason) = self.take_over().await {
            next = self.hold(reason).await;
            if next == NextStep::Stop {
                break;
            }
        }
        self.looked();
        while next == NextStep::Observe {
            next = self.step_once().await;
        }
        self.leave().await;
    }

    /// Carries out the run of a workflow, which needs no recipe. Anything else does.
    async fn without_recipe(&mut self) -> NextStep {
        match self.entry.memory.wanted.as_ref().map(|wanted| wanted.method) {
            // What is acknowledged is done, here or before this node's time, also if this ledger does not know of it.
            Some(ApplyMethod::Workflow | ApplyMethod::Acknowledge) => return self.work().await,
            Some(ApplyMethod::Apply | ApplyMethod::Render | ApplyMethod::Run) => {
                self.report_missing_recipe();
            }
            // Without leave for tasks the control plane assigns no run, and a run that is forgotten would run again later.
            None if self.is_run() && self.allows_tasks() => return self.forget().await,
            None => self.remove_account(),
        }
        self.rest(None).await
    }

    /// Observes once, and does the one step that follows.
    async fn step_once(&mut self) -> NextStep {
        self.observe();
        self.log_end().await;
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        let Some(recipe) = self.recipe.clone() else { return self.without_recipe().await };
        if let Some(summary) = self.mismatch(&recipe) {
            self.report_refused(summary);
            return self.rest(None).await;
        }
        if let RecipeKind::Action(name, action) = &recipe.kind {
            return self.act(name, action).await;
        }
        let seen = LocalObservation {
            paused: self.paused.is_some(),
            unhealthy: matches!(self.check_summary, CheckSummary::Unhealthy(_)),
            validate_at: self.validate_at,
            follow_at: self.follow_at(&recipe),
        };
        match plan::next(&self.entry.memory, seen, self.now()) {
            ApplyStep::Static(version) => {
                if let Some(next) = self.held_by_store(&version).await {
                    return next;
                }
                self.entry.memory.begins(&version);
                self.revalidation_failure = None;
                self.step(&recipe, &version, ApplyProgress::Static).await
            }
            ApplyStep::Dynamic(version) => match self.unmet(&recipe) {
                unmet if unmet.is_empty() => match self.held_by_store(&version).await {
                    Some(next) => next,
                    None => self.step(&recipe, &version, ApplyProgress::Dynamic).await,
                },
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
                | IdleReason::LedgerNotRecorded
                | IdleReason::AttemptsExhausted,
                until,
            ) => {
                self.report(&AgentActivity::Idle);
                self.rest(until).await
            }
        }
    }
}
