//! One history: a seed's installation, its people and its blows; then peace, in which all must come to rest.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use bellwether_core::rollout::rehearsal::chance::Chance;
use bellwether_rt::clock::Clock;
use bellwether_rt::gate::Gate;
use bellwether_rt::tasks::Tasks;
use bellwether_server::config::Config;
use bellwether_server::config::etcd::Etcd;
use bellwether_server::pki::Pki;
use bellwether_server::rules::Rules;
use bellwether_store::Store;
use bellwether_store::testing::line::Trouble;
use tokio::runtime::{Builder, RngSeed};
use tokio::time::Instant;

use crate::agent::Agent;
use crate::chaos::{self, Blow, Mood};
use crate::law::{Laws, Seen, linearisable};
use crate::locker::one_at_a_time;
use crate::machine::{Ground, Machine};
use crate::network::Network;
use crate::person::People;
use crate::site::{self, BEGIN};
use crate::stage::Stage;
use crate::trace::Trace;

/// How many servers there are.
const SERVERS: usize = 3;

/// How many agents.
const AGENTS: usize = 8;

/// How often the history looks at who can reach whom.
const LOOK: Duration = Duration::from_millis(250);

/// How often servers list everything anew: sooner than real ones, as trouble comes sooner too.
const RELIST_EVERY: Duration = Duration::from_secs(30);

/// What a history is made with.
#[derive(Debug, Clone)]
pub struct Options {
    /// For how long things go wrong, by the clocks of the history.
    pub trouble: Duration,
    /// For how long after that all may come to rest.
    pub peace: Duration,
    /// What may go wrong.
    pub mood: Mood,
    /// A rule that servers do without, to see that it is needed.
    pub without: Option<Without>,
}

/// A rule that servers do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Without {
    /// Listing everything anew now and then.
    Relisting,
    /// Dropping what a watch tells twice.
    DroppingRepeats,
    /// Comparing the leadership in a decider's commit.
    Fencing,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            trouble: Duration::from_secs(240),
            peace: Duration::from_secs(400),
            mood: Mood::Everything,
            without: None,
        }
    }
}

/// What a history came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// The sum of its trace, and how many lines there were.
    pub sum: (String, u64),
    /// How many commits the store took.
    pub commits: u64,
    /// The laws that did not hold.
    pub broken: Vec<String>,
    /// Its last lines.
    pub lines: Vec<String>,
}

/// Makes the authority in `dir` that all histories share: it is no part of what they are about.
///
/// # Errors
/// When it cannot be written.
pub fn authority(dir: &Path) -> anyhow::Result<()> {
    Pki::open(dir, &[], BEGIN).context("make an authority").map(drop)
}

/// Plays the history of a seed, with the authority in `dir`.
///
/// # Errors
/// When it could not be played at all.
pub fn play(seed: u64, options: &Options, dir: &Path) -> anyhow::Result<Outcome> {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .rng_seed(RngSeed::from_bytes(&seed.to_be_bytes()))
        .build()
        .context("make a runtime")?;
    let outcome = runtime.block_on(History::new(seed, options, dir)?.play());
    // What is still there of the simulated processes is dropped with the runtime.
    drop(runtime);
    outcome
}

struct History {
    seed: u64,
    options: Options,
    config: Config,
    dir: std::path::PathBuf,
    chance: Chance,
}

impl History {
    fn new(seed: u64, options: &Options, dir: &Path) -> anyhow::Result<Self> {
        let mut config = Config::load(None)?;
        let without = |rule| options.without == Some(rule);
        config.rules = Rules {
            relist_every: (!without(Without::Relisting)).then_some(RELIST_EVERY),
            drops_repeats: !without(Without::DroppingRepeats),
            fences: !without(Without::Fencing),
        };
        config.etcd = Some(Etcd {
            endpoints: vec!["http://simulated:2379".to_owned()],
            prefix: "/bellwether".to_owned(),
            ca_file: None,
            identity: None,
            call_timeout: None,
        });
        let chance = Chance::for_one(seed, "blows", 0);
        Ok(Self { seed, options: options.clone(), config, dir: dir.to_owned(), chance })
    }

    async fn play(mut self) -> anyhow::Result<Outcome> {
        let (tasks, trace) = (Tasks::new(), Trace::default());
        let mut stage = self.stage(&tasks, &trace).await?;
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let laws = Laws::new(&trace, &stage.able);
        tasks.spawn("laws", laws.watch(stage.store.clone(), seen.clone()));
        for number in 0..SERVERS {
            self.start(&mut stage, number);
        }
        for agent in &mut stage.agents {
            agent.start(&stage.clock);
        }
        let people = People::new(&stage.network, &trace, SERVERS, self.seed);
        let away = Gate::default();
        people.start(&tasks.behind(&away));

        let end = Instant::now() + self.options.trouble;
        let mut next = chaos::next(&mut self.chance, SERVERS, AGENTS, self.options.mood);
        let mut falls = Instant::now() + Duration::from_millis(next.0);
        while Instant::now() < end && !trace.is_broken() {
            tokio::time::sleep(LOOK).await;
            self.mend(&mut stage);
            if Instant::now() >= falls {
                let (_, blow, lasts) = next;
                self.strike(&mut stage, blow, Duration::from_millis(lasts)).await;
                next = chaos::next(&mut self.chance, SERVERS, AGENTS, self.options.mood);
                falls = Instant::now() + Duration::from_millis(next.0);
            }
            stage.look();
        }
        trace.say("peace");
        away.broken();
        self.make_peace(&mut stage);
        self.come_to_rest(&mut stage, &seen).await;
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        linearisable(&trace, &people.writes(), &seen.editions);
        one_at_a_time(&trace, &people.holdings());
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

    /// Waits until nothing is left to be done.
    async fn come_to_rest(&self, stage: &mut Stage, seen: &Mutex<Seen>) {
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
            Chance::for_one(self.seed, name, u64::try_from(number).unwrap_or_default()).draw()
        };
        let machines = (0..SERVERS).map(|number| Machine::new(number, draw("line", number)));
        let agents = names
            .iter()
            .enumerate()
            .map(|(number, name)| Agent::new(name, SERVERS, &network, trace, draw("agent", number)));
        Ok(Stage {
            machines: machines.collect(),
            agents: agents.collect(),
            store,
            network,
            trace: trace.clone(),
            able: Arc::new(Mutex::new(BTreeMap::new())),
            clock,
            mends: Vec::new(),
        })
    }

