//! One step: on disk first, then done, then remembered; the agent's end interrupts it.

use std::convert::Infallible;
use std::time::Duration;

use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::health_tracker::CheckSummary;
use bellwether_core::local::memory::{ApplyProgress, StepOutcome};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::time::Span;
use bellwether_core::words::version::Version;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::observed;
use tokio_util::sync::CancellationToken;

use super::files::RenderInputs;
use super::rest::NextStep;
use super::task::EntityTask;
use super::validate::{no_verdict, validate};
use crate::apply::CommandFacts;
use crate::apply::part::{PartContext, run_all};
use crate::apply::process::SupervisedProcess;
use crate::config::recipe::{DEFAULT_STOP_TIMEOUT, Recipe, RecipeKind, Runner};

/// How a step ended.
pub(super) enum StepEnd {
    /// With an outcome.
    This(StepOutcome),
    /// Another version was assigned, or none is any more; the step counts neither as success nor as failure.
    Superseded,
    /// The agent stops.
    Stopped,
}

impl EntityTask {
    /// Does the step that leads to `aim`, and remembers its outcome.
    pub(super) async fn step(&mut self, recipe: &Recipe, version: &Version, aim: ApplyProgress) -> NextStep {
        let Some(_running) = self.context.steps.begin() else { return self.rest(None).await };
        let run = self.next_run();
        self.entry.run = Some(run.clone());
        if let Err(reason) = self.keep().await {
            return self.hold(reason).await;
        }
        tracing::info!(entity = %self.name, %version, step = word(aim), "step starting");
        self.recent.clear();
        self.describe(recipe, aim);
        let facts = self.facts(version, run.clone());
        let did = match aim {
            ApplyProgress::Begun | ApplyProgress::Static => {
                self.report(&AgentActivity::Step(aim));
                let live = self.live_params(recipe).unwrap_or_default();
                let did = self.statics(recipe, RenderInputs { version, live: &live }, &facts).await;
                if matches!(did, StepEnd::This(StepOutcome::Done)) {
                    self.entry.rendered = live.digest();
                }
                did
            }
            ApplyProgress::Dynamic => {
                self.report(&AgentActivity::Step(aim));
                self.entry.followed = self.followed_now(recipe);
                match self.dynamics(recipe, &facts).await {
                    StepEnd::This(StepOutcome::Done) => self.replace_process(recipe, &facts).await,
                    other @ (StepEnd::This(_) | StepEnd::Superseded | StepEnd::Stopped) => other,
                }
            }
            ApplyProgress::Validated => self.validation(recipe, version, &facts).await,
        };
        if aim > ApplyProgress::Static || !matches!(did, StepEnd::This(StepOutcome::Done)) {
            self.running_step = None;
        }
        let outcome = match did {
            StepEnd::This(outcome) => outcome,
            StepEnd::Superseded => return NextStep::Observe,
            StepEnd::Stopped => return NextStep::Stop,
        };
        self.entry.run = None;
        if (aim, &outcome) == (ApplyProgress::Validated, &StepOutcome::Done) {
            self.context.instances.validated(&self.name);
        }
        self.log_outcome(version, aim, &outcome);
        self.keep_log(aim, version, &run, &outcome).await;
        let (now, seed) = (self.now(), self.seed());
        let starts_over = recipe.from_start && matches!(outcome, StepOutcome::Failed(_));
        self.entry.memory.ended(aim, outcome, now, seed);
        if starts_over {
            self.entry.memory.starts_over();
        }
        self.validate_later();
        NextStep::Observe
    }

    pub(super) fn log_outcome(&self, version: &Version, aim: ApplyProgress, outcome: &StepOutcome) {
        let (entity, step) = (&self.name, word(aim));
        match outcome {
            StepOutcome::Done => tracing::info!(%entity, %version, step, "done"),
            StepOutcome::NotYet(evidence) => {
                tracing::info!(%entity, %version, step, reason = evidence.summary, "not yet");
            }
            StepOutcome::Failed(evidence) => {
                tracing::warn!(%entity, %version, step, reason = evidence.summary, "failed");
            }
        }
    }

