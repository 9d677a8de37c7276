//! The run of a workflow on this node: its tasks in order, each in the ledger before it begins.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_api::shape::ShapeError;
use bellwether_core::local::account::AgentActivity;
use bellwether_core::local::action::{ActionStep, next};
use bellwether_core::local::memory::{ApplyProgress, RunOutcome, StepOutcome};
use bellwether_core::local::plan::IdleReason;
use bellwether_core::local::work::{BootEnd, JobState, WorkMemory, WorkStep};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::time::Span;
use bellwether_core::words::version::Version;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::wait::changed_or_never;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::rest::NextStep;
use super::task::EntityTask;
use crate::apply::CommandFacts;
use crate::apply::exec::{CommandExit, run};
use crate::apply::process::boot_id;
use crate::config::recipe::Command;
use crate::ledger::FrozenInputs;
use crate::link::source::MissingInputs;

/// How long to wait before the inputs of a job are asked for again: the control plane is away.
const AGAIN: Span = Span::from_secs(3);

/// How long the command that ends a boot may take until it has told the system.
const BOOT_COMMAND_WITHIN: Duration = Duration::from_secs(60);

impl EntityTask {
    /// Does the one step that follows from the assignment and from how far the run is.
    pub(super) async fn work(&mut self) -> NextStep {
        if let Err(reason) = self.recall_work().await {
            return self.hold(reason).await;
        }
        let step = next(&self.entry.memory, self.context.ledger.id(), self.paused.is_some());
        let has_begun = self.stored_work.as_ref().is_some_and(|stored| stored.has_begun());
        if matches!(step, ActionStep::Run(_)) && self.allows_tasks() && !has_begun {
            // Those that were started after it wait for it from now on.
            self.waits_here();
        } else {
            self.note_run();
        }
        if !self.is_named() && !matches!(step, ActionStep::Run(_)) {
            return self.rest_unnamed().await;
        }
        match step {
            // The control plane knows, and sends none; that is for this machine to say.
            ActionStep::Run(_) if !self.allows_tasks() => {
                let reason =
                    "this agent does not allow tasks; set tasks = \"allow\" in [agent] of its agent.toml";
                self.report(&AgentActivity::Held(reason.to_owned()));
                self.rest(None).await
            }
            ActionStep::Run(version) => self.carry_out(&version).await,
            ActionStep::Lose(version) => {
                tracing::warn!(run = %self.name, "it may have begun before, on a former host or with a ledger that is gone");
                let (now, seed) = (self.now(), self.seed());
                self.entry.memory.loses(&version, false, now, seed);
                NextStep::Observe
            }
            ActionStep::Acknowledge(version) => {
                self.entry.memory.acknowledges(&version);
                NextStep::Observe
            }
            ActionStep::Rest(IdleReason::Paused) => self.rest_paused(None).await,
            ActionStep::Rest(reason @ IdleReason::LedgerNotRecorded) => {
                self.report(&AgentActivity::Held(reason.to_string()));
                self.rest(None).await
            }
            ActionStep::Rest(
                IdleReason::UpToDate
                | IdleReason::NoAssignment
                | IdleReason::BackingOff
                | IdleReason::AttemptsExhausted,
            ) => {
                self.report(&AgentActivity::Idle);
                self.rest(None).await
            }
        }
    }

    /// Whether this entity is, or was, the run of a workflow.
    pub(super) fn is_run(&self) -> bool {
        self.recipe.is_none() && (self.stored_work.is_some() || self.entry.memory.ran.is_some())
    }

    /// Whether this machine's own configuration allows tasks.
    pub(super) fn allows_tasks(&self) -> bool {
        self.context.board.borrow().allows_tasks
    }

    /// Waits until no other job and no action runs on this node. None when the agent stops: a turn that another task returned
    /// because it stops is nobody's.
    pub(super) async fn turn(&mut self) -> Option<OwnedSemaphorePermit> {
        let token = self.context.tasks.token();
        let turn = self.next_turn(&token).await?;
        (!token.is_cancelled()).then_some(turn)
    }

