//! Views of clusters: what was decided last on the data stores of their members together. Written by the decider of views alone.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::words::name::{ClusterName, NodeName, ProbeName};
use crate::words::time::Timestamp;

/// Most shards of a cluster whose primaries are recorded, so that the record stays small; changes of the primary of any further ones
/// are events of their nodes alone.
pub const MAX_PRIMARIES: usize = 256;

/// The data stores of a cluster, as they were decided on last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterView {
    /// Name of the cluster.
    pub cluster: ClusterName,
    /// Number of the last change, from 1.
    pub number: u64,
    /// Time of the last change, by the server's clock.
    pub changed_at: Timestamp,
    /// The conditions that are true.
    pub conditions: BTreeMap<ConditionId, ClusterCondition>,
    /// By probe and shard: the primary that was last the only one.
    pub primaries: BTreeMap<(ProbeName, String), NodeName>,
}

/// Which condition of which data stores.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConditionId {
    /// Name of the probe of the data stores.
    pub probe: ProbeName,
    /// The condition.
    pub kind: ConditionKind,
}

/// A condition that is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterCondition {
    /// Since when it is true, by the server's clock.
    pub since: Timestamp,
    /// What is seen, in one line for people.
    pub reason: String,
}

/// What may be true of the data stores of a cluster and should not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionKind {
    /// Members whose store is down.
    StoreDown,
    /// Members of whose store nobody knows.
    StoreUnknown,
    /// Members without the probe.
    ProbeMissing,
    /// Shards without a primary, all of whose stores are known.
    NoPrimary,
    /// Shards of which no primary is known, and not all stores are known.
    PrimaryUnknown,
    /// Shards with more than one primary.
    SeveralPrimaries,
    /// Replicas that replicate from a replica, not from the primary of their shard.
    UpstreamNotPrimary,
    /// Stores of different versions.
    MixedVersions,
    /// Stores that belong to different clusters.
    SeveralClusterIds,
    /// Stores that differ on who is a member.
    MembersDiffer,
}

impl ConditionKind {
    /// All conditions.
    pub const ALL: [Self; 10] = [
        Self::StoreDown,
        Self::StoreUnknown,
        Self::ProbeMissing,
        Self::NoPrimary,
        Self::PrimaryUnknown,
        Self::SeveralPrimaries,
        Self::UpstreamNotPrimary,
        Self::MixedVersions,
        Self::SeveralClusterIds,
        Self::MembersDiffer,
    ];

    /// Name of the condition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StoreDown => "store_down",
            Self::StoreUnknown => "store_unknown",
            Self::ProbeMissing => "probe_missing",
            Self::NoPrimary => "no_primary",
            Self::PrimaryUnknown => "primary_unknown",
            Self::SeveralPrimaries => "several_primaries",
            Self::UpstreamNotPrimary => "upstream_not_primary",
            Self::MixedVersions => "mixed_versions",
            Self::SeveralClusterIds => "several_cluster_ids",
            Self::MembersDiffer => "members_differ",
        }
    }
}
