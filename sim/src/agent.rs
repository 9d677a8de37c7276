//! A simulated agent: its disk, its long poll, its reports, and what it does about each entity by the decisions of the real
//! agent. Applying takes time, fails now and then, and always fails for bad versions.

mod hosting;
mod link;
mod node;
mod probes;
mod runs;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::words::name::{EntityName, NodeName};
use bellwether_core::words::random::RandomStream;
use bellwether_core::words::time::Span;
use bellwether_core::words::version::Version;
use bellwether_rt::clock::{Clock, HostClock};
use bellwether_rt::gate::TestGate;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::executions::Executions;
use crate::network::Network;
use crate::rules::DisabledRule;
use crate::stores::TrueStores;
use crate::suspended::SuspendedHost;
use crate::trace::Trace;
use link::{AgentConnection, report, sync};
pub use node::bearer;
use node::{AgentDisk, AgentNode, AgentReport};
pub use runs::IDEMPOTENT;
use work::OrderWorker;

/// What all agents of a history share.
#[derive(Debug, Clone, Copy)]
pub struct AgentSite<'a> {
    /// Number of servers.
    pub servers: usize,
    /// The network to them.
    pub network: &'a Network,
    /// The trace it writes to.
    pub trace: &'a Trace,
    /// What runs on the machines.
    pub executions: &'a Executions,
    /// The data stores of the machines, if they have some.
    pub stores: Option<&'a TrueStores>,
}

/// A machine with an agent on it.
#[derive(Debug)]
pub struct Agent {
    /// Its node's name.
    pub name: String,
    node: AgentNode,
    host: SuspendedHost,
    gate: Option<TestGate>,
    still: bool,
    lives: u64,
}

impl Agent {
    /// An agent that does not run yet.
    #[must_use]
    pub fn new(name: &str, site: AgentSite<'_>, host: HostClock, seed: u64) -> Self {
        let AgentSite { servers, network, trace, executions, stores } = site;
        let node_name: NodeName = name.parse().expect("the names of nodes are labels");
        let node = AgentNode {
            name: node_name.clone(),
            host: node_name,
            lease: None,
            lease_length: Span::ZERO,
            fence: None,
            network: network.clone(),
            servers,
            trace: trace.clone(),
            disk: Arc::default(),
            losses: Arc::default(),
            begun: Arc::default(),
            executions: executions.clone(),
            stores: stores.cloned(),
            hosts_logical: false,
            without: None,
            seed,
            is_steady: false,
        };
        Self {
            name: name.to_owned(),
            node,
            host: SuspendedHost::new(host),
            gate: None,
            still: false,
            lives: 0,
        }
    }

    /// Lets its runs fail for bad versions only.
    #[must_use]
    pub fn steady(mut self, is_steady: bool) -> Self {
        self.node.is_steady = is_steady;
        self
    }

    /// Lets it offer to host logical nodes.
    #[must_use]
    pub fn hosting(mut self, hosts_logical: bool) -> Self {
        self.node.hosts_logical = hosts_logical;
        self
    }

    /// Lets it ignore a rule.
    #[must_use]
    pub fn without(mut self, rule: Option<DisabledRule>) -> Self {
        self.node.without = rule;
        self
    }

    /// Whether it runs and does not stand still.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.gate.is_some() && !self.still
    }

    /// Starts it.
    pub fn start(&mut self) {
        if self.gate.is_some() {
            return;
        }
        self.node.trace.say(&format!("{} starts", self.name));
        let gate = TestGate::default();
        let tasks = Tasks::new().behind(&gate);
        self.lives += 1;
        life(&self.node, &Clock::of_host(self.host.clock()), &tasks, self.lives);
        self.gate = Some(gate);
    }

    /// Kills the agent.
    pub fn kill(&mut self) {
        if let Some(gate) = self.gate.take() {
            self.node.trace.say(&format!("{} is killed", self.name));
            gate.broken();
            self.still = false;
            self.host.resume();
            self.node.executions.host_dies(&self.node.host);
        }
    }

    /// Kills the agent, and removes what it kept.
    pub fn wipe(&mut self) {
        self.kill();
        self.node.trace.say(&format!("{} loses its disk", self.name));
        self.node.losses.fetch_add(1, Ordering::Relaxed);
        *self.node.disk() = AgentDisk::default();
    }

    /// Pauses the agent.
    pub fn stand(&mut self) {
        if let Some(gate) = self.gate.as_ref().filter(|_| !self.still) {
            self.node.trace.say(&format!("{} stands still", self.name));
            gate.shut();
            self.still = true;
        }
    }

    /// Suspends its machine: its clocks stand still as well.
    pub fn suspend(&mut self) {
        if self.moves() {
            self.stand();
            self.host.suspend();
        }
    }

    /// Resumes the agent.
    pub fn go_on(&mut self) {
        self.host.resume();
        if let Some(gate) = self.gate.as_ref().filter(|_| self.still) {
            self.node.trace.say(&format!("{} goes on", self.name));
            gate.open();
            self.still = false;
        }
    }

    /// The version it runs of each entity, and the runs that were started more than once.
    #[must_use]
    pub fn runs(&self) -> (BTreeMap<EntityName, Version>, Vec<Version>) {
        let disk = self.node.disk();
        let running = disk.memories.iter();
        let running = running.filter_map(|(name, memory)| Some((name.clone(), memory.running.clone()?)));
        let begun = self.node.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let twice = begun.iter().filter(|(_, count)| **count > 1);
        (running.collect(), twice.map(|(version, _)| version.clone()).collect())
    }
}

/// Starts the tasks of one life of a node's agent.
fn life(node: &AgentNode, clock: &Clock, tasks: &Tasks, number: u64) -> Vec<AbortHandle> {
    let (board, orders) = (watch::Sender::new(AgentReport::default()), watch::Sender::new(0_u64));
    let asked = watch::Sender::new(0_u64);
    let turn = Arc::new(Mutex::new(usize::try_from(node.seed >> 40).unwrap_or_default()));
    let line = AgentConnection { node: node.clone(), turn };
    let seed = node.seed ^ number;
    let work = OrderWorker {
        node: node.clone(),
        clock: clock.clone(),
        board: board.clone(),
        orders: orders.clone(),
        wellness: BTreeMap::new(),
        soaks: BTreeMap::new(),
        chance: RandomStream::for_one(seed, node.name.as_str(), number),
        line: line.clone(),
        runs_here: OrderWorker::no_runs(),
        recalled: BTreeSet::new(),
    };
    let mut handles = vec![
        tasks.spawn("sync", sync(line.clone(), orders.clone(), asked.clone(), seed)).abort_handle(),
        tasks.spawn("report", report(line.clone(), board, asked.clone(), clock.clone(), seed)).abort_handle(),
        tasks.spawn("work", work.run()).abort_handle(),
    ];
    if let Some(stores) = &node.stores {
        let probes = probes::probes(line, stores.clone(), asked, clock.clone(), seed);
        handles.push(tasks.spawn("probes", probes).abort_handle());
    }
    if node.hosts_logical {
        let hosts = hosting::host(node.clone(), orders, (clock.clone(), tasks.clone()), life);
        handles.push(tasks.spawn("hosting", hosts).abort_handle());
    }
    handles
}
