//! Observing the order, the process and the checks, and what follows for the entity's memory. Also both ends of the task:
//! taking over what runs, and leaving it.

use std::time::Duration;

use bellwether_core::local::account::FailedRuns;
use bellwether_core::local::health_tracker::{CheckSummary, HealthTracker, vital};
use bellwether_core::local::memory::ApplyProgress;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::records::order::Assignment;
use bellwether_core::words::counter::Epoch;
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::version::Version;

use super::soak::Soak;
use super::task::EntityTask;
use crate::apply::leftover;
use crate::apply::process::SupervisedProcess;
use crate::check::{CheckContext, EntityChecks};
use crate::check_store::{CheckOwner, StoredChecks};
use crate::config::OnExit;
use crate::config::recipe::RecipeKind;

/// Longer than an exec takes.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

impl EntityTask {
    /// Takes over from the agent before: kills leftovers, adopts the process, starts the checks.
    ///
    /// # Errors
    /// What cannot be looked at, after "cannot ": whether something runs is not known then, and nothing may begin. It is tried again.
    pub(super) async fn take_over(&mut self) -> Result<(), String> {
        self.end_leftovers(self.check_run()).await?;
        if let Some(run) = self.entry.run.clone() {
            self.end_former_run(run).await?;
            if let Some(RecipeKind::Action(_, action)) = self.recipe.as_ref().map(|recipe| &recipe.kind) {
                let (now, seed) = (self.now(), self.seed());
                self.entry.memory.cut_short(action.idempotent, now, seed);
            }
            self.entry.run = None;
        }
        if self.recipe.is_some() {
            self.adopt()?;
        }
        let is_supervised = self.recipe.as_ref().is_some_and(|recipe| recipe.process.is_some());
        if is_supervised && self.process.is_none() {
            self.context.instances.down(&self.name, "its process is not running");
        }
        // Also of a version that is being repaired: its failure in the soak is known to this machine alone.
        let stored = self.context.check_store.get(&self.check_owner());
        self.soak = Soak::restored(None, stored.soak_failure.clone());
        if let Some(version) = self.entry.memory.settled().cloned() {
            self.resume_checks(&version);
        }
        self.validate_later();
        Ok(())
    }

    /// Ends what is left of the run of a part, an action or a job that the agent before had begun.
    async fn end_former_run(&self, run: String) -> Result<(), String> {
        // Twice: between fork and exec a program's environment cannot be read.
        self.end_leftovers(run.clone()).await?;
        tokio::time::sleep(BETWEEN_LOOKS).await;
        // A part may have started what it is for; a job may not.
        if self.recipe.is_some() {
            return self.end_leftovers(run).await;
        }
        self.end_job(run).await?;
        // It ends what this agent cannot find.
        let dir = self.context.work.join(self.name.as_str());
        leftover::guards_end(&dir, &self.context.tasks).await
    }

    /// # Errors
    /// Processes cannot be looked at, after "cannot ".
    pub(super) async fn end_leftovers(&self, run: String) -> Result<(), String> {
        let killed = self.context.tasks.spawn_blocking(move || leftover::kill(&run)).await;
        match killed.map_err(std::io::Error::other).flatten() {
            Ok(0) => {}
            Ok(count) => {
                tracing::info!(entity = %self.name, count, "killed leftovers of an earlier agent")
            }
            Err(error) => return Err(format!("look for leftovers of an earlier agent: {error}")),
        }
        Ok(())
    }

    /// Kills what a job left running, in its own process group too.
    ///
    /// # Errors
    /// As [`end_leftovers`](Self::end_leftovers).
    pub(super) async fn end_job(&self, run: String) -> Result<(), String> {
        let killed = self.context.tasks.spawn_blocking(move || leftover::kill_job(&run)).await;
        match killed.map_err(std::io::Error::other).flatten() {
            Ok(0) => {}
            Ok(count) => tracing::info!(run = %self.name, count, "killed what a job left running"),
            Err(error) => return Err(format!("look for what a job left running: {error}")),
        }
        Ok(())
    }

