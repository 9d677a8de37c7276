//! One entity of this node: its memory on disk, what it reports, and the names of its runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_api::v1::node_params::LiveParams;
use bellwether_core::catalogue::need::Need;
use bellwether_core::local::account::{AgentActivity, EntityAccount, FailedRuns};
use bellwether_core::local::health_tracker::{CheckSummary, HealthTracker};
use bellwether_core::local::memory::{ApplyProgress, EntityMemory, FailureReason};
use bellwether_core::local::runs_here::RunsHere;
use bellwether_core::local::work::WorkMemory;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::records::order::{ApplyMethod, Order};
use bellwether_core::records::report::RunningStep;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::name::{EntityName, Namespace, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::version::Version;
use bellwether_rt::clock::Clock;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::observed::TimeLimit;
use bellwether_rt::tasks::Tasks;
use tokio::sync::{Semaphore, watch};

use super::boot_turn::BootTurn;
use super::handover_wait::HandoverWait;
use super::soak::Soak;
use super::step_gate::StepGate;
use crate::apply::CommandFacts;
use crate::apply::former::ProcessOwner;
use crate::apply::log::RunOutput;
use crate::apply::log_store::UnsentLogs;
use crate::apply::process::SupervisedProcess;
use crate::apply::process_log;
use crate::catalogue::CatalogueSnapshot;
use crate::check::EntityChecks;
use crate::check_store::CheckStore;
use crate::config::recipe::{Recipe, RecipeKind};
use crate::config::{BootCommands, OnExit};
use crate::facts::KnownFacts;
use crate::lease::Lease;
use crate::ledger::{EntityEntry, Ledger};
use crate::link::source::JobSource;
use crate::param_cache::ParamCache;
use crate::probe::handover::Handovers;
use crate::report_board::ReportBoard;
use crate::secret_cache::SecretCache;
use crate::service::process_phase::EntityInstances;

/// What all entities of a node share.
#[derive(Debug, Clone)]
pub(crate) struct EntityContext {
    pub(crate) node: NodeName,
    pub(crate) namespace: Namespace,
    pub(crate) params: ParamCache,
    pub(crate) secrets: SecretCache,
    pub(crate) ledger: Ledger,
    pub(crate) check_store: CheckStore,
    pub(crate) logs: PathBuf,
    /// By which processes are recognised as this agent's.
    pub(crate) owner: ProcessOwner,
    pub(crate) on_exit: OnExit,
    pub(crate) steps: StepGate,
    /// Jobs and actions of this node run one at a time, in the order in which they were due.
    pub(crate) lane: Arc<Semaphore>,
    /// Why no job and no action begins, while the machine is to reboot or to be powered off.
    pub(crate) boot_reason: watch::Sender<Option<String>>,
    /// The runs that keep others from beginning on this node.
    pub(crate) runs_here: watch::Sender<RunsHere>,
    /// The facts of this machine, once they were read; `None` on a logical node, which has none.
    pub(crate) facts: Option<watch::Receiver<Option<KnownFacts>>>,
    /// The source of the inputs of jobs.
    pub(crate) jobs: JobSource,
    /// The directory of the working directories of jobs.
    pub(crate) work: PathBuf,
    /// The lease of a logical node, after which no job of it may run; `None` for a machine.
    pub(crate) lease: Option<Lease>,
    /// The data stores of this node that hand over their leadership before a change.
    pub(crate) handovers: Handovers,
    /// The commands that end a boot of this machine.
    pub(crate) boot_commands: BootCommands,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    pub(crate) orders: watch::Receiver<Option<Arc<Order>>>,
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    /// The params that reach this node without a rollout.
    pub(crate) live_params: watch::Receiver<Arc<LiveParams>>,
    pub(crate) board: watch::Sender<ReportBoard>,
    /// The service instances of entities, which depend on their processes.
    pub(crate) instances: EntityInstances,
    /// Logs of failed runs that the control plane does not have yet.
    pub(crate) unsent_logs: watch::Sender<UnsentLogs>,
    /// A random number of this agent's life, which spreads retries and checks.
    pub(crate) seed: u64,
}

/// The task of one entity.
#[derive(Debug)]
pub(crate) struct EntityTask {
    pub(super) name: EntityName,
    pub(super) recipe: Option<Recipe>,
    pub(super) context: EntityContext,
    pub(super) entry: EntityEntry,
    /// The entry on disk; `None` before the first write of this agent's life.
    pub(super) kept: Option<EntityEntry>,
    pub(super) process: Option<SupervisedProcess>,
    /// How the process ended after its version was validated, until that is logged.
    pub(super) ended: Option<Evidence>,
    /// Whether no process of a former agent, whose ledger was lost, runs any more.
    pub(super) former_ended: bool,
    pub(super) checks: Option<EntityChecks>,
    pub(super) health: HealthTracker,
    pub(super) soak: Soak,
    /// The assignment that was accepted already when this agent started.
    pub(super) found_accepted: AssignmentNumber,
    pub(super) check_summary: CheckSummary,
    /// Why the last revalidation failed, until one passes or the version is applied again.
    pub(super) revalidation_failure: Option<Evidence>,
    /// The output of the current or last run.
    pub(super) recent: RunOutput,
    /// Failed runs whose logs are stored.
    pub(super) failed: FailedRuns,
    /// When the next revalidation is due; `None` for never.
    pub(super) validate_at: Option<Timestamp>,
    /// When the dynamic part is to run again because a followed service changed, or files are to be rendered again because
    /// live params did.
    pub(super) follow_at: Option<Timestamp>,
    /// While the entity waits for needs: the limits of those that have one.
    pub(super) need_limits: Option<BTreeMap<Need, TimeLimit>>,
    /// While the change waits for its data store to hand over its leadership.
    pub(super) handover: Option<HandoverWait>,
    /// The step that runs, or that the next one continues without a report.
    pub(super) running_step: Option<RunningStep>,
    pub(super) paused: Option<String>,
    /// Counts runs, for their names.
    pub(super) runs: u64,
    /// How far the run of a workflow is; `None` before it is read.
    pub(super) stored_work: Option<WorkMemory>,
    /// Whether that is yet to be written.
    pub(super) work_is_unkept: bool,
    /// Held while the run waits for the end of this boot of the machine.
    pub(super) boot_hold: Option<BootTurn>,
    /// Whether the command for that was run in this agent's life.
    pub(super) boot_commanded: bool,
    /// The last write of the ledger failed.
    pub(super) ledger_failed: bool,
}

impl EntityTask {
    /// A task that continues from the ledger's entry.
    pub(crate) fn new(
        name: EntityName,
        recipe: Option<Recipe>,
        entry: EntityEntry,
        context: EntityContext,
    ) -> Self {
        let found_accepted =
            entry.memory.wanted.as_ref().map_or(AssignmentNumber::ZERO, |wanted| wanted.number);
        Self {
            name,
            recipe,
            context,
            kept: Some(entry.clone()),
            entry,
            process: None,
            ended: None,
            former_ended: false,
            checks: None,
            health: HealthTracker::default(),
            soak: Soak::default(),
            found_accepted,
            check_summary: CheckSummary::NoChecks,
            revalidation_failure: None,
            recent: RunOutput::default(),
            failed: FailedRuns::default(),
            validate_at: None,
            follow_at: None,
            need_limits: None,
            handover: None,
            running_step: None,
            paused: None,
            runs: 0,
            stored_work: None,
            work_is_unkept: false,
            boot_hold: None,
            boot_commanded: false,
            ledger_failed: false,
        }
    }

    /// Writes the entry to the ledger, if it changed.
    pub(super) async fn keep(&mut self) -> Result<(), String> {
        if self.kept.as_ref() == Some(&self.entry) {
            return Ok(());
        }
        let before = self.kept.take();
        let written = self.context.ledger.keep_entity(&self.name, &self.entry).await;
        written.map_err(|error| error.to_string())?;
        self.kept = Some(self.entry.clone());
        self.ledger_failed = false;
        self.context.board.send_if_modified(|board| board.unrecorded.remove(&self.name).is_some());
        match (before.is_some_and(|before| before.run.is_some()), self.entry.run.is_some()) {
            (_, true) => fail::pass(FailPoint::RunStored),
            (true, false) => fail::pass(FailPoint::EndStored),
            (false, false) => {}
        }
        Ok(())
    }

    /// Reports the state of this entity.
    pub(super) fn report(&self, busy: &AgentActivity) {
        let account = EntityAccount::of(&self.entry.memory, busy, &self.check_summary, self.health.since());
        let step = self.running_step.clone().filter(|_| matches!(busy, AgentActivity::Step(_)));
        let account = account
            .having_soaked(self.soak.confirmed(), self.soak.failure().map(|(_, reason)| reason.as_str()));
        let account = account.with_restart_since(self.found_accepted);
        let jobs = self.stored_work.as_ref().map(|stored| stored.jobs.clone());
        self.put(account.with_runs(&self.failed).with_jobs(jobs).during(step));
    }

    pub(super) fn report_missing_recipe(&self) {
        let name = &self.name;
        self.report_refused(format!(
            "this node has no recipe for entity {name}; add [entity.{name}] to agent.toml"
        ));
    }

    /// Why this recipe cannot apply the assignment at all, if it cannot.
    pub(super) fn mismatch(&self, recipe: &Recipe) -> Option<String> {
        let wanted = self.entry.memory.wanted.as_ref()?;
        let requested = wanted.version.as_numbered().map_or("", |(name, _)| name);
        let here = match &recipe.kind {
            RecipeKind::Versions => "versions".to_owned(),
            RecipeKind::Files(_) => "a profile".to_owned(),
            RecipeKind::Action(name, _) => format!("action {name}"),
        };
        let (fits, is) = match (wanted.method, &recipe.kind) {
            (ApplyMethod::Apply, kind) => (*kind == RecipeKind::Versions, "versions".to_owned()),
            (ApplyMethod::Render, kind) => (matches!(kind, RecipeKind::Files(_)), "a profile".to_owned()),
            (ApplyMethod::Workflow, _) => (false, "a run of a workflow".to_owned()),
            (ApplyMethod::Run | ApplyMethod::Acknowledge, RecipeKind::Action(name, _)) => {
                (name.as_str() == requested, format!("action {requested}"))
            }
            (ApplyMethod::Run | ApplyMethod::Acknowledge, RecipeKind::Versions | RecipeKind::Files(_)) => {
                (false, format!("action {requested}"))
            }
        };
        let name = &self.name;
        (!fits).then(|| format!("this node's recipe for {name} is for {here}, and the entity is for {is}"))
    }

    /// Reports that nothing is done, and why.
    pub(super) fn report_refused(&self, summary: String) {
        let evidence = Evidence { summary, ..Evidence::default() };
        let failure_reason = Some(FailureReason::Failed { aim: ApplyProgress::Static, evidence });
        let memory = EntityMemory { failed_attempts: 1, failure_reason, ..self.entry.memory.clone() };
        self.put(EntityAccount::of(&memory, &AgentActivity::Idle, &CheckSummary::NoChecks, None));
    }

    pub(super) fn put(&self, account: EntityAccount) {
        let has_results = self.has_results();
        self.context.board.send_if_modified(|board| {
            let mut changed = has_results && board.awaited.remove(&self.name);
            if board.entities.get(&self.name) != Some(&account) {
                board.entities.insert(self.name.clone(), account);
                changed = true;
            }
            changed
        });
    }

    /// Whether its health is known by a result or by what was stored. A version that is not validated has no health yet.
    fn has_results(&self) -> bool {
        self.entry.memory.settled().is_none() || self.checks.as_ref().is_none_or(EntityChecks::have_results)
    }

    /// Reports nothing about this entity any more.
    pub(super) fn remove_account(&self) {
        self.context.board.send_if_modified(|board| {
            let awaited = board.awaited.remove(&self.name);
            board.entities.remove(&self.name).is_some() || awaited
        });
    }

    pub(super) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// The facts for the commands of `version`.
    pub(super) fn facts(&self, version: &Version, run: String) -> CommandFacts {
        CommandFacts {
            version: version.to_string(),
            previous: self.entry.memory.running.as_ref().map_or(String::new(), Version::to_string),
            entity: self.name.to_string(),
            node: self.context.node.to_string(),
            run,
            user: self.recipe.as_ref().and_then(|recipe| recipe.user.clone()),
            limits: self.recipe.as_ref().and_then(|recipe| recipe.limits.clone()),
        }
    }

    /// A unique name of a run; its last part sorts by time.
    pub(super) fn next_run(&mut self) -> String {
        self.runs = self.runs.saturating_add(1);
        let (node, name, now) = (&self.context.node, &self.name, self.now().as_millis());
        format!("{node}/{name}/{now}-{}-{}", std::process::id(), self.runs)
    }

    /// The name that all checks of this entity share. Another agent of a node of this name, in a container of this machine, has a
    /// ledger of its own.
    pub(super) fn check_run(&self) -> String {
        format!("{}/{}/check-{}", self.context.node, self.name, self.context.ledger.id())
    }

    pub(super) fn service_log(&self) -> PathBuf {
        process_log::path(&self.context.logs, &self.name)
    }

    pub(super) fn seed(&self) -> u64 {
        self.context.seed
    }
}
