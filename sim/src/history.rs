//! One history: an installation with its users under faults drawn from a seed, then a quiet time in which it must converge.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use bellwether_core::words::random::RandomStream;
use bellwether_rt::clock::Clock;
use bellwether_rt::gate::TestGate;
use bellwether_rt::tasks::Tasks;
use bellwether_server::config::Config;
use bellwether_server::config::etcd::Etcd;
use bellwether_server::pki::Pki;
use bellwether_server::records::key_text;
use bellwether_server::store_rules::StoreRules;
use bellwether_store::Store;
use bellwether_store::testing::faulty::FaultInjection;
use tokio::runtime::{Builder, RngSeed};
use tokio::time::Instant;

use crate::agent::{Agent, AgentSite};
use crate::cast::Stage;
use crate::chaos::{self, Disruption, FaultMix, HOSTS};
use crate::clocks::host_clock;
use crate::executions::Executions;
use crate::law::{LawSummary, Laws, linearisable};
use crate::locker::one_at_a_time;
use crate::machine::{Machine, ServerContext};
use crate::network::Network;
use crate::people::People;
use crate::rules::DisabledRule;
use crate::run_law;
use crate::site::{self, BEGIN};
use crate::staff;
use crate::stores::TrueStores;
use crate::trace::Trace;

/// Number of servers.
const SERVERS: usize = 3;

/// Number of agents.
const AGENTS: usize = 8;

/// Interval at which the history records who can reach whom.
const LOOK: Duration = Duration::from_millis(250);

/// Interval at which servers compare their world with the store: shorter than in reality, as faults are more frequent, too.
const RELIST_EVERY: Duration = Duration::from_secs(30);

/// Options of a history.
#[derive(Debug, Clone)]
pub struct Options {
    /// Duration of the faults, in simulated time.
    pub trouble: Duration,
    /// Longest time to converge after that.
    pub peace: Duration,
    /// Which faults may occur.
    pub mix: FaultMix,
    /// A rule that servers or agents ignore, to show that it is needed.
    pub without: Option<DisabledRule>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            trouble: Duration::from_secs(240),
            peace: Duration::from_secs(400),
            mix: FaultMix::Everything,
            without: None,
        }
    }
}

/// The outcome of a history.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// The digest of its trace, and the number of its lines.
    pub sum: (String, u64),
    /// Number of the store's commits.
    pub commits: u64,
    /// Laws that were broken.
    pub broken: Vec<String>,
    /// The last lines of its trace.
    pub lines: Vec<String>,
}

/// Plays the history of a seed with the authority in `dir`.
///
/// # Errors
/// If it cannot be played at all; broken laws are part of the outcome.
pub fn play(seed: u64, options: &Options, dir: &Path) -> anyhow::Result<Outcome> {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(&seed.to_be_bytes()))
        .build()
        .context("make a runtime")?;
    let outcome = runtime.block_on(History::new(seed, options, dir)?.play());
    // What remains of the simulated processes is dropped with the runtime.
    drop(runtime);
    outcome
}

struct History {
    seed: u64,
    options: Options,
    config: Config,
    dir: std::path::PathBuf,
    chance: RandomStream,
}

impl History {
    fn new(seed: u64, options: &Options, dir: &Path) -> anyhow::Result<Self> {
        let mut config = Config::load(None)?;
        let without = |rule| options.without == Some(rule);
        config.rules = StoreRules {
            relist_every: (!without(DisabledRule::Relisting)).then_some(RELIST_EVERY),
            drops_repeats: !without(DisabledRule::DroppingRepeats),
            fences: !without(DisabledRule::Fencing),
            confirms_keys: !without(DisabledRule::ConfirmingKeys),
            bounds_clocks: !without(DisabledRule::ClockBound),
        };
        config.etcd = Some(Etcd {
            endpoints: vec!["http://simulated:2379".to_owned()],
            prefix: "/bellwether".to_owned(),
            ca_file: None,
            identity: None,
            call_timeout: None,
            follow_members: false,
        });
        let chance = RandomStream::for_one(seed, "blows", 0);
        Ok(Self { seed, options: options.clone(), config, dir: dir.to_owned(), chance })
    }

