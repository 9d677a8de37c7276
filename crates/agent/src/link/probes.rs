//! Data stores of this node: delivered when one changes, when the server requests a report, and on a new connection. Offsets and lags
//! alone are sent from time to time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::probes::NodeProbes;
use bellwether_core::records::probes::{DataStore, OFFSETS_INTERVAL};
use bellwether_core::words::name::{Namespace, NodeName, ProbeName};
use tokio::sync::watch;
use tokio::time::Instant;

use super::connection::Connection;
use super::deliver::Delivery;
use crate::probe::KnownStores;

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
    /// What is to be sent last, and since when.
    pub(super) chosen: Option<(Instant, Stores)>,
}

impl Delivery for ProbeSender {
    type Value = (u64, Stores);
    const WHAT: &'static str = "the data stores of this node";

    fn latest(&mut self) -> Option<Self::Value> {
        let requested = *self.requested.borrow_and_update();
        let found = self.stores.borrow_and_update().clone()?;
        let repeats = self.chosen.as_ref().is_some_and(|(since, chosen)| {
            since.elapsed() < OFFSETS_INTERVAL.to_duration() && bare(chosen) == bare(&found)
        });
        if !repeats {
            self.chosen = Some((Instant::now(), found));
        }
        self.chosen.as_ref().map(|(_, chosen)| (requested, chosen.clone()))
    }

    async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.stores.changed() => changed.is_ok(),
            changed = self.requested.changed() => changed.is_ok(),
        }
    }

    async fn send(&self, (_, stores): &Self::Value) -> Result<(), CallError> {
        let stores = stores.iter().map(|(name, store)| (name.to_string(), store.into())).collect();
        let probes = NodeProbes { node: self.node.to_string(), received_at_ms: 0, stores };
        self.connection.client()?.probes(self.namespace.as_str(), &probes).await
    }

    /// A server that refuses them, or is of a release that does not know them, would do so again.
    fn is_final(error: &CallError) -> bool {
        matches!(error, CallError::Problem(problem) if matches!(problem.code, Code::Invalid | Code::NotFound))
    }

    fn delivered(&mut self, (_, stores): &Self::Value) {
        if stores.is_empty()
            && let Err(error) = std::fs::remove_file(&self.marker)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.marker.display(), %error, "cannot note that this node has no probes");
        }
    }
}

/// The stores without their offsets and lags.
fn bare(stores: &Stores) -> Stores {
    let bare = |store: &DataStore| DataStore { facts: store.facts.without_amounts(), ..store.clone() };
    stores.iter().map(|(name, store)| (name.clone(), bare(store))).collect()
}
