//! A simulated agent: its disk, its long poll, its reports, and what it does about each entity by the decisions of the real
//! agent. Applying takes time, fails now and then, and always fails for bad versions.

mod link;
mod node;
mod work;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bellwether_core::words::name::EntityName;
use bellwether_core::words::random::RandomStream;
use bellwether_core::words::version::Version;
use bellwether_rt::clock::Clock;
use bellwether_rt::gate::TestGate;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::network::Network;
use crate::trace::Trace;
use link::{AgentConnection, report, sync};
pub use node::bearer;
use node::{AgentNode, AgentReport};
use work::OrderWorker;

/// A machine with an agent on it.
#[derive(Debug)]
pub struct Agent {
    /// Its node's name.
    pub name: String,
    node: AgentNode,
    gate: Option<TestGate>,
    still: bool,
    lives: u64,
}

impl Agent {
    /// An agent that does not run yet.
    #[must_use]
    pub fn new(name: &str, servers: usize, network: &Network, trace: &Trace, seed: u64) -> Self {
        let node = AgentNode {
            name: name.parse().expect("the names of nodes are labels"),
            network: network.clone(),
            servers,
            trace: trace.clone(),
            disk: Arc::default(),
            seed,
            is_steady: false,
        };
        Self { name: name.to_owned(), node, gate: None, still: false, lives: 0 }
    }

    /// Lets its runs fail for bad versions only.
    #[must_use]
    pub fn steady(mut self, is_steady: bool) -> Self {
        self.node.is_steady = is_steady;
        self
    }

    /// Whether it runs and does not stand still.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.gate.is_some() && !self.still
    }

    /// Starts it.
    pub fn start(&mut self, clock: &Clock) {
        if self.gate.is_some() {
            return;
        }
        self.node.trace.say(&format!("{} starts", self.name));
        let gate = TestGate::default();
        let tasks = Tasks::new().behind(&gate);
        self.lives += 1;
        let (board, orders) = (watch::Sender::new(AgentReport::default()), watch::Sender::new(0_u64));
        let asked = watch::Sender::new(0_u64);
        let turn = Arc::new(Mutex::new(usize::try_from(self.node.seed >> 40).unwrap_or_default()));
        let line = AgentConnection { node: self.node.clone(), turn };
        let seed = self.node.seed ^ self.lives;
        tasks.spawn("sync", sync(line.clone(), orders.clone(), asked.clone(), seed));
        tasks.spawn("report", report(line, board.clone(), asked, clock.clone(), seed));
        let work = OrderWorker {
            node: self.node.clone(),
            clock: clock.clone(),
            board,
            orders,
            wellness: BTreeMap::new(),
            soaks: BTreeMap::new(),
            chance: RandomStream::for_one(seed, &self.name, self.lives),
        };
        tasks.spawn("work", work.run());
        self.gate = Some(gate);
    }

    /// Kills the agent.
    pub fn kill(&mut self) {
        if let Some(gate) = self.gate.take() {
            self.node.trace.say(&format!("{} is killed", self.name));
            gate.broken();
            self.still = false;
        }
    }

    /// Pauses the agent.
    pub fn stand(&mut self) {
        if let Some(gate) = self.gate.as_ref().filter(|_| !self.still) {
            self.node.trace.say(&format!("{} stands still", self.name));
            gate.shut();
            self.still = true;
        }
    }

    /// Resumes the agent.
    pub fn go_on(&mut self) {
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
        let twice = disk.begun.iter().filter(|(_, count)| **count > 1);
        (running.collect(), twice.map(|(version, _)| version.clone()).collect())
    }
}
