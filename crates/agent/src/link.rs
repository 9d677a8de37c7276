//! The link to the control plane: a long poll that is heartbeat and order in one, deliveries of what changed on this node,
//! and the renewal of the certificate long before it expires.
//!
//! It never ends the agent: while no server can be reached, it retries.

pub(crate) mod connection;
pub(crate) mod contact;
mod deliver;
mod facts;
mod job_logs;
mod logs;
mod members;
mod order_poll;
mod probes;
mod registered;
mod registrations;
mod renew;
mod report;
mod report_numbers;
pub(crate) mod retry;
pub(crate) mod server_list;
pub(crate) mod source;
mod start_gate;
pub(crate) mod trust;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bellwether_api::v1::node_params::LiveParams;
use bellwether_core::records::order::Order;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::apply::log_store::UnsentLogs;
use crate::catalogue::CatalogueSnapshot;
use crate::ensemble::KnownMembers;
use crate::facts::KnownFacts;
use crate::lease::LeaseRenewal;
use crate::ledger::Ledger;
use crate::probe::StoreProbes;
use crate::report_board::ReportBoard;
use crate::service::process_phase::AcknowledgedRegistrations;
use crate::service::registry::KnownDefinition;
use crate::service::{InstanceKey, LocalAddresses, PublishedInstance};
use connection::Connection;
use deliver::deliver;
use job_logs::LogAnswers;
use registered::RegisteredAt;
use renew::CertificateRenewal;
use report_numbers::SharedNumbers;
use source::ParamSource;
use start_gate::StartGate;

/// What the link reads and writes.
#[derive(Debug)]
pub(crate) struct ServerLink {
    pub(crate) source: ParamSource,
    pub(crate) data_dir: std::path::PathBuf,
    /// Where the logs of runs are.
    pub(crate) logs: std::path::PathBuf,
    pub(crate) ledger: Ledger,
    pub(crate) orders: watch::Sender<Option<Arc<Order>>>,
    pub(crate) board: watch::Sender<ReportBoard>,
    /// Logs of failed runs that the control plane does not have yet.
    pub(crate) unsent_logs: watch::Sender<UnsentLogs>,
    /// This node's copy of the catalogue.
    pub(crate) snapshot: watch::Sender<Arc<CatalogueSnapshot>>,
    /// Whether anything on this node reads it.
    pub(crate) wants_catalogue: watch::Receiver<bool>,
    /// The params that reach this node without a rollout; `None` if nothing on it uses them.
    pub(crate) live_params: Option<watch::Sender<Arc<LiveParams>>>,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    /// Set once a server says that this node was decommissioned, with what it says.
    pub(crate) decommissioned: Arc<OnceLock<String>>,
    pub(crate) owner: LinkOwner,
}

/// What the link is of.
#[derive(Debug)]
pub(crate) enum LinkOwner {
    /// A machine, with what it reports of itself.
    Machine(MachineSources),
    /// A logical node, whose lease the answers renew.
    Logical(LeaseRenewal),
}

/// What a machine reports of itself.
#[derive(Debug)]
pub(crate) struct MachineSources {
    pub(crate) services: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    /// Where the registrations are put that the control plane acknowledged.
    pub(crate) acknowledgements: watch::Sender<AcknowledgedRegistrations>,
    /// Every service that exists on this node, whether or not its health is known.
    pub(crate) known: watch::Receiver<BTreeMap<InstanceKey, KnownDefinition>>,
    pub(crate) addresses: LocalAddresses,
    /// The facts of this machine; absent until they were read.
    pub(crate) facts: watch::Receiver<Option<KnownFacts>>,
    /// The data stores of this node.
    pub(crate) stores: StoreProbes,
    /// The members of ensembles on this node.
    pub(crate) members: KnownMembers,
}

impl LinkOwner {
    /// The lease of a logical node; `None` of a machine.
    const fn lease(&self) -> Option<&LeaseRenewal> {
        match self {
            Self::Machine(_) => None,
            Self::Logical(lease) => Some(lease),
        }
    }
}