    async fn next_turn(&mut self, token: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        let lane = self.context.lane.clone();
        if let Ok(turn) = lane.clone().try_acquire_owned() {
            return Some(turn);
        }
        let mut reason = self.context.boot_reason.subscribe();
        // One place in the queue, however often the reason changes.
        let mut turn = std::pin::pin!(lane.acquire_owned());
        loop {
            let why = reason.borrow_and_update().clone();
            let why = why.unwrap_or_else(|| "another job or action runs on this node".to_owned());
            self.report(&AgentActivity::Held(why));
            // All arms only wait.
            tokio::select! {
                turn = &mut turn => return turn.ok(),
                () = token.cancelled() => return None,
                () = changed_or_never(&mut reason) => {}
            }
        }
    }

    async fn carry_out(&mut self, version: &Version) -> NextStep {
        let retried = self.entry.memory.ran.as_ref().is_some_and(|ran| ran.outcome == RunOutcome::Retry);
        if retried && let Err(reason) = self.begin_again(version).await {
            return self.hold(reason).await;
        }
        let known = self.entry.memory.ran.as_ref();
        if known.is_none() {
            match self.context.ledger.runs().has_forgotten(&self.name).await {
                Ok(false) => {}
                Ok(true) => {
                    tracing::warn!(run = %self.name, "it began here before, and was forgotten");
                    let (now, seed) = (self.now(), self.seed());
                    self.entry.memory.loses(version, false, now, seed);
                    return NextStep::Observe;
                }
                Err(error) => return self.hold(error.to_string()).await,
            }
        }
        if known.is_none_or(|ran| ran.version != *version || ran.outcome != RunOutcome::Begun) {
            self.entry.memory.runs(version);
            if let Err(reason) = self.keep().await {
                return self.hold(reason).await;
            }
            if let Err(error) = self.context.ledger.mark_begun(&self.name).await {
                return self.hold(error.to_string()).await;
            }
        }
        let boot = match boot_id() {
            Ok(boot) => boot,
            Err(error) => return self.hold(format!("read the boot of this machine: {error}")).await,
        };
        let stored = match self.stored(version, &boot).await {
            Ok(stored) => stored,
            Err(reason) => return self.hold(reason).await,
        };
        let step = stored.next(&boot, self.now());
        if !self.is_named() && !matches!(step, WorkStep::EndBoot(_)) {
            tracing::debug!(run = %self.name, "waits: the control plane was restored, and has not named this run since");
            return self.rest_unnamed().await;
        }
        match step {
            WorkStep::Create(index) => self.create_job(stored, index).await,
            WorkStep::Begin(index) => self.run_job(stored, index, &boot).await,
            WorkStep::WaitUntil(at) => {
                let task = stored.job.as_ref().map(|job| job.task.to_string()).unwrap_or_default();
                self.report(&AgentActivity::Held(format!("task {task} is incomplete; it is run again")));
                self.rest(Some(at)).await
            }
            WorkStep::WaitForStart(reason) => {
                self.report(&AgentActivity::Held(reason));
                self.rest(None).await
            }
            WorkStep::EndBoot(how) => self.end_boot(how).await,
            WorkStep::Fail(summary) => {
                self.note_work(stored, WorkMemory::gives_up).await;
                self.end_run(StepOutcome::Failed(Evidence { summary, ..Evidence::default() }));
                NextStep::Observe
            }
        }
    }