    async fn play(mut self) -> anyhow::Result<Outcome> {
        let (tasks, trace) = (Tasks::new(), Trace::default());
        let mut stage = self.stage(&tasks, &trace).await?;
        let seen: Arc<Mutex<LawSummary>> = Arc::default();
        let laws = Laws::new(&trace, &stage.able)
            .of_steady_nodes(self.options.mix == FaultMix::Outages)
            .of_stores(stage.stores.as_ref());
        tasks.spawn("laws", laws.watch(stage.store.clone(), seen.clone()));
        for number in 0..SERVERS {
            self.start(&mut stage, number);
        }
        for agent in &mut stage.agents {
            agent.start();
        }
        let people = People::new(&stage.network, &trace, SERVERS, self.seed);
        let away = TestGate::default();
        people.start(&tasks.behind(&away));
        let kind = (self.seed, self.options.mix, self.options.without);
        staff::start(kind, &stage, &seen, (&tasks, &tasks.behind(&away)));

        let end = Instant::now() + self.options.trouble;
        let mut next = chaos::next(&mut self.chance, SERVERS, AGENTS, self.options.mix);
        let mut falls = Instant::now() + Duration::from_millis(next.0);
        while Instant::now() < end && !trace.is_broken() {
            tokio::time::sleep(LOOK).await;
            self.mend(&mut stage);
            if Instant::now() >= falls {
                let (_, blow, lasts) = next;
                self.strike(&mut stage, blow, Duration::from_millis(lasts)).await;
                next = chaos::next(&mut self.chance, SERVERS, AGENTS, self.options.mix);
                falls = Instant::now() + Duration::from_millis(next.0);
            }
            stage.look();
        }
        trace.say("peace");
        away.broken();
        self.make_peace(&mut stage);
        self.come_to_rest(&mut stage, &seen).await;
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        linearisable(&trace, &people.writes(), &seen.profile_revisions);
        one_at_a_time(&trace, &people.holdings());
        for fleet in seen.world.fleets.values().filter(|_| !trace.is_broken()) {
            run_law::accounted(&trace, fleet, &stage.executions);
        }
        for agent in &stage.agents {
            for run in agent.runs().1 {
                trace.breaks(&format!("{} began {run} more than once", agent.name));
            }
        }
        Ok(Outcome {
            seed: self.seed,
            sum: trace.sum(),
            commits: seen.commits,
            broken: trace.broken(),
            lines: trace.lines(),
        })
    }

    /// Waits until everything has converged.
    async fn come_to_rest(&self, stage: &mut Stage, seen: &Mutex<LawSummary>) {
        let (trace, end) = (stage.trace.clone(), Instant::now() + self.options.peace);
        let mut restless = String::new();
        while Instant::now() < end && !trace.is_broken() {
            tokio::time::sleep(LOOK * 8).await;
            stage.look();
            let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            restless = stage.restless(&seen);
            if restless.is_empty() {
                return;
            }
        }
        if !trace.is_broken() {
            trace.breaks(&format!("all is well and still it does not come to rest: {restless}"));
        }
    }

    async fn stage(&self, tasks: &Tasks, trace: &Trace) -> anyhow::Result<Stage> {
        let clock = Clock::of_runtime(BEGIN);
        let store = Store::memory(tasks);
        let names: Vec<String> = (1..=AGENTS).map(|number| format!("web-{number}")).collect();
        let pki = Pki::open(&self.dir, &[], clock.now())?;
        site::furnish(&store, pki.ca_fingerprint(), &names).await?;
        let network = Network::new(self.seed);
        let draw = |name: &str, number: usize| {
            RandomStream::for_one(self.seed, name, u64::try_from(number).unwrap_or_default()).draw()
        };
        let host = |kind, number| host_clock(self.seed, self.options.mix, (kind, number));
        let machines =
            (0..SERVERS).map(|number| Machine::new(number, draw("line", number), host("clock", number)));
        let executions = Executions::new(trace);
        let stores = (self.options.mix == FaultMix::Stores).then(|| TrueStores::new(&names));
        let site = AgentSite {
            servers: SERVERS,
            network: &network,
            trace,
            executions: &executions,
            stores: stores.as_ref(),
        };
        let agents = names.iter().enumerate().map(|(number, name)| {
            let agent = Agent::new(name, site, host("agent-clock", number), draw("agent", number))
                .hosting(number < HOSTS);
            agent.steady(self.options.mix == FaultMix::Outages).without(self.options.without)
        });
        Ok(Stage {
            machines: machines.collect(),
            agents: agents.collect(),
            executions: executions.clone(),
            stores,
            store,
            network: network.clone(),
            trace: trace.clone(),
            able: Arc::new(Mutex::new(BTreeMap::new())),
            mends: Vec::new(),
        })
    }

    fn start(&self, stage: &mut Stage, number: usize) {
        let Stage { store, network, trace, machines, .. } = stage;
        let context = ServerContext { store, dir: &self.dir, config: &self.config, network, trace };
        if let Some(machine) = machines.get_mut(number) {
            machine.start(context);
        }
    }

