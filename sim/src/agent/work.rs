//! What a simulated agent does about its orders, one entity after the other, by the real agent's plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_core::local::account::{AgentActivity, EntityAccount};
use bellwether_core::local::action;
use bellwether_core::local::health_tracker::{CheckSummary, HealthTracker};
use bellwether_core::local::memory::{ApplyProgress, EntityMemory, RunOutcome, StepOutcome};
use bellwether_core::local::plan::{self, ApplyStep, LocalObservation};
use bellwether_core::local::runs_here::RunsHere;
use bellwether_core::local::soak::SoakMeter;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::records::order::ApplyMethod;
use bellwether_core::words::name::EntityName;
use bellwether_core::words::random::RandomStream;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;
use bellwether_rt::clock::Clock;
use tokio::sync::watch;

use super::link::AgentConnection;
use super::node::{AgentNode, AgentReport};

/// The task that works on orders.
pub(super) struct OrderWorker {
    pub(super) node: AgentNode,
    pub(super) clock: Clock,
    pub(super) board: watch::Sender<AgentReport>,
    pub(super) orders: watch::Sender<u64>,
    pub(super) wellness: BTreeMap<EntityName, HealthTracker>,
    /// What is known of the soak of each entity, and when that was.
    pub(super) soaks: BTreeMap<EntityName, (SoakMeter, Timestamp)>,
    pub(super) chance: RandomStream,
    pub(super) line: AgentConnection,
    /// The runs that keep others from beginning on the node.
    pub(super) runs_here: RunsHere,
    /// The runs whose memory this life of the agent has read.
    pub(super) recalled: BTreeSet<EntityName>,
}