impl ServerLink {
    /// Starts the tasks of the link on `tasks`.
    pub(crate) fn start(self, tasks: &Tasks) {
        let ParamSource { connection, namespace, node } = self.source;
        // Counts how many reports the server requested, and which of these requests were answered.
        let [(report_requests, requested), (delivered, deliveries)] = [(); 2].map(|()| watch::channel(0_u64));
        let numbers = Arc::new(SharedNumbers::new(self.clock.now()));
        let registered = Arc::new(RegisteredAt::default());
        let place = (connection.clone(), namespace.clone(), node.clone());
        let poll = order_poll::OrderPoll {
            job_logs: LogAnswers::new(place.clone(), (self.ledger.clone(), self.logs), tasks),
            connection: connection.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            ledger: self.ledger,
            orders: self.orders,
            board: self.board.clone(),
            report_requests,
            numbers: numbers.clone(),
            registered: registered.clone(),
            deliveries,
            snapshot: self.snapshot,
            wants_catalogue: self.wants_catalogue,
            live_params: self.live_params,
            misread: order_poll::Refused::default(),
            refused: order_poll::RefusedOrder::default(),
            data_dir: self.data_dir.clone(),
            tasks: tasks.clone(),
            clock: self.clock.clone(),
            seed: self.seed,
            decommissioned: self.decommissioned,
            lease: self.owner.lease().cloned(),
        };
        tasks.spawn("order poll", poll.run());
        let report = report::ReportSender {
            connection: connection.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            board: self.board.subscribe(),
            machine: self.owner.lease().is_none().then(|| self.board.clone()),
            requested: requested.clone(),
            delivered,
            told: report::ToldJobs::new(),
            parts: 0,
            clock: self.clock.clone(),
            gate: StartGate::closed(),
            numbers,
        };
        tasks.spawn("report", deliver(report, connection.moves(), self.seed, tasks.clone()));
        send_logs(place, self.unsent_logs, self.seed, tasks);
        if let LinkOwner::Machine(machine) = self.owner {
            MachineLink {
                connection,
                node,
                namespace,
                board: self.board,
                requested,
                registered,
                data_dir: self.data_dir,
                clock: self.clock,
                seed: self.seed,
            }
            .start(machine, tasks);
        }
    }
}

/// Starts what sends the logs of runs that failed.
fn send_logs(
    place: (Connection, Namespace, NodeName),
    unsent: watch::Sender<UnsentLogs>,
    seed: u64,
    tasks: &Tasks,
) {
    let moves = place.0.moves();
    tasks.spawn("logs", deliver(logs::LogSender::new(place, unsent), moves, seed, tasks.clone()));
}

/// What a machine has besides: its registrations, its facts, and the renewal of its certificate.
struct MachineLink {
    connection: Connection,
    node: NodeName,
    namespace: Namespace,
    board: watch::Sender<ReportBoard>,
    requested: watch::Receiver<u64>,
    registered: Arc<RegisteredAt>,
    data_dir: std::path::PathBuf,
    clock: Clock,
    seed: u64,
}

impl MachineLink {
    fn start(self, machine: MachineSources, tasks: &Tasks) {
        let Self { connection, node, namespace, board, requested, registered, data_dir, clock, seed } = self;
        let MachineSources { services, acknowledgements, known, addresses, facts, stores, members } = machine;
        let registrations = registrations::RegistrationSender {
            connection: connection.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            services,
            acknowledgements,
            known,
            addresses,
            board: board.subscribe(),
            requested: requested.clone(),
            registered,
            gate: StartGate::closed(),
        };
        tasks.spawn("registrations", deliver(registrations, connection.moves(), seed, tasks.clone()));
        let probes = probes::ProbeSender {
            connection: connection.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            stores: stores.known,
            requested: requested.clone(),
            marker: stores.marker,
            numbers: SharedNumbers::new(clock.now()),
            board: board.clone(),
            chosen: None,
        };
        tasks.spawn("probe report", deliver(probes, connection.moves(), seed, tasks.clone()));
        let members = members::MemberSender {
            connection: connection.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            members,
            board,
            requested: requested.clone(),
            numbers: SharedNumbers::new(clock.now()),
            repeats: (0, None),
        };
        tasks.spawn("member report", deliver(members, connection.moves(), seed, tasks.clone()));
        let facts = facts::FactSender { connection: connection.clone(), node, namespace, facts, requested };
        tasks.spawn("fact report", deliver(facts, connection.moves(), seed, tasks.clone()));
        tasks.spawn("renew", CertificateRenewal { connection, data_dir, clock, seed }.run(tasks.clone()));
    }
}