    async fn strike(&self, stage: &mut Stage, blow: Disruption, lasts: Duration) {
        stage.trace.say(&format!("blow: {blow:?} for {} ms", lasts.as_millis()));
        let Stage { store, network, trace, machines, agents, .. } = stage;
        match &blow {
            Disruption::Kill(server) => {
                machines.get_mut(*server).into_iter().for_each(|machine| machine.kill(network, trace));
            }
            Disruption::KillAll => machines.iter_mut().for_each(|machine| machine.kill(network, trace)),
            Disruption::Stand(server) => {
                machines.get_mut(*server).into_iter().for_each(|machine| machine.stand(trace));
            }
            Disruption::Cut(server) => {
                machines.get(*server).into_iter().for_each(|machine| machine.line.cut())
            }
            Disruption::StoreFaults(server, trouble) => {
                let machine = machines.get(*server).into_iter();
                machine.for_each(|machine| machine.line.trouble(trouble.clone()));
            }
            Disruption::Apart(agent, server) => {
                agents.get(*agent).into_iter().for_each(|agent| network.cut(&agent.name, *server));
            }
            Disruption::Alone(agent) => {
                let agent = agents.get(*agent).into_iter();
                agent.for_each(|agent| (0..SERVERS).for_each(|server| network.cut(&agent.name, server)));
            }
            Disruption::KillAgent(agent) => agents.get_mut(*agent).into_iter().for_each(Agent::kill),
            Disruption::WipeAgent(agent) => agents.get_mut(*agent).into_iter().for_each(Agent::wipe),
            Disruption::StandAgent(agent) => agents.get_mut(*agent).into_iter().for_each(Agent::stand),
            Disruption::SuspendAgent(agent) => agents.get_mut(*agent).into_iter().for_each(Agent::suspend),
            Disruption::ClockStep(server, by_ms) => {
                machines.get(*server).into_iter().for_each(|machine| machine.host.step_wall(*by_ms));
            }
            Disruption::DeleteLeader => site::delete(store, key_text::LEADER).await,
            Disruption::DeleteMembership(server) => {
                if let Some(machine) = machines.get(*server) {
                    site::delete(store, &format!("{}{}", key_text::SERVERS, machine.name())).await;
                }
            }
            Disruption::Compact => {
                let now = store.list(bellwether_store::Range::prefix("/"), None, 1).await;
                if let Ok(page) = now {
                    let forgotten = store.compact(page.revision).await;
                    trace.say(&format!(
                        "history before {} is forgotten: {}",
                        page.revision.0,
                        forgotten.is_ok()
                    ));
                }
            }
        }
        stage.mends.push((Instant::now() + lasts, blow));
    }

    /// Repairs faults that have lasted long enough.
    fn mend(&self, stage: &mut Stage) {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut stage.mends).into_iter().partition(|(at, _)| *at <= now);
        stage.mends = later;
        let due: Vec<(Instant, Disruption)> = due;
        for (_, blow) in due {
            self.undo(stage, &blow);
        }
    }

    fn undo(&self, stage: &mut Stage, blow: &Disruption) {
        match blow {
            Disruption::Kill(server) => self.start(stage, *server),
            Disruption::KillAll => (0..SERVERS).for_each(|server| self.start(stage, server)),
            Disruption::Stand(server) => {
                let trace = stage.trace.clone();
                stage.machines.get_mut(*server).into_iter().for_each(|machine| machine.go_on(&trace));
            }
            Disruption::Cut(server) => {
                stage.machines.get(*server).into_iter().for_each(|machine| machine.line.heal())
            }
            Disruption::StoreFaults(server, _) => {
                let machine = stage.machines.get(*server).into_iter();
                machine.for_each(|machine| machine.line.trouble(FaultInjection::default()));
            }
            Disruption::Apart(agent, server) => {
                let agent = stage.agents.get(*agent).into_iter();
                agent.for_each(|agent| stage.network.mend(&agent.name, *server));
            }
            Disruption::Alone(agent) => {
                let agent = stage.agents.get(*agent).into_iter();
                agent.for_each(|agent| {
                    (0..SERVERS).for_each(|server| stage.network.mend(&agent.name, server))
                });
            }
            Disruption::KillAgent(agent) | Disruption::WipeAgent(agent) => {
                stage.agents.get_mut(*agent).into_iter().for_each(Agent::start);
            }
            Disruption::StandAgent(agent) | Disruption::SuspendAgent(agent) => {
                stage.agents.get_mut(*agent).into_iter().for_each(Agent::go_on);
            }
            Disruption::Compact
            | Disruption::ClockStep(..)
            | Disruption::DeleteLeader
            | Disruption::DeleteMembership(_) => {}
        }
    }

    fn make_peace(&self, stage: &mut Stage) {
        stage.mends.clear();
        stage.network.mend_all();
        let trace = stage.trace.clone();
        for machine in &mut stage.machines {
            machine.line.heal();
            machine.line.trouble(FaultInjection::default());
            machine.go_on(&trace);
        }
        for agent in &mut stage.agents {
            agent.go_on();
            agent.start();
        }
        (0..SERVERS).for_each(|server| self.start(stage, server));
    }
}
