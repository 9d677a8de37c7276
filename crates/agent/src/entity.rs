//! One task per entity: looks at what is, asks core for the next step, does it, and remembers the outcome.
//!
//! Nothing is begun that is not in the ledger first. Only this task changes its entity's memory and its process.

mod act;
mod again;
mod files;
mod follow;
mod log;
mod look;
mod need;
mod step;
mod validate;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::local::account::{Account, Busy, Runs};
use bellwether_core::local::memory::{Memory, Progress, Setback};
use bellwether_core::local::plan::{self, Rest, Seen, Step};
use bellwether_core::local::wellness::{Vital, Wellness};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::records::order::{Means, Order};
use bellwether_core::words::name::{EntityName, Namespace, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::version::Version;
use bellwether_rt::clock::Clock;
use bellwether_rt::fail::{self, Point};
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::apply::Facts;
use crate::apply::kept::Waiting;
use crate::apply::log::Recent;
use crate::apply::process::Process;
use crate::board::Board;
use crate::catalogue::Picture;
use crate::check::Checks;
use crate::config::OnExit;
use crate::config::recipe::{Kind, Recipe};
use crate::ledger::{Entry, Ledger};
use crate::params::Shelf;

/// A ledger that cannot be written is tried again after this: a full disk is emptied by people.
const HOLD: Duration = Duration::from_secs(2);

/// What all entities of a node share.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    pub(crate) node: NodeName,
    pub(crate) namespace: Namespace,
    pub(crate) shelf: Shelf,
    pub(crate) ledger: Ledger,
    pub(crate) logs: PathBuf,
    pub(crate) on_exit: OnExit,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    pub(crate) orders: watch::Receiver<Option<Arc<Order>>>,
    pub(crate) picture: watch::Receiver<Arc<Picture>>,
    pub(crate) board: watch::Sender<Board>,
    /// Logs of failed runs, on their way to the control plane.
    pub(crate) failed: watch::Sender<Waiting>,
    /// Chance for this agent's life: spreads retries and checks.
    pub(crate) seed: u64,
}

/// One entity on this node.
#[derive(Debug)]
pub(crate) struct Entity {
    name: EntityName,
    recipe: Option<Recipe>,
    ground: Ground,
    entry: Entry,
    /// What is on disk; `None` before the first write of this agent's life.
    kept: Option<Entry>,
    process: Option<Process>,
    checks: Option<Checks>,
    wellness: Wellness,
    vital: Vital,
    /// Why the last validation of what runs failed, until it passes or what runs is configured again.
    refuted: Option<Evidence>,
    /// What the run under way, or the last one, said.
    recent: Recent,
    /// Failed runs whose logs are kept.
    failed: Runs,
    /// When what runs is validated again; `None` for never.
    validate_at: Option<Timestamp>,
    /// When the dynamic part is to run again because of what it follows.
    follow_at: Option<Timestamp>,
    /// Since when needs are waited for.
    needing: need::Needing,
    paused: Option<String>,
    /// Counts runs, so that each has its own name.
    runs: u64,
    /// The ledger could not be written when last tried.
    held: bool,
}

/// Whether the entity's work goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Look,
    Stop,
}

impl Entity {
    /// An entity as the ledger remembers it.
    pub(crate) fn new(name: EntityName, recipe: Option<Recipe>, entry: Entry, ground: Ground) -> Self {
        Self {
            name,
            recipe,
            ground,
            kept: Some(entry.clone()),
            entry,
            process: None,
            checks: None,
            wellness: Wellness::default(),
            vital: Vital::NoChecks,
            refuted: None,
            recent: Recent::default(),
            failed: Runs::default(),
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
        while self.turn().await == Next::Look {}
        self.leave().await;
    }

    /// Looks once, and does the one thing that follows.
    async fn turn(&mut self) -> Next {
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
        if let Kind::Action(name, action) = &recipe.kind {
            return self.act(name, action).await;
        }
        let seen = Seen {
            paused: self.paused.is_some(),
            unwell: matches!(self.vital, Vital::Unwell(_)),
            validate_at: self.validate_at,
            follow_at: self.follow_at(&recipe),
        };
        match plan::next(&self.entry.memory, seen, self.now()) {
            Step::Static(version) => {
                self.entry.memory.begins(&version);
                self.refuted = None;
                self.step(&recipe, &version, Progress::Static).await
            }
            Step::Dynamic(version) => match self.unmet(&recipe) {
                unmet if unmet.is_empty() => self.step(&recipe, &version, Progress::Dynamic).await,
                unmet => self.wait_for(&unmet).await,
            },
            Step::Validate(version) => self.step(&recipe, &version, Progress::Validated).await,
            Step::Refresh(version) => self.refresh(&recipe, &version).await,
            Step::Revalidate(version) => self.revalidate(&recipe, &version).await,
            Step::Rest(Rest::Paused, until) => self.rest_paused(until).await,
            Step::Rest(Rest::Right | Rest::ToldNothing | Rest::BackingOff | Rest::Spent, until) => {
                self.say(&Busy::No);
                self.rest(until).await
            }
        }
    }

    /// Says that a person paused the node, and waits.
    async fn rest_paused(&mut self, until: Option<Timestamp>) -> Next {
        let why = self.paused.as_deref().unwrap_or_default();
        self.say(&Busy::Held(format!("{}: {why}", Rest::Paused)));
        self.rest(until).await
    }

    /// Waits for anything that may change the plan.
    async fn rest(&mut self, until: Option<Timestamp>) -> Next {
        let token = self.ground.tasks.token();
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
            () = token.cancelled() => return Next::Stop,
            changed = self.ground.orders.changed() => if changed.is_err() {
                return Next::Stop;
            },
            learned = self.ground.picture.changed(), if needing => if learned.is_err() {
                return Next::Stop;
            },
            () = turned(self.checks.as_mut()) => {}
            () = ended(process) => {}
            () = alarm => {}
        }
        Next::Look
    }

