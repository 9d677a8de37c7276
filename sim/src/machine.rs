//! A machine with a server: it starts, is killed, paused and resumed, and has its own connection to the store.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bellwether_rt::clock::{Clock, HostClock};
use bellwether_rt::gate::TestGate;
use bellwether_rt::tasks::Tasks;
use bellwether_server::audit::AuditLog;
use bellwether_server::config::Config;
use bellwether_server::http;
use bellwether_server::pki::Pki;
use bellwether_server::run::{BuildContext, build};
use bellwether_server::secrets::keyring::Keyring;
use bellwether_store::Store;
use bellwether_store::testing::faulty::FaultyStore;

use crate::network::Network;
use crate::peers::SimulatedPeers;
use crate::trace::Trace;

/// A machine with a server on it.
#[derive(Debug)]
pub struct Machine {
    /// Number of the machine.
    pub number: usize,
    /// Its connection to the store.
    pub line: FaultyStore,
    /// Its clocks.
    pub host: HostClock,
    gate: Option<TestGate>,
    still: bool,
}

/// What a server needs to start.
#[derive(Debug, Clone, Copy)]
pub struct ServerContext<'a> {
    /// The store itself.
    pub store: &'a Store,
    /// Directory of the certificate authority.
    pub dir: &'a Path,
    /// The configuration shared by all servers.
    pub config: &'a Config,
    /// The network it listens on.
    pub network: &'a Network,
    /// The trace it writes to.
    pub trace: &'a Trace,
}

impl Machine {
    /// A machine whose server is not running.
    #[must_use]
    pub fn new(number: usize, seed: u64, host: HostClock) -> Self {
        Self { number, line: FaultyStore::new(seed), host, gate: None, still: false }
    }

    /// The name of its server.
    #[must_use]
    pub fn name(&self) -> String {
        format!("cp-{}", self.number)
    }

    /// Whether its server is running, paused or not.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.gate.is_some()
    }

    /// Whether its server is running and not paused.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.runs() && !self.still
    }

    /// Starts the server. It retries for ever, as a service manager would.
    pub fn start(&mut self, context: ServerContext<'_>) {
        if self.runs() {
            return;
        }
        context.trace.say(&format!("{} starts", self.name()));
        let gate = TestGate::default();
        let tasks = Tasks::new().behind(&gate);
        let (number, store) = (self.number, context.store.through(&self.line));
        let (dir, network) = (context.dir.to_owned(), context.network.clone());
        let mut config = context.config.clone();
        config.name = self.name().parse().expect("the names of machines are labels");
        let host = self.host.clone();
        let (level, gate_of_it) = (tasks.clone(), gate.clone());
        tasks.spawn("server", async move {
            loop {
                let clock = Clock::of_host(&host);
                let Ok(pki) = Pki::open(&dir, &[], clock.now()) else { return };
                let (outer, inner) = (level.child(), level.child());
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 7420));
                let context = BuildContext {
                    config: &config,
                    store: &store,
                    listens: address,
                    tasks: &outer,
                    inner_tasks: &inner,
                    clock,
                    peers: Arc::new(SimulatedPeers {
                        network: network.clone(),
                        name: config.name.to_string(),
                    }),
                    keyring: Keyring::default(),
                    audit: AuditLog::off(),
                    pki,
                };
                match build(context).await {
                    Ok(app) => return network.listens(number, http::router(&app), &gate_of_it, &outer),
                    Err(_) => {
                        outer.cancel();
                        inner.cancel();
                        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                    }
                }
            }
        });
        self.gate = Some(gate);
        self.still = false;
    }

    /// Kills the server.
    pub fn kill(&mut self, network: &Network, trace: &Trace) {
        if let Some(gate) = self.gate.take() {
            trace.say(&format!("{} is killed", self.name()));
            network.left(self.number);
            gate.broken();
            self.still = false;
        }
    }

    /// Pauses the server.
    pub fn stand(&mut self, trace: &Trace) {
        if let Some(gate) = self.gate.as_ref().filter(|_| !self.still) {
            trace.say(&format!("{} stands still", self.name()));
            gate.shut();
            self.still = true;
        }
    }

    /// Resumes the server.
    pub fn go_on(&mut self, trace: &Trace) {
        if let Some(gate) = self.gate.as_ref().filter(|_| self.still) {
            trace.say(&format!("{} goes on", self.name()));
            gate.open();
            self.still = false;
        }
    }
}
