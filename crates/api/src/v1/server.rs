//! Servers, their leader and their store: answers and stored records.

use bellwether_core::local::servers as local;
use bellwether_core::records::server as core;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};
use crate::word::words;

words! {
    /// The kind of store that keeps all records.
    StoreEngine {
        /// Memory: nothing survives a restart.
        Memory = "memory",
        /// Files of the server itself.
        Embedded = "embedded",
        /// An etcd cluster.
        Etcd = "etcd",
    }
}

words! {
    /// Whether the store can be read and written.
    StoreCondition {
        /// It answers reads and writes.
        Writable = "writable",
        /// It answers reads and keeps leases alive; changes are refused.
        ReadOnly = "read_only",
        /// It does not answer: reads may be stale, and changes are refused.
        Unreachable = "unreachable",
        /// Its disk failed or it is damaged: changes are refused until the server is started again.
        Failed = "failed",
    }
}

/// A live server of the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Server {
    /// Server name, unique among the live servers.
    pub name: String,
    /// Address at which agents and people reach it, such as `https://10.0.0.1:7420`.
    pub address: String,
    /// Version that it runs.
    pub version: String,
    /// Ids of the keys for secrets that it has, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_keys: Vec<String>,
    /// Time since which it is live, by its own clock, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}

/// The live servers, as the control plane sends them to agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LiveServers {
    /// Changes whenever a name or address changes; opaque, letters and digits.
    pub tag: String,
    /// The servers, ordered by name; at least one.
    pub servers: Vec<ServerAddress>,
}

/// The address of a live server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServerAddress {
    /// Server name.
    pub name: String,
    /// Address, such as `https://10.0.0.1:7420`.
    pub address: String,
    /// How long it has been live, in milliseconds.
    pub up_for_ms: u64,
}

/// The leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Leader {
    /// Server name.
    pub server: String,
    /// Time since which it leads, by its own clock, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}

/// The control plane: its servers, their leader and their store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ControlPlane {
    /// Name of the answering server.
    pub answered_by: String,
    /// The live servers, ordered by name.
    pub servers: Vec<Server>,
    /// Servers that were live and are not registered now, ordered by name: the store grants no lease that a registration needs.
    /// They answer reads. Empty while the store takes changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_registered: Vec<Server>,
    /// The leader; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<Leader>,
    /// Term of the leader: the store's revision at which it became the leader, so it grows by more than one at a
    /// time. Absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// The newest store revision that the answering server knows.
    pub revision: u64,
    /// State of the store, as the answering server knows it.
    pub store: StoreStatus,
    /// Number of nodes with a session at each server, by server name.
    pub sessions: std::collections::BTreeMap<String, u64>,
    /// The clocks of the servers that answered the last measurement, by server name.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub clocks: std::collections::BTreeMap<String, ServerClock>,
    /// What is wrong with these clocks, or with the time of the control plane, and what to do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock_warnings: Vec<String>,
}

/// The leadership was handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SteppedDown {
    /// Name of the server that led.
    pub before: String,
    /// Name of the server that leads now.
    pub leader: String,
}

/// The clock of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServerTime {
    /// Present time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// What the system clock of its machine shows, in milliseconds since the Unix epoch; absent from a server of an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Whether it takes part in what needs the right time: leading, and giving slots.
    #[serde(default = "takes_part")]
    pub takes_part: bool,
}

const fn takes_part() -> bool {
    true
}

/// The clocks of a server, as the answering server measured them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServerClock {
    /// By how much the system clock of its machine is ahead of what most system clocks show, in milliseconds; negative if behind.
    pub skew_ms: i64,
    /// By how much its time is ahead of the answering server's, in milliseconds; negative if behind.
    pub ahead_ms: i64,
    /// Whether it takes part in what needs the right time: leading, and giving slots.
    pub takes_part: bool,
}

/// State of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StoreStatus {
    /// The kind of store.
    pub engine: StoreEngine,
    /// Version of the store; only if it is a program of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Addresses of the store; only if it is reached over the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<String>,
    /// Whether the store can be read and written.
    pub condition: StoreCondition,
    /// Why the store is not writable, and what to do; absent if it is writable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long the store has not been writable, in milliseconds; absent if it is writable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded_for_ms: Option<u64>,
    /// Size of the store on disk, history included, in bytes; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Limit of the store's size, in bytes; absent if there is none, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// Alarms that the store itself reports, in its own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<String>,
    /// Conditions that will become errors, and what to do about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl From<&core::Server> for Server {
    fn from(from: &core::Server) -> Self {
        Self {
            name: from.name.to_string(),
            address: from.address.clone(),
            version: from.version.clone(),
            secret_keys: from.secret_keys.iter().map(ToString::to_string).collect(),
            since_ms: from.since.as_millis(),
        }
    }
}

impl TryFrom<Server> for core::Server {
    type Error = ShapeError;
    fn try_from(from: Server) -> Result<Self, ShapeError> {
        Ok(Self {
            name: read("name", &from.name)?,
            address: from.address,
            version: from.version,
            secret_keys: from
                .secret_keys
                .iter()
                .map(|id| read("secret_keys", id))
                .collect::<Result<_, ShapeError>>()?,
            since: Timestamp::from_millis(from.since_ms),
        })
    }
}

impl From<&core::Leader> for Leader {
    fn from(from: &core::Leader) -> Self {
        Self { server: from.server.to_string(), since_ms: from.since.as_millis() }
    }
}

impl TryFrom<Leader> for core::Leader {
    type Error = ShapeError;
    fn try_from(from: Leader) -> Result<Self, ShapeError> {
        Ok(Self { server: read("server", &from.server)?, since: Timestamp::from_millis(from.since_ms) })
    }
}

impl TryFrom<ServerAddress> for local::LiveServer {
    type Error = ShapeError;
    fn try_from(from: ServerAddress) -> Result<Self, ShapeError> {
        let lasts = Span::from_millis(from.up_for_ms);
        Ok(Self { name: read("name", &from.name)?, address: from.address, lasts })
    }
}