    /// The static part: its commands, then the files, if the recipe has any.
    async fn statics(&self, recipe: &Recipe, inputs: RenderInputs<'_>, facts: &CommandFacts) -> StepEnd {
        let did = self.commands("static", &recipe.statics, recipe, facts).await;
        let (StepEnd::This(StepOutcome::Done), RecipeKind::Files(files)) = (&did, &recipe.kind) else {
            return did;
        };
        let token = self.context.tasks.token();
        // Files are moved by a blocking task that is not interrupted; what else is dropped is repeated by the next agent.
        tokio::select! {
            outcome = self.install(recipe, files, inputs, facts) => StepEnd::This(outcome),
            () = token.cancelled() => StepEnd::Stopped,
        }
    }

    /// The dynamic part: reloads of new files, then its commands. It waits until the catalogue files that come before it are
    /// written.
    async fn dynamics(&self, recipe: &Recipe, facts: &CommandFacts) -> StepEnd {
        if let Some(waits) = self.context.board.borrow().waits_for(&self.name) {
            let summary = format!("dynamic: waits for {waits}");
            return StepEnd::This(StepOutcome::NotYet(Evidence { summary, ..Evidence::default() }));
        }
        if let RecipeKind::Files(files) = &recipe.kind {
            let token = self.context.tasks.token();
            // Dropping a reload kills it; by the journal the next agent repeats it.
            let outcome = tokio::select! {
                outcome = self.reload(recipe, files, facts) => outcome,
                () = token.cancelled() => return StepEnd::Stopped,
            };
            if outcome != StepOutcome::Done {
                return StepEnd::This(outcome);
            }
        }
        self.commands("dynamic", &recipe.dynamics, recipe, facts).await
    }

    /// Runs the commands of a part, until another version is assigned: then the running one is stopped, for the parts of the
    /// new version bring the node from wherever this one left it.
    pub(super) async fn commands(
        &self,
        what: &str,
        runners: &[Runner],
        recipe: &Recipe,
        facts: &CommandFacts,
    ) -> StepEnd {
        let (mut log, tasks) = (self.log(), &self.context.tasks);
        let token = tasks.token();
        let stop = CancellationToken::new();
        let mut job =
            PartContext::new(facts, recipe.timeout.to_duration(), &mut log, tasks).until(stop.clone());
        let stopping = async {
            self.superseded(&facts.version).await;
            stop.cancel();
            std::future::pending::<Infallible>().await
        };
        // Dropping the commands kills the running one; the part is idempotent and is repeated by the next agent.
        tokio::select! {
            outcome = run_all(what, runners, &mut job) => {
                if stop.is_cancelled() { StepEnd::Superseded } else { StepEnd::This(outcome) }
            }
            never = stopping => match never {},
            () = token.cancelled() => StepEnd::Stopped,
        }
    }

    /// Waits until another version is assigned, or none.
    pub(super) fn superseded(&self, version: &str) -> impl Future<Output = ()> + Send + use<> {
        let (mut orders, name, version) =
            (self.context.orders.clone(), self.name.clone(), version.to_owned());
        async move {
            let other = orders.wait_for(|order| {
                let assignment = order.as_ref().map(|order| order.content.entities.get(&name));
                assignment.is_some_and(|now| now.is_none_or(|now| now.version.as_str() != version))
            });
            if other.await.is_err() {
                // No order comes any more: the agent ends.
                std::future::pending().await
            }
        }
    }

    /// Withdraws the instances of the entity while its process still runs, and leaves clients the configured time. Returns whether
    /// the agent goes on.
    async fn withdraw_instances(&mut self, drain_time: Duration) -> bool {
        let Some(old) = self.process.as_mut().filter(|old| old.ended().is_none()) else { return true };
        let token = self.context.tasks.token();
        let withdrawn = async {
            let has_any = self.context.instances.withdraw(&self.name, "its process is being replaced").await;
            tokio::time::sleep(if has_any { drain_time } else { Duration::ZERO }).await;
        };
        // All arms only wait: a withdrawal that is dropped is repeated by the next agent.
        tokio::select! {
            () = token.cancelled() => false,
            () = withdrawn => true,
            _ = old.wait() => true,
        }
    }

