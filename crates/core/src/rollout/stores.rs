//! The data stores of targets and of the other members of their clusters: what rollouts that care for followers, primaries and quorum
//! read. Values only; the world collects them.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::records::probes::{DataStore, ShardRole, StoreState};
use crate::words::name::{ClusterName, NodeName, ProbeName, TargetName};

/// The data stores under the name of probe that a policy names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreEnvironment {
    /// Name of the probe.
    pub probe: Option<ProbeName>,
    /// By target: the cluster of which its node is a member. A target of none is absent.
    pub clusters: BTreeMap<TargetName, ClusterName>,
    /// By cluster: its members that have the probe.
    pub members: BTreeMap<ClusterName, BTreeMap<NodeName, StoreStanding>>,
    /// The clusters whose stores say that they belong to several, none of which has the most of them: nobody knows who its voters are.
    pub split: BTreeSet<ClusterName>,
}

/// What is known of a data store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreStanding {
    /// Its state, as its own node says.
    pub state: StoreState,
    /// Its role, as it said when it was up last.
    pub role: StoreRole,
    /// Whether it can be counted on: it is up, belongs to the cluster, and its node is in contact.
    pub is_counted: bool,
    /// Whether it says that it belongs to another cluster than most stores of this one.
    pub is_foreign: bool,
}

/// Role of a data store in all of its shards: the order in which followers are updated before primaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreRole {
    /// It follows and has no vote, or has no role at present.
    Learner,
    /// It follows and may take the primary's place. Also a store that is not sharded and says no more.
    Replica,
    /// It is the primary of a shard.
    Primary,
}

impl StoreRole {
    /// The role of a data store.
    #[must_use]
    pub fn of(store: &DataStore) -> Self {
        let roles = store.facts.shards.values().map(|shard| match shard.role {
            ShardRole::Primary => Self::Primary,
            ShardRole::Replica => Self::Replica,
            ShardRole::Learner | ShardRole::Vacant => Self::Learner,
        });
        roles.max().unwrap_or(Self::Replica)
    }

    /// Whether it counts for a quorum.
    #[must_use]
    pub const fn votes(self) -> bool {
        matches!(self, Self::Replica | Self::Primary)
    }

    /// Name of the role.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Learner => "a learner",
            Self::Replica => "a replica",
            Self::Primary => "the primary",
        }
    }
}

/// How many of so many voters are a quorum.
#[must_use]
pub const fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}
