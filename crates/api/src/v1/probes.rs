//! Data stores of nodes: reports of agents, answers of `exec` probes, and stored records.

use std::collections::BTreeMap;

use bellwether_core::records::probes as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, is_zero, read};
use crate::word::words;

words! {
    /// State of a data store.
    StoreState = core::StoreState {
        /// It answered.
        Up = "up",
        /// It refused the connection, or said that it does not work.
        Down = "down",
        /// Nobody knows: its agent is unreachable, or its answer did not come in time or made no sense.
        Unknown = "unknown",
    }
}

words! {
    /// Role of a data store in a shard.
    ShardRole = core::ShardRole {
        /// It accepts writes: the leader, primary or master.
        Primary = "primary",
        /// It follows the primary and may take its place.
        Replica = "replica",
        /// It follows and has no vote.
        Learner = "learner",
        /// It has no role at present, such as a member of an etcd without a leader.
        Vacant = "vacant",
    }
}

/// The data stores of a node, as its agent probes them. The agent sends all of them whenever one changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeProbes {
    /// Node name; it must be that of the sender.
    pub node: String,
    /// Time of the report that was written last, in milliseconds since the Unix epoch, by the server's clock; what an agent sends is
    /// ignored.
    #[serde(default)]
    pub received_at_ms: u64,
    /// Number of the report among those of the node's agent, from 1: one that arrives after a later one changes nothing. Absent from one that
    /// is not numbered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sequence: u64,
    /// By probe: its data store. At most 16.
    pub stores: BTreeMap<String, DataStore>,
}

/// A data store, as a probe saw it last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DataStore {
    /// Its state.
    pub state: StoreState,
    /// Since when it has this state, in milliseconds since the Unix epoch, by the server's clock; what an agent sends is ignored.
    #[serde(default)]
    pub since_ms: u64,
    /// Why it is not up, or what it cannot do although it is, in one line of at most 512 bytes; empty if it is well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it says of itself; what it said last while it is not up.
    #[serde(default)]
    pub facts: StoreFacts,
}

/// What a data store says of itself. Texts have at most 256 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreFacts {
    /// Name of the software, such as `etcd`; empty before its first answer.
    #[serde(default)]
    pub software: String,
    /// Version of the software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Id of the cluster that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Its own id in that cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_id: Option<String>,
    /// By shard: its part in it. At most 1,024; a store that is not sharded has one, `0`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shards: BTreeMap<String, Shard>,
    /// Its own view of the members of its cluster, by id, at most 128; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<BTreeMap<String, StoreMember>>,
}

/// A data store's part in a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Its role.
    pub role: ShardRole,
    /// Id of the history that the offset is a position in, such as a timeline: offsets of two histories cannot be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// How far it has come: its offset in what is replicated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Amount>,
    /// How far it is behind, if the store reports that itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Amount>,
    /// Address of what it replicates from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Whether that replication is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
}

/// An amount with its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// The amount.
    pub amount: u64,
    /// Its unit, such as `bytes`, `entries` or `ms`.
    pub unit: String,
}

/// A member of a cluster, as one of its data stores sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreMember {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether it votes.
    #[serde(default)]
    pub votes: bool,
    /// Whether the store that says so is connected to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected: Option<bool>,
}

impl From<&core::NodeProbes> for NodeProbes {
    fn from(from: &core::NodeProbes) -> Self {
        Self {
            node: from.node.to_string(),
            received_at_ms: from.received_at.as_millis(),
            sequence: from.sequence,
            stores: from.stores.iter().map(|(name, store)| (name.to_string(), store.into())).collect(),
        }
    }
}

impl From<&core::DataStore> for DataStore {
    fn from(from: &core::DataStore) -> Self {
        Self {
            state: from.state.into(),
            since_ms: from.since.as_millis(),
            reason: from.reason.clone(),
            facts: (&from.facts).into(),
        }
    }
}

impl From<&core::StoreFacts> for StoreFacts {
    fn from(from: &core::StoreFacts) -> Self {
        let members = |members: &BTreeMap<String, core::StoreMember>| {
            members.iter().map(|(id, member)| (id.clone(), member.into())).collect()
        };
        Self {
            software: from.software.clone(),
            version: from.version.clone(),
            cluster_id: from.cluster_id.clone(),
            member_id: from.member_id.clone(),
            shards: from.shards.iter().map(|(name, shard)| (name.clone(), shard.into())).collect(),
            members: from.members.as_ref().map(members),
        }
    }
}

impl From<&core::Shard> for Shard {
    fn from(from: &core::Shard) -> Self {
        Self {
            role: from.role.into(),
            history: from.history.clone(),
            offset: from.offset.as_ref().map(Into::into),
            lag: from.lag.as_ref().map(Into::into),
            upstream: from.upstream.clone(),
            streaming: from.streaming,
        }
    }
}

impl From<&core::Amount> for Amount {
    fn from(from: &core::Amount) -> Self {
        Self { amount: from.amount, unit: from.unit.clone() }
    }
}

impl From<&core::StoreMember> for StoreMember {
    fn from(from: &core::StoreMember) -> Self {
        Self {
            name: from.name.clone(),
            address: from.address.clone(),
            votes: from.votes,
            connected: from.connected,
        }
    }
}

impl TryFrom<NodeProbes> for core::NodeProbes {
    type Error = ShapeError;
    fn try_from(from: NodeProbes) -> Result<Self, ShapeError> {
        let stores = from.stores.into_iter().map(|(name, store)| {
            let place = format!("stores.{name}");
            Ok((read(&place, &name)?, store.into()))
        });
        let probes = Self {
            node: read("node", &from.node)?,
            received_at: Timestamp::from_millis(from.received_at_ms),
            sequence: from.sequence,
            stores: stores.collect::<Result<_, ShapeError>>()?,
        };
        probes.check().map_err(|error| ShapeError::at(&error.place, error.reason))?;
        Ok(probes)
    }
}

impl From<DataStore> for core::DataStore {
    fn from(from: DataStore) -> Self {
        Self {
            state: from.state.into(),
            since: Timestamp::from_millis(from.since_ms),
            reason: from.reason,
            facts: from.facts.into(),
        }
    }
}

impl From<StoreFacts> for core::StoreFacts {
    fn from(from: StoreFacts) -> Self {
        let members = |members: BTreeMap<String, StoreMember>| {
            members.into_iter().map(|(id, member)| (id, member.into())).collect()
        };
        Self {
            software: from.software,
            version: from.version,
            cluster_id: from.cluster_id,
            member_id: from.member_id,
            shards: from.shards.into_iter().map(|(name, shard)| (name, shard.into())).collect(),
            members: from.members.map(members),
        }
    }
}

impl From<Shard> for core::Shard {
    fn from(from: Shard) -> Self {
        Self {
            role: from.role.into(),
            history: from.history,
            offset: from.offset.map(Into::into),
            lag: from.lag.map(Into::into),
            upstream: from.upstream,
            streaming: from.streaming,
        }
    }
}

impl From<Amount> for core::Amount {
    fn from(from: Amount) -> Self {
        Self { amount: from.amount, unit: from.unit }
    }
}

impl From<StoreMember> for core::StoreMember {
    fn from(from: StoreMember) -> Self {
        Self { name: from.name, address: from.address, votes: from.votes, connected: from.connected }
    }
}
