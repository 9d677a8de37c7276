//! The data stores of a cluster as they were after an event.

use std::collections::BTreeMap;

use bellwether_core::world::past_view as core;
use serde::{Deserialize, Serialize};

/// The data stores of a cluster as they were after an event: what is known now, with the events since then undone. Its members are those
/// of now. Offsets, lags and reasons are of no event, so that they are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PastClusterView {
    /// Cluster name.
    pub cluster: String,
    /// Number of the event.
    pub event: u64,
    /// Time of the event, in milliseconds since the Unix epoch, by the server's clock; absent for the state before the first event that is
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
    /// The conditions that were true; none if the caller may not read all members.
    pub conditions: Vec<PastCondition>,
    /// By node, and name of probe: its data stores.
    pub nodes: BTreeMap<String, BTreeMap<String, PastStore>>,
}

/// A condition that was true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PastCondition {
    /// Name of the probe.
    pub probe: String,
    /// Name of the condition.
    pub kind: String,
    /// What was seen when it began or ended, in one line.
    pub reason: String,
}

/// A data store as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PastStore {
    /// Its state: `up`, `down` or `unknown`.
    pub state: String,
    /// Software and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// Id of the cluster that it said it belonged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// By shard: its role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, String>,
    /// By shard: what it replicated from, and whether it was connected, where that is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replication: BTreeMap<String, String>,
}

impl From<core::PastStore> for PastStore {
    fn from(from: core::PastStore) -> Self {
        let core::PastStore { state, software, cluster_id, roles, replication } = from;
        Self { state, software, cluster_id, roles, replication }
    }
}
