//! Servers, as they are kept and told of.

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
    }
}

/// A process of the control plane that has its place among the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Server {
    /// Its name; no other server has it at the same time.
    pub name: String,
    /// Where agents and people call it, like `https://10.0.0.1:7420`.
    pub address: String,
    /// The release it runs.
    pub version: String,
    /// When it took its place, by its own clock, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}

/// The servers that have their place now, as nodes are told of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LiveServers {
    /// Another one when one of the names or addresses is. Opaque; letters and digits.
    pub tag: String,
    /// The servers, by name; at least one.
    pub servers: Vec<ServerAddress>,
}

/// A server that may be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServerAddress {
    /// Its name.
    pub name: String,
    /// Where it is called, like `https://10.0.0.1:7420`.
    pub address: String,
    /// For how long it has had its place, in milliseconds.
    pub up_for_ms: u64,
}

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Leader {
    /// Which server.
    pub server: String,
    /// Since when, by its own clock, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}

/// The control plane: its servers, who leads, and what it keeps everything in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ControlPlane {
    /// The server that answers.
    pub answered_by: String,
    /// The servers that have their place now, by name.
    pub servers: Vec<Server>,
    /// Who leads; absent while nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<Leader>,
    /// The number of the present leadership. It only grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// The newest revision of the store that the answering server has seen.
    pub revision: u64,
    /// What keeps everything, as the answering server finds it.
    pub store: StoreStatus,
    /// Nodes that hold a session with each server, by its name.
    pub sessions: std::collections::BTreeMap<String, u64>,
}

/// What time it is for a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServerTime {
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// What keeps everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StoreStatus {
    /// The kind of store.
    pub engine: StoreEngine,
    /// The version of what keeps it, if that is another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where it is, if it is elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<String>,
    /// Whether the store can be read and written.
    pub condition: StoreCondition,
    /// Why it is not writable, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For how long it has not been writable, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded_for_ms: Option<u64>,
    /// Bytes on disk, history included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The bytes it may grow to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// What it complains of, in its own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<String>,
    /// What is not wrong yet, and what to do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl From<&core::Server> for Server {
    fn from(from: &core::Server) -> Self {
        Self {
            name: from.name.to_string(),
            address: from.address.clone(),
            version: from.version.clone(),
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
