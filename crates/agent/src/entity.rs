//! One task per entity: looks at what is, asks core for the next step, does it, and remembers the outcome.
//!
//! Nothing is begun that is not in the ledger first. Only this task changes its entity's memory and its process.

mod action;
mod files;
mod follow;
mod log;
mod need;
mod observe;
mod retry;
mod step;
mod validate;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::local::account::{AgentActivity, EntityAccount, FailedRuns};
use bellwether_core::local::health_tracker::{CheckSummary, HealthTracker};
use bellwether_core::local::memory::{ApplyProgress, EntityMemory, FailureReason};
use bellwether_core::local::plan::{self, ApplyStep, IdleReason, LocalObservation};
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

/// A ledger that cannot be written is tried again after this: a full disk is emptied by people.
const HOLD: Duration = Duration::from_secs(2);

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
    name: EntityName,
    recipe: Option<Recipe>,
    context: EntityContext,
    entry: EntityEntry,
    /// What is on disk; `None` before the first write of this agent's life.
    kept: Option<EntityEntry>,
    process: Option<SupervisedProcess>,
    checks: Option<EntityChecks>,
    wellness: HealthTracker,
    vital: CheckSummary,
    /// Why the last validation of what runs failed, until it passes or what runs is configured again.
    refuted: Option<Evidence>,
    /// What the run under way, or the last one, said.
    recent: RunOutput,
    /// Failed runs whose logs are kept.
    failed: FailedRuns,
    /// When what runs is validated again; `None` for never.
    validate_at: Option<Timestamp>,
    /// When the dynamic part is to run again because of what it follows.
    follow_at: Option<Timestamp>,
    /// Since when needs are waited for.
    needing: need::NeedSince,
    paused: Option<String>,
    /// Counts runs, so that each has its own name.
    runs: u64,
    /// The ledger could not be written when last tried.
    held: bool,
}

/// Whether the entity's work goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    Look,
    Stop,
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

    /// Says that a person paused the node, and waits.
    async fn rest_paused(&mut self, until: Option<Timestamp>) -> NextStep {
        let why = self.paused.as_deref().unwrap_or_default();
        self.say(&AgentActivity::Held(format!("{}: {why}", IdleReason::Paused)));
        self.rest(until).await
    }

    /// Waits for anything that may change the plan.
    async fn rest(&mut self, until: Option<Timestamp>) -> NextStep {
        let token = self.context.tasks.token();
        let wait = until.map(|until| until.since(self.now()).to_duration() + Duration::from_millis(1));
        let alarm = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        let follows = self.recipe.as_ref().is_some_and(|recipe| !recipe.follows.is_empty());
        let needing = self.is_needing() || follows;
        let process = self.process.as_mut().filter(|process| process.ended().is_none());
        // All arms only wait; whatever happened is looked at afterwards.
        tokio::select! {
            () = token.cancelled() => return NextStep::Stop,
            changed = self.context.orders.changed() => if changed.is_err() {
                return NextStep::Stop;
            },
            learned = self.context.snapshot.changed(), if needing => if learned.is_err() {
                return NextStep::Stop;
            },
            () = turned(self.checks.as_mut()) => {}
            () = ended(process) => {}
            () = alarm => {}
        }
        NextStep::Look
    }

    /// Says that nothing can be begun, and waits before trying again.
    async fn hold(&mut self, reason: String) -> NextStep {
        if !self.held {
            tracing::error!(entity = %self.name, "could not {reason}; nothing is begun before it can");
        }
        self.held = true;
        self.say(&AgentActivity::Held(format!("could not {reason}")));
        let token = self.context.tasks.token();
        tokio::select! {
            () = token.cancelled() => NextStep::Stop,
            () = tokio::time::sleep(HOLD) => NextStep::Look,
        }
    }

    /// Brings the ledger up to date.
    async fn keep(&mut self) -> Result<(), String> {
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
    fn say(&self, busy: &AgentActivity) {
        let account = EntityAccount::of(&self.entry.memory, busy, &self.vital, self.wellness.since());
        self.put(account.with_runs(&self.failed));
    }

    fn say_without_recipe(&self) {
        let name = &self.name;
        self.say_refused(format!(
            "this node has no recipe for entity {name}; add [entity.{name}] to agent.toml"
        ));
    }

    /// Why what was told cannot be done by this recipe at all.
    fn mismatch(&self, recipe: &Recipe) -> Option<String> {
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
    fn say_refused(&self, summary: String) {
        let evidence = Evidence { summary, ..Evidence::default() };
        let failure_reason = Some(FailureReason::Failed { aim: ApplyProgress::Static, evidence });
        let memory = EntityMemory { failed_attempts: 1, failure_reason, ..self.entry.memory.clone() };
        self.put(EntityAccount::of(&memory, &AgentActivity::Idle, &CheckSummary::NoChecks, None));
    }

    fn put(&self, account: EntityAccount) {
        self.context.board.send_if_modified(|board| {
            let same = board.entities.get(&self.name) == Some(&account);
            if !same {
                board.entities.insert(self.name.clone(), account);
            }
            !same
        });
    }

    fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// What commands about `version` are told.
    fn facts(&self, version: &Version, run: String) -> CommandFacts {
        CommandFacts {
            version: version.to_string(),
            previous: self.entry.memory.running.as_ref().map_or(String::new(), Version::to_string),
            entity: self.name.to_string(),
            node: self.context.node.to_string(),
            run,
        }
    }

    /// A name no other run has; the last part sorts by time.
    fn next_run(&mut self) -> String {
        self.runs = self.runs.saturating_add(1);
        let (node, name, now) = (&self.context.node, &self.name, self.now().as_millis());
        format!("{node}/{name}/{now}-{}-{}", std::process::id(), self.runs)
    }

    /// The name all runs of this entity's checks share.
    fn check_run(&self) -> String {
        format!("{}/{}/check", self.context.node, self.name)
    }

    fn service_log(&self) -> PathBuf {
        self.context.logs.join(format!("{}.service.log", self.name))
    }

    fn seed(&self) -> u64 {
        self.context.seed
    }
}

/// Waits for a verdict to turn; for ever, without checks.
async fn turned(checks: Option<&mut EntityChecks>) {
    match checks {
        Some(checks) => checks.turned().await,
        None => std::future::pending().await,
    }
}

/// Waits for a process to end; for ever, without one.
async fn ended(process: Option<&mut SupervisedProcess>) {
    match process {
        Some(process) => drop(process.wait().await),
        None => std::future::pending().await,
    }
}
