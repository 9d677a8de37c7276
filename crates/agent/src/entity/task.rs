//! One entity of this node: its memory on disk, what it reports, and the names of its runs.

use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::local::account::{AgentActivity, EntityAccount, FailedRuns};
use bellwether_core::local::health_tracker::{CheckSummary, HealthTracker};
use bellwether_core::local::memory::{ApplyProgress, EntityMemory, FailureReason};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::records::order::{ApplyMethod, Order};
use bellwether_core::words::name::{EntityName, Namespace, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::version::Version;
use bellwether_rt::clock::Clock;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::apply::CommandFacts;
use crate::apply::log::RunOutput;
use crate::apply::log_store::UnsentLogs;
use crate::apply::process::SupervisedProcess;
use crate::catalogue::CatalogueSnapshot;
use crate::check::EntityChecks;
use crate::config::OnExit;
use crate::config::recipe::{Recipe, RecipeKind};
use crate::ledger::{EntityEntry, Ledger};
use crate::param_cache::ParamCache;
use crate::report_board::ReportBoard;

/// What all entities of a node share.
#[derive(Debug, Clone)]
pub(crate) struct EntityContext {
    pub(crate) node: NodeName,
    pub(crate) namespace: Namespace,
    pub(crate) shelf: ParamCache,
    pub(crate) ledger: Ledger,
    pub(crate) logs: PathBuf,
    pub(crate) on_exit: OnExit,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    pub(crate) orders: watch::Receiver<Option<Arc<Order>>>,
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    pub(crate) board: watch::Sender<ReportBoard>,
    /// Logs of failed runs, on their way to the control plane.
    pub(crate) failed: watch::Sender<UnsentLogs>,
    /// Chance for this agent's life: spreads retries and checks.
    pub(crate) seed: u64,
}

/// One entity on this node.
#[derive(Debug)]
pub(crate) struct EntityTask {
    pub(super) name: EntityName,
    pub(super) recipe: Option<Recipe>,
    pub(super) context: EntityContext,
    pub(super) entry: EntityEntry,
    /// What is on disk; `None` before the first write of this agent's life.
    pub(super) kept: Option<EntityEntry>,
    pub(super) process: Option<SupervisedProcess>,
    pub(super) checks: Option<EntityChecks>,
    pub(super) wellness: HealthTracker,
    pub(super) vital: CheckSummary,
    /// Why the last validation of what runs failed, until it passes or what runs is configured again.
    pub(super) refuted: Option<Evidence>,
    /// What the run under way, or the last one, said.
    pub(super) recent: RunOutput,
    /// Failed runs whose logs are kept.
    pub(super) failed: FailedRuns,
    /// When what runs is validated again; `None` for never.
    pub(super) validate_at: Option<Timestamp>,
    /// When the dynamic part is to run again because of what it follows.
    pub(super) follow_at: Option<Timestamp>,
    /// Since when needs are waited for.
    pub(super) needing: Option<Timestamp>,
    pub(super) paused: Option<String>,
    /// Counts runs, so that each has its own name.
    pub(super) runs: u64,
    /// The ledger could not be written when last tried.
    pub(super) held: bool,
}

impl EntityTask {
    /// An entity as the ledger remembers it.
    pub(crate) fn new(
        name: EntityName,
        recipe: Option<Recipe>,
        entry: EntityEntry,
        context: EntityContext,
    ) -> Self {
        Self {
            name,
            recipe,
            context,
            kept: Some(entry.clone()),
            entry,
            process: None,
            checks: None,
            wellness: HealthTracker::default(),
            vital: CheckSummary::NoChecks,
            refuted: None,
            recent: RunOutput::default(),
            failed: FailedRuns::default(),
            validate_at: None,
            follow_at: None,
            needing: None,
            paused: None,
            runs: 0,
            held: false,
        }
    }

    /// Brings the ledger up to date.
    pub(super) async fn keep(&mut self) -> Result<(), String> {
        if self.kept.as_ref() == Some(&self.entry) {
            return Ok(());
        }
        let before = self.kept.take();
        let written = self.context.ledger.keep_entity(&self.name, &self.entry).await;
        written.map_err(|error| error.to_string())?;
        self.kept = Some(self.entry.clone());
        self.held = false;
        match (before.is_some_and(|before| before.run.is_some()), self.entry.run.is_some()) {
            (_, true) => fail::pass(FailPoint::RunKept),
            (true, false) => fail::pass(FailPoint::EndKept),
            (false, false) => {}
        }
        Ok(())
    }

    /// Puts on the board where this entity stands.
    pub(super) fn say(&self, busy: &AgentActivity) {
        let account = EntityAccount::of(&self.entry.memory, busy, &self.vital, self.wellness.since());
        self.put(account.with_runs(&self.failed));
    }

    pub(super) fn say_without_recipe(&self) {
        let name = &self.name;
        self.say_refused(format!(
            "this node has no recipe for entity {name}; add [entity.{name}] to agent.toml"
        ));
    }

    /// Why what was told cannot be done by this recipe at all.
    pub(super) fn mismatch(&self, recipe: &Recipe) -> Option<String> {
        let wanted = self.entry.memory.wanted.as_ref()?;
        let told = wanted.version.as_numbered().map_or("", |(name, _)| name);
        let here = match &recipe.kind {
            RecipeKind::Versions => "versions".to_owned(),
            RecipeKind::Files(_) => "a profile".to_owned(),
            RecipeKind::Action(name, _) => format!("action {name}"),
        };
        let (fits, is) = match (wanted.means, &recipe.kind) {
            (ApplyMethod::Apply, kind) => (*kind == RecipeKind::Versions, "versions".to_owned()),
            (ApplyMethod::Render, kind) => (matches!(kind, RecipeKind::Files(_)), "a profile".to_owned()),
            (ApplyMethod::Run | ApplyMethod::Acknowledge, RecipeKind::Action(name, _)) => {
                (name.as_str() == told, format!("action {told}"))
            }
            (ApplyMethod::Run | ApplyMethod::Acknowledge, RecipeKind::Versions | RecipeKind::Files(_)) => {
                (false, format!("action {told}"))
            }
        };
        let name = &self.name;
        (!fits).then(|| format!("this node's recipe for {name} is for {here}, and the entity is for {is}"))
    }

    /// Says that nothing is done, and why.
    pub(super) fn say_refused(&self, summary: String) {
        let evidence = Evidence { summary, ..Evidence::default() };
        let failure_reason = Some(FailureReason::Failed { aim: ApplyProgress::Static, evidence });
        let memory = EntityMemory { failed_attempts: 1, failure_reason, ..self.entry.memory.clone() };
        self.put(EntityAccount::of(&memory, &AgentActivity::Idle, &CheckSummary::NoChecks, None));
    }

    pub(super) fn put(&self, account: EntityAccount) {
        self.context.board.send_if_modified(|board| {
            let same = board.entities.get(&self.name) == Some(&account);
            if !same {
                board.entities.insert(self.name.clone(), account);
            }
            !same
        });
    }

    pub(super) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// What commands about `version` are told.
    pub(super) fn facts(&self, version: &Version, run: String) -> CommandFacts {
        CommandFacts {
            version: version.to_string(),
            previous: self.entry.memory.running.as_ref().map_or(String::new(), Version::to_string),
            entity: self.name.to_string(),
            node: self.context.node.to_string(),
            run,
        }
    }

    /// A name no other run has; the last part sorts by time.
    pub(super) fn next_run(&mut self) -> String {
        self.runs = self.runs.saturating_add(1);
        let (node, name, now) = (&self.context.node, &self.name, self.now().as_millis());
        format!("{node}/{name}/{now}-{}-{}", std::process::id(), self.runs)
    }

    /// The name all runs of this entity's checks share.
    pub(super) fn check_run(&self) -> String {
        format!("{}/{}/check", self.context.node, self.name)
    }

    pub(super) fn service_log(&self) -> PathBuf {
        self.context.logs.join(format!("{}.service.log", self.name))
    }

    pub(super) fn seed(&self) -> u64 {
        self.context.seed
    }
}
