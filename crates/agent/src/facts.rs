//! Facts of this machine: read at the start, from time to time, when its addresses change, and when a rescan is requested. They
//! are what the kernel and the system's own files say, so they show the whole machine and no limit of a container.

mod disks;
mod machine;
mod value;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::order::Order;
use bellwether_core::words::counter::RescanNumber;
use bellwether_rt::tasks::Tasks;
use bellwether_rt::wait::changed_or_never;
use serde_json::Value;
use tokio::sync::watch;

pub(crate) use self::value::MachineFacts;
use crate::service::LocalAddresses;

/// Interval between two readings. Disks and memory change by hand, and whoever changes them can request a rescan; reading costs a
/// few milliseconds.
const INTERVAL: Duration = Duration::from_secs(600);

/// The facts of this machine, as last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownFacts {
    /// Number of the last rescan that was requested before they were read.
    pub(crate) rescan: RescanNumber,
    pub(crate) facts: MachineFacts,
}

/// Reads the facts for as long as the agent runs.
#[derive(Debug)]
pub(crate) struct FactReader {
    /// The root of the file system, below which everything is read.
    pub(crate) root: PathBuf,
    pub(crate) addresses: LocalAddresses,
    /// Orders, with the number of the last requested rescan.
    pub(crate) orders: watch::Receiver<Option<Arc<Order>>>,
    pub(crate) tasks: Tasks,
}

impl FactReader {
    /// Starts reading; the facts are absent until they were read once.
    pub(crate) fn start(self) -> watch::Receiver<Option<KnownFacts>> {
        let (known, facts) = watch::channel(None);
        let tasks = self.tasks.clone();
        tasks.spawn("facts", self.run(known));
        facts
    }

    async fn run(mut self, known: watch::Sender<Option<KnownFacts>>) {
        let token = self.tasks.token();
        loop {
            let rescan = rescan_of(&mut self.orders);
            let addresses = self.addresses.now();
            let root = self.root.clone();
            let read = self.tasks.spawn_blocking(move || read(&root)).await;
            if let Ok(mut facts) = read {
                let list = addresses.0.values().flatten().map(|address| Value::from(address.to_string()));
                facts.insert("addresses".to_owned(), list.collect());
                let found = Some(KnownFacts { rescan, facts });
                known.send_if_modified(|known| {
                    let changed = *known != found;
                    *known = found;
                    changed
                });
            }
            // All arms only wait; what is asked for is read again above.
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.addresses.changed() => {}
                () = requested(&mut self.orders, rescan) => {}
            }
        }
    }
}

/// Waits until another rescan than this one is requested. Cancel safe: what it has read is compared again.
async fn requested(orders: &mut watch::Receiver<Option<Arc<Order>>>, done: RescanNumber) {
    while rescan_of(orders) == done {
        changed_or_never(orders).await;
    }
}

fn rescan_of(orders: &mut watch::Receiver<Option<Arc<Order>>>) -> RescanNumber {
    orders.borrow_and_update().as_ref().map_or(RescanNumber::ZERO, |order| order.content.rescan)
}

/// The facts of the machine whose file system begins at `root`. What cannot be read is absent.
fn read(root: &Path) -> MachineFacts {
    let mut facts = machine::read(root);
    facts.insert("disks".to_owned(), disks::read(root));
    facts
}

#[cfg(test)]
mod tests;
