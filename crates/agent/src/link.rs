//! The link to the control plane: one hanging request that is heartbeat and order in one, reports when something changed,
//! and a fresh certificate long before the old one ends.
//!
//! It never decides that the agent ends: a server that is away is called again until it is back.

mod connection;
pub(crate) mod contact;
mod logs;
mod order_poll;
mod registrations;
mod renew;
mod report;
mod retry;
pub(crate) mod server_list;
pub(crate) mod source;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::records::order::Order;
use bellwether_core::words::name::NodeName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::apply::log_store::UnsentLogs;
use crate::catalogue::CatalogueSnapshot;
use crate::identity::Identity;
use crate::ledger::Ledger;
use crate::report_board::ReportBoard;
use crate::service::{InstanceKey, LocalAddresses, PublishedInstance};
use connection::Connection;
use contact::ServerContact;
use server_list::SavedServers;
use source::ParamSource;

/// What the link works with.
#[derive(Debug)]
pub(crate) struct ServerLink {
    pub(crate) source: ParamSource,
    pub(crate) node: NodeName,
    pub(crate) data_dir: std::path::PathBuf,
    pub(crate) ledger: Ledger,
    pub(crate) orders: watch::Sender<Option<Arc<Order>>>,
    pub(crate) board: watch::Sender<ReportBoard>,
    pub(crate) failed: watch::Sender<UnsentLogs>,
    pub(crate) services: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    pub(crate) addresses: LocalAddresses,
    /// The copy of the catalogue, and whether anybody here wants one.
    pub(crate) snapshot: watch::Sender<Arc<CatalogueSnapshot>>,
    pub(crate) wants_catalogue: watch::Receiver<bool>,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
}

/// Where params come from, and what the rest of the link calls by: the servers that are configured, and those that were told
/// of before.
pub(crate) fn source(
    identity: Identity,
    servers: (Vec<String>, SavedServers),
    contact: watch::Sender<ServerContact>,
    (seed, now): (u64, Timestamp),
) -> ParamSource {
    let namespace = identity.namespace.clone();
    ParamSource { line: Connection::new(identity, servers, contact, (seed, now)), namespace }
}

impl ServerLink {
    /// Starts the tasks of the link on `tasks`.
    pub(crate) fn start(self, tasks: &Tasks) {
        let (node, ParamSource { line, namespace }) = (self.node, self.source);
        // Counts how often the server asked for a report, and up to which ask one was delivered.
        let (asked, asks) = watch::channel(0_u64);
        let (delivered, deliveries) = watch::channel(0_u64);
        let sync = order_poll::OrderPoll {
            line: line.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            ledger: self.ledger,
            orders: self.orders,
            board: self.board.clone(),
            asked,
            deliveries,
            snapshot: self.snapshot,
            wants_catalogue: self.wants_catalogue,
            misread: order_poll::Refused::default(),
            refused: order_poll::RefusedOrder::default(),
            data_dir: self.data_dir.clone(),
            level: tasks.clone(),
            clock: self.clock.clone(),
            seed: self.seed,
        };
        let logs = logs::LogSender {
            line: line.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            waiting: self.failed,
            seed: self.seed,
        };
        let registrations = registrations::RegistrationSender {
            line: line.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            services: self.services,
            addresses: self.addresses,
            board: self.board.subscribe(),
            asks: asks.clone(),
            seed: self.seed,
        };
        tasks.spawn("offers", registrations.run(tasks.clone()));
        let report = report::ReportSender {
            line: line.clone(),
            node,
            namespace,
            board: self.board.subscribe(),
            asks,
            delivered,
            clock: self.clock.clone(),
            seed: self.seed,
        };
        let renew =
            renew::CertificateRenewal { line, data_dir: self.data_dir, clock: self.clock, seed: self.seed };
        tasks.spawn("sync", sync.run());
        tasks.spawn("logs", logs.run(tasks.clone()));
        tasks.spawn("report", report.run(tasks.clone()));
        tasks.spawn("renew", renew.run(tasks.clone()));
    }
}
