//! The view of a cluster's data stores, put together from what its members' own agents report.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::records::cluster_view as conditions;
use bellwether_core::world::store_view as core;
use serde::{Deserialize, Serialize};

use super::ClusterMode;
use crate::v1::node::PresenceState;
use crate::v1::probes::{Amount, DataStore};
use crate::word::words;

words! {
    /// Whether data stores agree on who is a member of their cluster.
    Agreement = core::Agreement {
        /// No store has a view of its own.
        None = "none",
        /// All views are the same.
        Agreed = "agreed",
        /// There are two views at least.
        Differs = "differs",
    }
}

words! {
    /// What may be true of the data stores of a cluster and should not be.
    ConditionKind = conditions::ConditionKind {
        /// Members whose store is down.
        StoreDown = "store_down",
        /// Members of whose store nobody knows.
        StoreUnknown = "store_unknown",
        /// Members without the probe.
        ProbeMissing = "probe_missing",
        /// Shards without a primary, all of whose stores are known.
        NoPrimary = "no_primary",
        /// Shards of which no primary is known, and not all stores are known.
        PrimaryUnknown = "primary_unknown",
        /// Shards with more than one primary.
        SeveralPrimaries = "several_primaries",
        /// Replicas that replicate from a replica, not from the primary of their shard.
        UpstreamNotPrimary = "upstream_not_primary",
        /// Stores of different versions.
        MixedVersions = "mixed_versions",
        /// Stores that belong to different clusters.
        SeveralClusterIds = "several_cluster_ids",
        /// Stores that differ on who is a member.
        MembersDiffer = "members_differ",
    }
}

/// A condition that is true of the data stores of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClusterCondition {
    /// Name of the probe.
    pub probe: String,
    /// The condition.
    pub kind: ConditionKind,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// What is seen, in one line.
    pub reason: String,
}

/// The data stores of a cluster. Each part was observed at its own time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClusterView {
    /// Cluster name.
    pub cluster: String,
    /// Revision of the store that it was read at.
    pub revision: u64,
    /// Time at which it was put together, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// What is done by itself about them.
    pub mode: ClusterMode,
    /// Number of the last change of what was decided on them, from 1; absent before the first, and for those who may not read all members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Time of that, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at_ms: Option<u64>,
    /// The conditions that are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ClusterCondition>,
    /// By name of probe: the stores of all members, put together.
    pub stores: BTreeMap<String, StoreSummary>,
    /// The members, by name.
    pub nodes: Vec<NodeStores>,
}

/// The data stores of a cluster under one name of probe, put together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StoreSummary {
    /// Members whose store is up.
    pub up: u64,
    /// Members whose store is down.
    pub down: u64,
    /// Members of whose store nobody knows.
    pub unknown: u64,
    /// Members without this probe.
    pub missing: u64,
    /// By software and version: the stores that have it, as they said last.
    pub versions: BTreeMap<String, u64>,
    /// By id of the cluster that they say they belong to: the stores that do.
    pub cluster_ids: BTreeMap<String, u64>,
    /// By shard: who has which part in it.
    pub shards: BTreeMap<String, ShardSummary>,
    /// Whether the stores that are up agree on who is a member.
    pub agreement: Agreement,
    /// What a person should know about these stores, in one line each.
    pub problems: Vec<String>,
}

/// A shard of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ShardSummary {
    /// Members whose store is up and the primary: more than one is a conflict.
    pub primaries: BTreeSet<String>,
    /// Members whose store was the primary when it was up last, and of which nobody knows now.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub last_primaries: BTreeSet<String>,
    /// Stores that are up and replicas.
    pub replicas: u64,
    /// Stores that are up and have no vote.
    pub learners: u64,
    /// Stores that are up and have no role at present.
    pub vacant: u64,
    /// By member: how far its store is behind; absent where that is not known.
    pub lags: BTreeMap<String, Amount>,
}

/// A member of a cluster with its data stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NodeStores {
    /// Node name.
    pub node: String,
    /// The connection state of the node.
    pub presence: PresenceState,
    /// Time of the report that was written last, in milliseconds since the Unix epoch; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_at_ms: Option<u64>,
    /// By probe: its data store.
    pub stores: BTreeMap<String, DataStore>,
}

impl ClusterCondition {
    /// The form of a condition.
    #[must_use]
    pub fn of(id: &conditions::ConditionId, of: &conditions::ClusterCondition) -> Self {
        Self {
            probe: id.probe.to_string(),
            kind: id.kind.into(),
            since_ms: of.since.as_millis(),
            reason: of.reason.clone(),
        }
    }
}

impl From<&core::StoreSummary> for StoreSummary {
    fn from(from: &core::StoreSummary) -> Self {
        Self {
            up: from.up,
            down: from.down,
            unknown: from.unknown,
            missing: from.missing,
            versions: from.versions.clone(),
            cluster_ids: from.cluster_ids.clone(),
            shards: from.shards.iter().map(|(name, shard)| (name.clone(), shard.into())).collect(),
            agreement: from.agreement.into(),
            problems: from.problems(),
        }
    }
}

impl From<&core::ShardSummary> for ShardSummary {
    fn from(from: &core::ShardSummary) -> Self {
        Self {
            primaries: from.primaries.iter().map(ToString::to_string).collect(),
            last_primaries: from.last_primaries.iter().map(ToString::to_string).collect(),
            replicas: from.replicas,
            learners: from.learners,
            vacant: from.vacant,
            lags: from.lags.iter().map(|(node, lag)| (node.to_string(), lag.into())).collect(),
        }
    }
}