    fn start(&self, stage: &mut Stage, number: usize) {
        let Stage { store, network, trace, machines, clock, .. } = stage;
        let ground = Ground { store, dir: &self.dir, config: &self.config, network, trace };
        if let Some(machine) = machines.get_mut(number) {
            machine.start(ground, clock.clone());
        }
    }

    async fn strike(&self, stage: &mut Stage, blow: Blow, lasts: Duration) {
        stage.trace.say(&format!("blow: {blow:?} for {} ms", lasts.as_millis()));
        let Stage { store, network, trace, machines, agents, .. } = stage;
        match &blow {
            Blow::Kill(server) => {
                machines.get_mut(*server).into_iter().for_each(|machine| machine.kill(network, trace));
            }
            Blow::KillAll => machines.iter_mut().for_each(|machine| machine.kill(network, trace)),
            Blow::Stand(server) => {
                machines.get_mut(*server).into_iter().for_each(|machine| machine.stand(trace));
            }
            Blow::Cut(server) => machines.get(*server).into_iter().for_each(|machine| machine.line.cut()),
            Blow::Trouble(server, trouble) => {
                let machine = machines.get(*server).into_iter();
                machine.for_each(|machine| machine.line.trouble(trouble.clone()));
            }
            Blow::Apart(agent, server) => {
                agents.get(*agent).into_iter().for_each(|agent| network.cut(&agent.name, *server));
            }
            Blow::Alone(agent) => {
                let agent = agents.get(*agent).into_iter();
                agent.for_each(|agent| (0..SERVERS).for_each(|server| network.cut(&agent.name, server)));
            }
            Blow::KillAgent(agent) => agents.get_mut(*agent).into_iter().for_each(Agent::kill),
            Blow::StandAgent(agent) => agents.get_mut(*agent).into_iter().for_each(Agent::stand),
            Blow::Compact => {
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

    /// Mends what has gone wrong for long enough.
    fn mend(&self, stage: &mut Stage) {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut stage.mends).into_iter().partition(|(at, _)| *at <= now);
        stage.mends = later;
        let due: Vec<(Instant, Blow)> = due;
        for (_, blow) in due {
            self.undo(stage, &blow);
        }
    }

    fn undo(&self, stage: &mut Stage, blow: &Blow) {
        match blow {
            Blow::Kill(server) => self.start(stage, *server),
            Blow::KillAll => (0..SERVERS).for_each(|server| self.start(stage, server)),
            Blow::Stand(server) => {
                let trace = stage.trace.clone();
                stage.machines.get_mut(*server).into_iter().for_each(|machine| machine.go_on(&trace));
            }
            Blow::Cut(server) => {
                stage.machines.get(*server).into_iter().for_each(|machine| machine.line.heal())
            }
            Blow::Trouble(server, _) => {
                let machine = stage.machines.get(*server).into_iter();
                machine.for_each(|machine| machine.line.trouble(Trouble::default()));
            }
            Blow::Apart(agent, server) => {
                let agent = stage.agents.get(*agent).into_iter();
                agent.for_each(|agent| stage.network.mend(&agent.name, *server));
            }
            Blow::Alone(agent) => {
                let agent = stage.agents.get(*agent).into_iter();
                agent.for_each(|agent| {
                    (0..SERVERS).for_each(|server| stage.network.mend(&agent.name, server))
                });
            }
            Blow::KillAgent(agent) => {
                let clock = stage.clock.clone();
                stage.agents.get_mut(*agent).into_iter().for_each(|agent| agent.start(&clock));
            }
            Blow::StandAgent(agent) => stage.agents.get_mut(*agent).into_iter().for_each(Agent::go_on),
            Blow::Compact => {}
        }
    }

    fn make_peace(&self, stage: &mut Stage) {
        stage.mends.clear();
        stage.network.mend_all();
        let (trace, clock) = (stage.trace.clone(), stage.clock.clone());
        for machine in &mut stage.machines {
            machine.line.heal();
            machine.line.trouble(Trouble::default());
            machine.go_on(&trace);
        }
        for agent in &mut stage.agents {
            agent.go_on();
            agent.start(&clock);
        }
        (0..SERVERS).for_each(|server| self.start(stage, server));
    }
}
