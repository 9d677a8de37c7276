//! Stored record of the view of a cluster's data stores.

use std::collections::BTreeMap;

use bellwether_core::records::cluster_view as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::view::ConditionKind;
use crate::shape::{ShapeError, read};

/// Stored record of the view of a cluster's data stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClusterView {
    /// Name of the cluster.
    pub cluster: String,
    /// Number of its last change, from 1.
    pub number: u64,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub changed_at_ms: u64,
    /// The conditions that are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StoredCondition>,
    /// By probe, then by shard: the node whose store was last the only primary.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub primaries: BTreeMap<String, BTreeMap<String, String>>,
}

/// A condition that is true, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCondition {
    /// Name of the probe.
    pub probe: String,
    /// The condition.
    pub kind: ConditionKind,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// What is seen.
    pub reason: String,
}

impl From<&core::ClusterView> for StoredClusterView {
    fn from(from: &core::ClusterView) -> Self {
        let mut primaries: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for ((probe, shard), node) in &from.primaries {
            primaries.entry(probe.to_string()).or_default().insert(shard.clone(), node.to_string());
        }
        let condition = |(id, of): (&core::ConditionId, &core::ClusterCondition)| StoredCondition {
            probe: id.probe.to_string(),
            kind: id.kind.into(),
            since_ms: of.since.as_millis(),
            reason: of.reason.clone(),
        };
        Self {
            cluster: from.cluster.to_string(),
            number: from.number,
            changed_at_ms: from.changed_at.as_millis(),
            conditions: from.conditions.iter().map(condition).collect(),
            primaries,
        }
    }
}

impl TryFrom<StoredClusterView> for core::ClusterView {
    type Error = ShapeError;
    fn try_from(from: StoredClusterView) -> Result<Self, ShapeError> {
        let condition = |of: StoredCondition| {
            let id = core::ConditionId { probe: read("probe", &of.probe)?, kind: of.kind.into() };
            let since = Timestamp::from_millis(of.since_ms);
            Ok::<_, ShapeError>((id, core::ClusterCondition { since, reason: of.reason }))
        };
        let mut primaries = BTreeMap::new();
        for (probe, shards) in from.primaries {
            for (shard, node) in shards {
                primaries.insert((read("probe", &probe)?, shard), read("node", &node)?);
            }
        }
        Ok(Self {
            cluster: read("cluster", &from.cluster)?,
            number: from.number,
            changed_at: Timestamp::from_millis(from.changed_at_ms),
            conditions: from.conditions.into_iter().map(condition).collect::<Result<_, _>>()?,
            primaries,
        })
    }
}