impl OrderWorker {
    pub(super) async fn run(mut self) {
        self.wake();
        self.recall_runs();
        let mut orders = self.orders.subscribe();
        loop {
            orders.borrow_and_update();
            self.look();
            let (names, mut until) = (self.names(), None);
            let (mut worked, runs_before) = (false, self.runs_here.clone());
            for name in names {
                match self.turn(&name).await {
                    WorkTurn::Worked => worked = true,
                    WorkTurn::Rests(at) => until = [until, at].into_iter().flatten().min(),
                }
            }
            // One that rests may have waited for what another is known by now to be.
            if worked || self.runs_here != runs_before {
                continue;
            }
            let soaks = self.soaks.values().filter_map(|(meter, looked)| Some(looked.plus(meter.missing()?)));
            let until = soaks.chain(until).min();
            let alarm =
                until.map(|until| until.since(self.clock.now()).to_duration() + Duration::from_millis(1));
            tokio::select! {
                biased;
                changed = orders.changed() => if changed.is_err() { return },
                () = async {
                    match alarm {
                        Some(alarm) => tokio::time::sleep(alarm).await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        }
    }

    /// A run that was in progress when the previous agent died has failed: nobody knows how it ended.
    fn wake(&mut self) {
        let (now, seed) = (self.clock.now(), self.chance.draw());
        let mut disk = self.node.disk();
        let disk = &mut *disk;
        for (name, memory) in &mut disk.memories {
            memory.restarted(now);
            if disk.works.contains_key(name) {
                continue;
            }
            let begun = memory.ran.as_ref().is_some_and(|ran| ran.outcome == RunOutcome::Begun);
            if begun {
                memory.cut_short(false, now, seed);
            }
        }
    }

    /// Takes over the order's assignments.
    fn look(&mut self) {
        let mut disk = self.node.disk();
        let Some(order) = disk.order.clone() else { return };
        for (name, assigned) in &order.content.entities {
            disk.memories.entry(name.clone()).or_default().assign(assigned.clone());
        }
        drop(disk);
        self.forget_runs();
        for name in self.names() {
            self.say(&name, &AgentActivity::Idle);
        }
        self.board.send_if_modified(|board| {
            let newer = board.generation != order.generation.get();
            board.generation = order.generation.get();
            newer
        });
    }

    fn names(&self) -> Vec<EntityName> {
        self.node.disk().memories.keys().cloned().collect()
    }

    pub(super) fn memory(&self, name: &EntityName) -> EntityMemory {
        self.node.disk().memories.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn change(&self, name: &EntityName, change: impl FnOnce(&mut EntityMemory)) {
        change(self.node.disk().memories.entry(name.clone()).or_default());
    }

    async fn turn(&mut self, name: &EntityName) -> WorkTurn {
        let memory = self.memory(name);
        let paused = self.node.disk().order.as_ref().is_some_and(|order| order.content.paused.is_some());
        match memory.wanted.as_ref().map(|wanted| wanted.method) {
            Some(ApplyMethod::Run | ApplyMethod::Acknowledge) => {
                return self.act(name, &memory, paused).await;
            }
            Some(ApplyMethod::Workflow) => return self.carry_out(name, &memory, paused).await,
            Some(ApplyMethod::Apply | ApplyMethod::Render) | None => {}
        }
        let seen = LocalObservation { paused, unhealthy: false, validate_at: None, follow_at: None };
        match plan::next(&memory, seen, self.clock.now()) {
            ApplyStep::Static(version) => {
                self.change(name, |memory| memory.begins(&version));
                self.step(name, ApplyProgress::Static, &version).await
            }
            ApplyStep::Dynamic(version) => self.step(name, ApplyProgress::Dynamic, &version).await,
            ApplyStep::Validate(version) => self.step(name, ApplyProgress::Validated, &version).await,
            ApplyStep::Rest(_, until) => {
                self.say(name, &AgentActivity::Idle);
                WorkTurn::Rests(until)
            }
            ApplyStep::Refresh(_) | ApplyStep::Revalidate(_) => WorkTurn::Rests(None),
        }
    }

    async fn step(&mut self, name: &EntityName, aim: ApplyProgress, version: &Version) -> WorkTurn {
        self.say(name, &AgentActivity::Step(aim));
        tokio::time::sleep(Duration::from_millis(50 + self.chance.below(1_000))).await;
        let bad = aim == ApplyProgress::Validated && version.to_string().starts_with("bad");
        let outcome = if bad || (self.chance.happens(20_000) && !self.node.is_steady) {
            let summary = format!("{aim:?} of {version} failed");
            StepOutcome::Failed(Evidence { summary, ..Evidence::default() })
        } else {
            StepOutcome::Done
        };
        let (now, seed) = (self.clock.now(), self.chance.draw());
        self.change(name, |memory| memory.ended(aim, outcome, now, seed));
        self.say(name, &AgentActivity::Idle);
        WorkTurn::Worked
    }

    async fn act(&mut self, name: &EntityName, memory: &EntityMemory, paused: bool) -> WorkTurn {
        match action::next(memory, &self.node.ledger(), paused) {
            action::ActionStep::Run(version) => {
                self.change(name, |memory| memory.runs(&version));
                self.node.begins(&version);
                self.node.trace.say(&format!("{} runs {version}", self.node.name));
                self.say(name, &AgentActivity::Step(ApplyProgress::Dynamic));
                tokio::time::sleep(Duration::from_millis(50 + self.chance.below(1_000))).await;
                let (now, seed) = (self.clock.now(), self.chance.draw());
                self.change(name, |memory| memory.finished(StepOutcome::Done, now, seed));
                WorkTurn::Worked
            }
            action::ActionStep::Lose(version) => {
                let (now, seed) = (self.clock.now(), self.chance.draw());
                self.change(name, |memory| memory.loses(&version, false, now, seed));
                WorkTurn::Worked
            }
            action::ActionStep::Acknowledge(version) => {
                self.change(name, |memory| memory.acknowledges(&version));
                WorkTurn::Worked
            }
            action::ActionStep::Rest(_) => {
                self.say(name, &AgentActivity::Idle);
                WorkTurn::Rests(None)
            }
        }
    }

    /// Counts the healthy time since the last look. There are no checks to ask again at its end.
    fn soak(&mut self, name: &EntityName, memory: &EntityMemory) -> Option<Span> {
        let now = self.clock.now();
        let (meter, looked) = self.soaks.entry(name.clone()).or_insert((SoakMeter::default(), now));
        let wanted = memory.wanted.as_ref();
        let (before, _) = meter.observed();
        meter.follow(wanted.filter(|wanted| memory.settled() == Some(&wanted.version)));
        if meter.observed().0 == before && meter.missing().is_some() {
            meter.add(now.since(*looked));
        }
        *looked = now;
        if meter.asks() {
            meter.confirm();
        }
        meter.confirmed()
    }

    /// Reports the state of an entity.
    pub(super) fn say(&mut self, name: &EntityName, busy: &AgentActivity) {
        let memory = self.memory(name);
        let wellness = self.wellness.entry(name.clone()).or_default();
        wellness.observe(memory.settled(), &CheckSummary::NoChecks, self.clock.now());
        let account = EntityAccount::of(&memory, busy, &CheckSummary::NoChecks, wellness.since());
        let account = account.having_soaked(self.soak(name, &memory), None);
        let jobs = self.node.disk().works.get(name).map(|stored| stored.memory.jobs.clone());
        let account = account.with_jobs(jobs);
        self.board.send_if_modified(|board| {
            let same = board.entities.get(name) == Some(&account);
            if !same {
                board.entities.insert(name.clone(), account);
            }
            !same
        });
    }
}

/// The outcome of one look at an entity.
pub(super) enum WorkTurn {
    Worked,
    Rests(Option<Timestamp>),
}