    /// Reads how far a run is that ended in the life of another agent, and writes what was seen of one in this.
    async fn recall_work(&mut self) -> Result<(), String> {
        match (&self.stored_work, &self.entry.memory.ran) {
            (Some(stored), _) if self.work_is_unkept => self.keep_work(stored.clone()).await,
            (None, Some(ran)) if ran.outcome != RunOutcome::Begun => {
                let version = ran.version.clone();
                let found = self.context.ledger.runs().work(&self.name).await.unwrap_or_else(|error| {
                    tracing::warn!(run = %self.name, %error, "cannot read the jobs of a run that has ended");
                    None
                });
                let found = found.filter(|stored| stored.version == version);
                let none = || WorkMemory::new(version);
                self.stored_work = Some(found.unwrap_or_else(none));
                Ok(())
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// How far the run is: as the agent remembers it, or from the ledger when it has just started.
    async fn stored(&mut self, version: &Version, boot: &str) -> Result<WorkMemory, String> {
        let known = self.stored_work.as_ref().filter(|stored| stored.version == *version);
        if let Some(stored) = known.cloned() {
            return Ok(stored);
        }
        let found = self.context.ledger.runs().work(&self.name).await.map_err(|error| error.to_string())?;
        let found = found.filter(|stored| stored.version == *version);
        let complete = self.entry.memory.wanted.as_ref().map_or(0, |wanted| wanted.binding.complete);
        let mut stored = found.unwrap_or_else(|| WorkMemory::after(version.clone(), complete));
        stored.started(boot);
        self.keep_work(stored.clone()).await?;
        Ok(stored)
    }

    pub(super) async fn keep_work(&mut self, stored: WorkMemory) -> Result<(), String> {
        self.context.ledger.runs().keep_work(&self.name, &stored).await.map_err(|error| error.to_string())?;
        match stored.job.as_ref().map(|job| &job.state) {
            Some(JobState::Created) => fail::pass(FailPoint::JobCreated),
            Some(JobState::Running) => fail::pass(FailPoint::JobBegun),
            None if stored.jobs.is_empty() => {}
            None | Some(JobState::Incomplete(_) | JobState::Stopped { .. } | JobState::Boot { .. }) => {
                fail::pass(FailPoint::JobEndStored);
            }
        }
        self.stored_work = Some(stored);
        self.work_is_unkept = false;
        Ok(())
    }

    /// Has the task that failed begin again, as a person asked. Done twice it is the same.
    async fn begin_again(&mut self, version: &Version) -> Result<(), String> {
        let found = self.context.ledger.runs().work(&self.name).await.map_err(|error| error.to_string())?;
        let Some(mut stored) = found.filter(|stored| stored.version == *version) else {
            return Ok(());
        };
        tracing::info!(run = %self.name, complete = stored.complete, "the task that failed begins again");
        stored.retried();
        self.keep_work(stored).await
    }

    /// Changes how far the run is by what was seen, and writes it; what cannot be written now is kept until it can be.
    pub(super) async fn note_work(&mut self, mut stored: WorkMemory, seen: impl FnOnce(&mut WorkMemory)) {
        seen(&mut stored);
        (self.stored_work, self.work_is_unkept) = (Some(stored.clone()), true);
        if let Err(reason) = self.keep_work(stored).await {
            tracing::warn!(run = %self.name, "cannot {reason}; what was seen is written once that succeeds");
        }
    }

    /// Fetches the inputs of the next task, and stores them: what runs is decided now, whatever changes later.
    async fn create_job(&mut self, mut stored: WorkMemory, index: u32) -> NextStep {
        if let Some(reason) = self.held_run() {
            return self.rest_held(reason).await;
        }
        let next = match self.context.jobs.take(&self.name, index).await {
            Ok(next) => next,
            Err(MissingInputs::Refused(reason)) => {
                self.end_run(StepOutcome::Failed(Evidence { summary: reason, ..Evidence::default() }));
                return NextStep::Observe;
            }
            Err(MissingInputs::NotYet(reason)) => {
                self.report(&AgentActivity::Held(format!("waits for the inputs of its next task: {reason}")));
                let at = self.now().plus(AGAIN);
                return self.rest(Some(at)).await;
            }
        };
        match next.complete.into_iter().map(TryInto::try_into).collect() {
            Ok(jobs) => stored.recalls(jobs),
            Err(error) => {
                let error: ShapeError = error;
                return self.hold(format!("use the jobs that another ledger had: {error}")).await;
            }
        }
        let Some(inputs) = next.job else {
            self.note_work(stored, |_| {}).await;
            self.end_run(StepOutcome::Done);
            return NextStep::Observe;
        };
        let Some(facts) = self.facts_of_machine().await else { return NextStep::Stop };
        let Ok(task) = inputs.task.task.parse() else {
            return self.hold(format!("use the name of task {:?}", inputs.task.task)).await;
        };
        let idempotent = inputs.spec.idempotent;
        let frozen = FrozenInputs { inputs, facts };
        if let Err(error) = self.context.ledger.runs().keep_inputs(&self.name, &frozen).await {
            return self.hold(error.to_string()).await;
        }
        fail::pass(FailPoint::InputsStored);
        stored.created(task, idempotent);
        match self.keep_work(stored).await {
            Ok(()) => NextStep::Observe,
            Err(reason) => self.hold(reason).await,
        }
    }

    /// Ends the boot of the machine by the configured command, once in this agent's life, and waits. No other job and no action
    /// begins meanwhile: it would be lost.
    async fn end_boot(&mut self, how: BootEnd) -> NextStep {
        if self.boot_hold.is_none() {
            let Some(turn) = self.turn().await else { return NextStep::Stop };
            self.hold_boot(turn, how);
        }
        if !self.boot_commanded {
            let version = self.entry.memory.ran.as_ref().map_or(String::new(), |ran| ran.version.to_string());
            let (run_name, argv) = (self.next_run(), self.boot_command(how).to_vec());
            tracing::info!(run = %self.name, ?argv, "a task asked for the end of this boot");
            let command = Command { argv, workdir: "/".into(), env: BTreeMap::new(), stdin: None };
            let facts = CommandFacts {
                version,
                previous: String::new(),
                entity: self.name.to_string(),
                node: self.context.node.to_string(),
                run: run_name,
                user: None,
                limits: None,
            };
            let token = self.context.tasks.token();
            let mut log = self.log();
            let ended = tokio::select! {
                ended = run(&command, &facts, BOOT_COMMAND_WITHIN, Some(&mut log)) => ended,
                () = token.cancelled() => return NextStep::Stop,
            };
            if !matches!(ended.exit, CommandExit::Success) {
                let summary =
                    format!("cannot end the boot of this machine: {:?}: {}", command.argv, ended.exit);
                let (exit_code, tail) = (ended.exit.code(), ended.tail);
                let evidence = Evidence { summary, exit_code, tail, failing_checks: Vec::new() };
                self.end_run(StepOutcome::Failed(evidence));
                return NextStep::Observe;
            }
            self.boot_commanded = true;
        }
        let word = match how {
            BootEnd::Reboot => "reboots",
            BootEnd::PowerOff => "is powered off",
        };
        self.report(&AgentActivity::Held(format!("the machine {word}; the run goes on after that")));
        self.rest(None).await
    }

    fn boot_command(&self, how: BootEnd) -> &[String] {
        match how {
            BootEnd::Reboot => &self.context.boot_commands.reboot,
            BootEnd::PowerOff => &self.context.boot_commands.power_off,
        }
    }

    /// Remembers the outcome of the whole run.
    pub(super) fn end_run(&mut self, outcome: StepOutcome) {
        (self.boot_hold, self.boot_commanded) = (None, false);
        let version = self.entry.memory.ran.as_ref().map(|ran| ran.version.clone());
        if let Some(version) = version {
            self.log_outcome(&version, ApplyProgress::Dynamic, &outcome);
        }
        let (now, seed) = (self.now(), self.seed());
        self.entry.memory.finished(outcome, now, seed);
        // Before another run has its turn.
        self.note_run();
    }
}
