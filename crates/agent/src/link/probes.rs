//! Data stores of this node: delivered when one changes, when the server requests a report, on a new connection, and again from time to
//! time: a server that has marked them as unknown meanwhile learns that they are not. What may change with every probe is sent rarely.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::probes::NodeProbes;
use bellwether_core::records::probes::{DataStore, OFFSETS_INTERVAL};
use bellwether_core::words::name::{Namespace, NodeName, ProbeName};
use tokio::sync::watch;
use tokio::time::{Duration, Instant};

use super::connection::Connection;
use super::deliver::Delivery;
use super::report_numbers::{MOST_JUMPS, SharedNumbers};
use crate::probe::KnownStores;
use crate::report_board::ReportBoard;

/// Time after which the stores are sent again although nothing changed; a server writes nothing then.
const REPEAT: Duration = Duration::from_secs(60);

type Stores = BTreeMap<ProbeName, DataStore>;

/// The data stores of this node.
#[derive(Debug)]
pub(super) struct ProbeSender {
    pub(super) connection: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) stores: KnownStores,
    /// How many reports were requested: a server that requests one has forgotten the stores as well.
    pub(super) requested: watch::Receiver<u64>,
    /// The file that says that this node has, or had, probes.
    pub(super) marker: PathBuf,
    pub(super) numbers: SharedNumbers<Stores>,
    /// Where it is told that another agent reports as this machine.
    pub(super) board: watch::Sender<ReportBoard>,
    pub(super) chosen: Option<ChosenStores>,
}

/// What is to be sent.
#[derive(Debug)]
pub(super) struct ChosenStores {
    stores: Stores,
    since: Instant,
    /// How often they are to be sent again.
    repeats: u64,
}

impl Delivery for ProbeSender {
    type Value = (u64, u64, Stores);
    const WHAT: &'static str = "the data stores of this node";

    fn latest(&mut self) -> Option<Self::Value> {
        let requested = *self.requested.borrow_and_update();
        let found = self.stores.borrow_and_update().clone()?;
        let now = Instant::now();
        let chosen = match self.chosen.take() {
            Some(chosen) if is_told(&chosen, &found, now) => chosen,
            Some(chosen) if chosen.stores == found => {
                ChosenStores { since: now, repeats: chosen.repeats.wrapping_add(1), ..chosen }
            }
            chosen => {
                ChosenStores { stores: found, since: now, repeats: chosen.map_or(0, |chosen| chosen.repeats) }
            }
        };
        let value = (requested, chosen.repeats, chosen.stores.clone());
        self.chosen = Some(chosen);
        Some(value)
    }

    async fn changed(&mut self) -> bool {
        let repeat = self.chosen.as_ref().map(|chosen| chosen.since + REPEAT);
        tokio::select! {
            changed = self.stores.changed() => changed.is_ok(),
            changed = self.requested.changed() => changed.is_ok(),
            () = reached(repeat) => true,
        }
    }

    async fn send(&self, (_, _, stores): &Self::Value) -> Result<(), CallError> {
        let sequence = self.numbers.next(stores);
        let told = stores.iter().map(|(name, store)| (name.to_string(), store.into())).collect();
        let mut probes =
            NodeProbes { node: self.node.to_string(), received_at_ms: 0, sequence, stores: told };
        for _ in 0..MOST_JUMPS {
            let sent = self.connection.client()?.probes(self.namespace.as_str(), &probes).await;
            if !self.numbers.is_overtaken(&sent, Some(&self.board)) {
                return sent;
            }
            probes.sequence = self.numbers.next(stores);
        }
        self.connection.client()?.probes(self.namespace.as_str(), &probes).await
    }

    /// A server that refuses them, or is of a release that does not know them, would do so again.
    fn is_final(error: &CallError) -> bool {
        matches!(error, CallError::Problem(problem) if matches!(problem.code, Code::Invalid | Code::NotFound))
    }

    fn delivered(&mut self, (_, _, stores): &Self::Value) {
        self.numbers.delivered();
        if stores.is_empty()
            && let Err(error) = std::fs::remove_file(&self.marker)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.marker.display(), %error, "cannot note that this node has no probes");
        }
    }
}

/// Whether what was chosen says enough of what was found.
fn is_told(chosen: &ChosenStores, found: &Stores, now: Instant) -> bool {
    let age = now.saturating_duration_since(chosen.since);
    if chosen.stores == *found {
        return found.is_empty() || age < REPEAT;
    }
    let essence = |stores: &Stores| {
        stores.iter().map(|(name, store)| (name.clone(), store.essence())).collect::<Stores>()
    };
    age < OFFSETS_INTERVAL.to_duration() && essence(&chosen.stores) == essence(found)
}

/// Waits until a time; for ever without one. Cancel safe.
async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::probes::{StoreFacts, StoreState};
    use bellwether_core::words::time::Timestamp;

    use super::*;

    fn stores(state: StoreState, reason: &str) -> Stores {
        let facts = StoreFacts { software: "redis".to_owned(), ..StoreFacts::default() };
        let store = DataStore { state, since: Timestamp::from_millis(0), reason: reason.to_owned(), facts };
        BTreeMap::from([("db".parse().unwrap(), store)])
    }

    #[test]
    fn a_change_is_told_at_once_another_wording_rarely_and_the_same_from_time_to_time() {
        let since = Instant::now();
        let after = |seconds| since + Duration::from_secs(seconds);
        let down = ChosenStores { stores: stores(StoreState::Down, "one"), since, repeats: 0 };
        assert!(!is_told(&down, &stores(StoreState::Up, ""), after(0)));
        assert!(is_told(&down, &stores(StoreState::Down, "two"), after(29)));
        assert!(!is_told(&down, &stores(StoreState::Down, "two"), after(30)));
        assert!(is_told(&down, &stores(StoreState::Down, "one"), after(59)));
        assert!(!is_told(&down, &stores(StoreState::Down, "one"), after(60)));
        let none = ChosenStores { stores: Stores::new(), since, repeats: 0 };
        assert!(is_told(&none, &Stores::new(), after(3_600)), "there is nothing to repeat");
    }
}