    fn adopt(&mut self) -> Result<(), String> {
        let supervised = self.recipe.as_ref().is_some_and(|recipe| recipe.process.is_some());
        let Some(mark) = self.entry.process.clone() else {
            if supervised && self.entry.memory.progress >= ApplyProgress::Dynamic {
                // It was stopped on purpose, or never recorded as started.
                self.entry.memory.interrupted();
            }
            return Ok(());
        };
        match SupervisedProcess::adopt(&mark, &self.service_log(), &self.context.tasks) {
            Ok(Some(process)) => {
                tracing::info!(entity = %self.name, pid = mark.pid, "adopted the running process");
                self.process = Some(process);
            }
            Ok(None) => {
                self.entry.process = None;
                let reboot = mark.before_boot().unwrap_or(false);
                // Nobody saw how it ended, so it is held against no version; a failure that was seen before keeps its back-off.
                let unobserved = match self.entry.memory.progress {
                    ApplyProgress::Begun | ApplyProgress::Static => false,
                    ApplyProgress::Dynamic => true,
                    ApplyProgress::Validated => reboot || self.entry.memory.failure_reason.is_none(),
                };
                if supervised && unobserved {
                    tracing::info!(entity = %self.name, reboot, "its process ended while no agent was running; it is started again");
                    self.entry.memory.interrupted();
                }
            }
            Err(error) => {
                return Err(format!("look at process {}, which an earlier agent started: {error}", mark.pid));
            }
        }
        Ok(())
    }

    /// Starts the checks of a version that was just applied, without a verdict: how long it may take to start is for the limit
    /// of its validation.
    pub(super) fn start_checks(&mut self, version: &Version) {
        self.start_checks_from(version, &StoredChecks::default(), Some(Timestamp::from_millis(u64::MAX)));
    }

    /// Continues the checks of the agent before.
    fn resume_checks(&mut self, version: &Version) {
        let stored = self.context.check_store.get(&self.check_owner());
        if stored.version.as_ref() != Some(version) {
            // Nothing is known of it since the machine or the agent started: it may be starting as well.
            let limit = self.recipe.as_ref().map(|recipe| self.now().plus(recipe.timeout));
            return self.start_checks_from(version, &StoredChecks::default(), limit);
        }
        if let Some(since) = stored.healthy_since {
            self.health = HealthTracker::restored(version.clone(), since);
        }
        self.soak = Soak::restored(stored.soak, stored.soak_failure.clone());
        self.start_checks_from(version, &stored, None);
    }

    fn start_checks_from(
        &mut self,
        version: &Version,
        stored: &StoredChecks,
        starting_until: Option<Timestamp>,
    ) {
        let Some(recipe) = &self.recipe else { return };
        let facts = self.facts(version, self.check_run());
        let (clock, tasks) = (&self.context.clock, &self.context.tasks);
        let context = CheckContext { facts: &facts, clock, tasks, seed: self.seed(), starting_until };
        self.checks = Some(EntityChecks::start(&recipe.checks, &stored.checks, context));
    }

    fn check_owner(&self) -> CheckOwner {
        CheckOwner::Entity(self.name.clone())
    }

    /// Stores the states of the checks for the next agent; of a version that is not validated, only that it failed in its soak.
    fn store_checks(&self, settled: Option<&Version>) {
        let (Some(recipe), Some(version)) = (&self.recipe, settled) else {
            let failed =
                StoredChecks { soak_failure: self.soak.failure().cloned(), ..StoredChecks::default() };
            return self.context.check_store.put(&self.check_owner(), failed);
        };
        let stored = StoredChecks {
            version: Some(version.clone()),
            healthy_since: self.health.since(),
            soak: self.soak.observed(),
            soak_failure: self.soak.failure().cloned(),
            checks: self.checks.as_ref().map(|checks| checks.stored(&recipe.checks)).unwrap_or_default(),
            ..StoredChecks::default()
        };
        self.context.check_store.put(&self.check_owner(), stored);
    }

    /// Counts the soak of the version that is settled here.
    fn observe_soak(&mut self, settled: Option<&Version>) {
        let assigned = self.entry.memory.wanted.as_ref();
        let settled_on = assigned.filter(|assigned| settled == Some(&assigned.version));
        let failing = match &self.check_summary {
            CheckSummary::Unhealthy(evidence) => Some(evidence.summary.as_str()),
            CheckSummary::NoChecks | CheckSummary::Unknown | CheckSummary::Healthy => None,
        };
        self.soak.note_failure(assigned, failing);
        if let Some(assigned) = settled_on.filter(|_| self.check_summary == CheckSummary::Unknown) {
            return self.soak.waits_for_checks(assigned);
        }
        let healthy_on = settled_on.filter(|_| self.health.since().is_some());
        self.soak.observe(healthy_on, self.checks.as_ref(), &self.context.clock, &self.context.tasks);
    }

