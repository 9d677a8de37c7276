//! The link to the control plane: one hanging request that is heartbeat and order in one, reports when something changed,
//! and a fresh certificate long before the old one ends.
//!
//! It never decides that the agent ends: a server that is away is called again until it is back.

mod again;
pub(crate) mod contact;
pub(crate) mod known;
mod line;
mod logs;
mod offers;
mod renew;
mod report;
pub(crate) mod source;
mod sync;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::records::order::Order;
use bellwether_core::words::name::NodeName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::apply::kept::Waiting;
use crate::board::Board;
use crate::catalogue::Picture;
use crate::identity::Identity;
use crate::ledger::Ledger;
use crate::service::{Addresses, Key, Shown};
use contact::Contact;
use known::Known;
use line::Line;
use source::Source;

/// What the link works with.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) source: Source,
    pub(crate) node: NodeName,
    pub(crate) data_dir: std::path::PathBuf,
    pub(crate) ledger: Ledger,
    pub(crate) orders: watch::Sender<Option<Arc<Order>>>,
    pub(crate) board: watch::Sender<Board>,
    pub(crate) failed: watch::Sender<Waiting>,
    pub(crate) services: watch::Receiver<BTreeMap<Key, Shown>>,
    pub(crate) addresses: Addresses,
    /// The copy of the catalogue, and whether anybody here wants one.
    pub(crate) picture: watch::Sender<Arc<Picture>>,
    pub(crate) wants_catalogue: watch::Receiver<bool>,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
}

/// Where params come from, and what the rest of the link calls by: the servers that are configured, and those that were told
/// of before.
pub(crate) fn source(
    identity: Identity,
    servers: (Vec<String>, Known),
    contact: watch::Sender<Contact>,
    (seed, now): (u64, Timestamp),
) -> Source {
    let namespace = identity.namespace.clone();
    Source { line: Line::new(identity, servers, contact, (seed, now)), namespace }
}

impl Link {
    /// Starts the tasks of the link on `tasks`.
    pub(crate) fn start(self, tasks: &Tasks) {
        let (node, Source { line, namespace }) = (self.node, self.source);
        // Counts how often the server asked for a report, and up to which ask one was delivered.
        let (asked, asks) = watch::channel(0_u64);
        let (delivered, deliveries) = watch::channel(0_u64);
        let sync = sync::Sync {
            line: line.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            ledger: self.ledger,
            orders: self.orders,
            board: self.board.clone(),
            asked,
            deliveries,
            picture: self.picture,
            wants_catalogue: self.wants_catalogue,
            misread: sync::Refused::default(),
            refused: sync::RefusedOrder::default(),
            data_dir: self.data_dir.clone(),
            level: tasks.clone(),
            clock: self.clock.clone(),
            seed: self.seed,
        };
        let logs = logs::Logs {
            line: line.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            waiting: self.failed,
            seed: self.seed,
        };
        let offers = offers::Offers {
            line: line.clone(),
            node: node.clone(),
            namespace: namespace.clone(),
            services: self.services,
            addresses: self.addresses,
            board: self.board.subscribe(),
            asks: asks.clone(),
            seed: self.seed,
        };
        tasks.spawn("offers", offers.run(tasks.clone()));
        let report = report::Reports {
            line: line.clone(),
            node,
            namespace,
            board: self.board.subscribe(),
            asks,
            delivered,
            clock: self.clock.clone(),
            seed: self.seed,
        };
        let renew = renew::Renewal { line, data_dir: self.data_dir, clock: self.clock, seed: self.seed };
        tasks.spawn("sync", sync.run());
        tasks.spawn("logs", logs.run(tasks.clone()));
        tasks.spawn("report", report.run(tasks.clone()));
        tasks.spawn("renew", renew.run(tasks.clone()));
    }
}