    /// Stops the process of the version before, and starts the new one, if the recipe has one. The instances of the entity are
    /// withdrawn before, and come back when their checks pass with the new process.
    async fn replace_process(&mut self, recipe: &Recipe, facts: &CommandFacts) -> StepEnd {
        let drain_time = recipe.process.as_ref().map_or(Span::ZERO, |process| process.drain_time);
        if !self.withdraw_instances(drain_time.to_duration()).await {
            return StepEnd::Stopped;
        }
        if let Some(mut old) = self.process.take() {
            self.checks = None;
            let grace = recipe.process.as_ref().map_or(DEFAULT_STOP_TIMEOUT, |process| process.stop_timeout);
            old.stop(grace.to_duration()).await;
        }
        self.entry.process = None;
        let Some(supervised) = &recipe.process else {
            self.context.instances.unsupervised(&self.name);
            return StepEnd::This(StepOutcome::Done);
        };
        self.checks = None;
        if let Err(reason) = self.end_former(supervised.stop_timeout.to_duration()).await {
            let summary = format!("process: cannot {reason}");
            return StepEnd::This(StepOutcome::Failed(Evidence { summary, ..Evidence::default() }));
        }
        let (owner, tasks) = (&self.context.owner, &self.context.tasks);
        let user = supervised.user.clone().or_else(|| facts.user.clone());
        let facts = CommandFacts { user, ..facts.clone() };
        match SupervisedProcess::start(&supervised.command, &facts, owner, &self.service_log(), tasks) {
            Ok(process) => {
                fail::pass(FailPoint::ProcessStarted);
                self.context.instances.up(&self.name, process.mark().clone());
                self.entry.process = Some(process.mark().clone());
                self.process = Some(process);
                StepEnd::This(StepOutcome::Done)
            }
            Err(error) => {
                let program = supervised.command.argv.first().map_or("", String::as_str);
                let summary = format!("process: cannot start {program}: {error}");
                StepEnd::This(StepOutcome::Failed(Evidence { summary, ..Evidence::default() }))
            }
        }
    }

    /// Ends what a former agent, whose ledger was lost, left running for this entity; once in this agent's life.
    async fn end_former(&mut self, grace: Duration) -> Result<(), String> {
        if self.former_ended {
            return Ok(());
        }
        let count = self.context.owner.end_former(&self.name, grace, &self.context.tasks).await?;
        if count > 0 {
            tracing::warn!(entity = %self.name, count, "ended processes that a former agent, whose ledger was lost, left running");
        }
        self.former_ended = true;
        Ok(())
    }

    /// Shows in the local status what the validation waits for, and reports its first complaint.
    fn show_wait(&self) -> impl Fn(&str, Option<String>) + use<> {
        let (board, name, line) = (self.context.board.clone(), self.name.clone(), self.entry.memory.line());
        move |awaited, complaint| {
            let line = format!("{line} (waits for {awaited})");
            board.send_if_modified(|board| {
                let reported = board.waits_for_check(&name, complaint);
                let account = board.entities.get_mut(&name).filter(|account| account.line != line);
                account.map(|account| account.line = line).is_some() || reported
            });
        }
    }

    /// Validates, until there is a verdict or the version is no longer assigned.
    async fn validation(&mut self, recipe: &Recipe, version: &Version, facts: &CommandFacts) -> StepEnd {
        if let (Some(_), None) = (&recipe.process, &self.process) {
            let summary = "the process ended before its validation".to_owned();
            return StepEnd::This(StepOutcome::Failed(Evidence { summary, ..Evidence::default() }));
        }
        self.start_checks(version);
        // Verdicts about the version before do not count for this one.
        self.check_summary = CheckSummary::Unknown;
        self.report(&AgentActivity::Step(ApplyProgress::Validated));
        let mut log = self.log();
        let token = self.context.tasks.token();
        let superseded = self.superseded(version.as_str());
        let limit: Duration = recipe.timeout.to_duration();
        let show = self.show_wait();
        let Some(checks) = self.checks.as_mut() else { return StepEnd::Superseded };
        let mut job = PartContext::new(facts, limit, &mut log, &self.context.tasks);
        let verdict = validate(recipe, self.process.as_mut(), checks, &mut job, show);
        // Dropping the validation kills its command; nothing else is undone.
        tokio::select! {
            outcome = observed::timeout(limit, verdict) => StepEnd::This(outcome.unwrap_or_else(|_| {
                StepOutcome::Failed(checks.with_said(no_verdict(recipe.timeout, &checks.now())))
            })),
            () = superseded => StepEnd::Superseded,
            () = token.cancelled() => StepEnd::Stopped,
        }
    }
}

const fn word(aim: ApplyProgress) -> &'static str {
    match aim {
        ApplyProgress::Begun | ApplyProgress::Static => "static",
        ApplyProgress::Dynamic => "dynamic",
        ApplyProgress::Validated => "validate",
    }
}