    /// Observes the order and the health of what runs, and updates the memory.
    pub(super) fn observe(&mut self) {
        let order = self.context.orders.borrow_and_update().clone();
        self.paused = order.as_ref().and_then(|order| order.content.paused.clone());
        if let Some(order) = &order {
            self.apply_assignment(order.content.entities.get(&self.name), order.epoch);
        }
        let renders = self.recipe.as_ref().is_some_and(|recipe| matches!(recipe.kind, RecipeKind::Files(_)));
        if renders && self.context.live_params.has_changed().unwrap_or_default() {
            self.entry.memory.inputs_changed();
        }
        if let Some(evidence) = self.process.as_ref().and_then(SupervisedProcess::ended) {
            self.context.instances.down(&self.name, &evidence.summary);
        }
        let now = self.now();
        self.check_summary = self.summarize_checks();
        let lasted = self.health.lasted(now);
        let settled = self.entry.memory.settled().cloned();
        self.health.observe(settled.as_ref(), &self.check_summary, now);
        self.observe_soak(settled.as_ref());
        self.store_checks(settled.as_ref());
        let wanted = self.entry.memory.wanted.as_ref().map(|wanted| &wanted.version);
        if settled.is_none() || settled.as_ref() != wanted {
            return;
        }
        let (seed, resting) = (self.seed(), self.entry.memory.failure_reason.is_none());
        match &self.check_summary {
            CheckSummary::Unhealthy(evidence) if resting && self.paused.is_none() => {
                tracing::warn!(entity = %self.name, reason = evidence.summary, "became unhealthy");
                if self.revalidation_failure.is_none() {
                    // No run failed: the checks did, or the process ended.
                    self.failed.validate = None;
                    self.ended = self.process.as_ref().and_then(SupervisedProcess::ended);
                }
                self.entry.memory.relapsed(evidence.clone(), lasted, now, seed);
            }
            CheckSummary::Healthy | CheckSummary::NoChecks if !resting => {
                tracing::info!(entity = %self.name, "became healthy without another apply");
                self.entry.memory.recovered();
            }
            CheckSummary::Unhealthy(_)
            | CheckSummary::Unknown
            | CheckSummary::Healthy
            | CheckSummary::NoChecks => {}
        }
    }

    /// Remembers the assignment in the order. Without one, nothing is applied any more and no failure counts; a
    /// process keeps running.
    fn apply_assignment(&mut self, assigned: Option<&Assignment>, epoch: Epoch) {
        match assigned {
            Some(assignment) => {
                self.entry.memory.named_in = epoch;
                if self.entry.memory.assign(assignment.clone()) {
                    tracing::info!(entity = %self.name, version = %assignment.version, "a version was assigned");
                }
            }
            // The control plane may name it yet.
            None if self.is_run() && !self.entry.memory.is_withdrawn_in(epoch) => {}
            None => {
                if self.entry.memory.withdraw() {
                    tracing::info!(entity = %self.name, "no version is assigned any more");
                    self.revalidation_failure = None;
                    self.failed = FailedRuns::default();
                    self.need_limits = None;
                }
            }
        }
    }

    /// The health by the process and the checks right now.
    pub(super) fn summarize_checks(&self) -> CheckSummary {
        let supervised = self.recipe.as_ref().is_some_and(|recipe| recipe.process.is_some());
        let due = self.entry.memory.progress >= ApplyProgress::Dynamic;
        match &self.process {
            Some(process) => {
                if let Some(evidence) = process.ended() {
                    return CheckSummary::Unhealthy(evidence);
                }
            }
            None if supervised && due => {
                let summary = "the process ended while no agent was running".to_owned();
                return CheckSummary::Unhealthy(Evidence { summary, ..Evidence::default() });
            }
            None => {}
        }
        if let Some(evidence) = &self.revalidation_failure {
            return CheckSummary::Unhealthy(evidence.clone());
        }
        match &self.checks {
            Some(checks) => match vital(&checks.now()) {
                CheckSummary::Unhealthy(evidence) => CheckSummary::Unhealthy(checks.with_said(evidence)),
                other @ (CheckSummary::Healthy | CheckSummary::NoChecks | CheckSummary::Unknown) => other,
            },
            None if self.recipe.as_ref().is_some_and(|recipe| !recipe.checks.is_empty()) => {
                CheckSummary::Unknown
            }
            None => CheckSummary::NoChecks,
        }
    }

    /// Leaves the process running, or stops it, as configured.
    pub(super) async fn leave(mut self) {
        let Some(mut process) = self.process.take() else { return };
        let stop = self.recipe.as_ref().and_then(|recipe| recipe.process.as_ref());
        let stops = self.context.on_exit == OnExit::Stop && !self.context.steps.is_closed();
        let Some(stop) = stop.filter(|_| stops) else { return };
        process.stop(stop.stop_timeout.to_duration()).await;
        self.entry.process = None;
        if let Err(reason) = self.keep().await {
            tracing::warn!(entity = %self.name, "cannot {reason}");
        }
    }
}