    /// Says that nothing can be begun, and waits before trying again.
    async fn hold(&mut self, reason: String) -> Next {
        if !self.held {
            tracing::error!(entity = %self.name, "could not {reason}; nothing is begun before it can");
        }
        self.held = true;
        self.say(&Busy::Held(format!("could not {reason}")));
        let token = self.ground.tasks.token();
        tokio::select! {
            () = token.cancelled() => Next::Stop,
            () = tokio::time::sleep(HOLD) => Next::Look,
        }
    }

    /// Brings the ledger up to date.
    async fn keep(&mut self) -> Result<(), String> {
        if self.kept.as_ref() == Some(&self.entry) {
            return Ok(());
        }
        let before = self.kept.take();
        let written = self.ground.ledger.keep_entity(&self.name, &self.entry).await;
        written.map_err(|error| error.to_string())?;
        self.kept = Some(self.entry.clone());
        self.held = false;
        match (before.is_some_and(|before| before.run.is_some()), self.entry.run.is_some()) {
            (_, true) => fail::pass(Point::RunKept),
            (true, false) => fail::pass(Point::EndKept),
            (false, false) => {}
        }
        Ok(())
    }

    /// Puts on the board where this entity stands.
    fn say(&self, busy: &Busy) {
        let account = Account::of(&self.entry.memory, busy, &self.vital, self.wellness.since());
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
            Kind::Versions => "versions".to_owned(),
            Kind::Files(_) => "a profile".to_owned(),
            Kind::Action(name, _) => format!("action {name}"),
        };
        let (fits, is) = match (wanted.means, &recipe.kind) {
            (Means::Apply, kind) => (*kind == Kind::Versions, "versions".to_owned()),
            (Means::Render, kind) => (matches!(kind, Kind::Files(_)), "a profile".to_owned()),
            (Means::Run | Means::Acknowledge, Kind::Action(name, _)) => {
                (name.as_str() == told, format!("action {told}"))
            }
            (Means::Run | Means::Acknowledge, Kind::Versions | Kind::Files(_)) => {
                (false, format!("action {told}"))
            }
        };
        let name = &self.name;
        (!fits).then(|| format!("this node's recipe for {name} is for {here}, and the entity is for {is}"))
    }

    /// Says that nothing is done, and why.
    fn say_refused(&self, summary: String) {
        let evidence = Evidence { summary, ..Evidence::default() };
        let setback = Some(Setback::Failed { aim: Progress::Static, evidence });
        let memory = Memory { failed_attempts: 1, setback, ..self.entry.memory.clone() };
        self.put(Account::of(&memory, &Busy::No, &Vital::NoChecks, None));
    }

    fn put(&self, account: Account) {
        self.ground.board.send_if_modified(|board| {
            let same = board.entities.get(&self.name) == Some(&account);
            if !same {
                board.entities.insert(self.name.clone(), account);
            }
            !same
        });
    }

    fn now(&self) -> Timestamp {
        self.ground.clock.now()
    }

    /// What commands about `version` are told.
    fn facts(&self, version: &Version, run: String) -> Facts {
        Facts {
            version: version.to_string(),
            previous: self.entry.memory.running.as_ref().map_or(String::new(), Version::to_string),
            entity: self.name.to_string(),
            node: self.ground.node.to_string(),
            run,
        }
    }

    /// A name no other run has; the last part sorts by time.
    fn next_run(&mut self) -> String {
        self.runs = self.runs.saturating_add(1);
        let (node, name, now) = (&self.ground.node, &self.name, self.now().as_millis());
        format!("{node}/{name}/{now}-{}-{}", std::process::id(), self.runs)
    }

    /// The name all runs of this entity's checks share.
    fn check_run(&self) -> String {
        format!("{}/{}/check", self.ground.node, self.name)
    }

    fn service_log(&self) -> PathBuf {
        self.ground.logs.join(format!("{}.service.log", self.name))
    }

    fn seed(&self) -> u64 {
        self.ground.seed
    }
}

/// Waits for a verdict to turn; for ever, without checks.
async fn turned(checks: Option<&mut Checks>) {
    match checks {
        Some(checks) => checks.turned().await,
        None => std::future::pending().await,
    }
}

/// Waits for a process to end; for ever, without one.
async fn ended(process: Option<&mut Process>) {
    match process {
        Some(process) => drop(process.wait().await),
        None => std::future::pending().await,
    }
}
