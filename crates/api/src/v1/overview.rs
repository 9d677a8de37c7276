//! One screen about a namespace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::node::PresenceState;

/// One screen about a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Overview {
    /// The namespace.
    pub namespace: String,
    /// The server's version.
    pub server_version: String,
    /// Whether a server leads, and so whether anything moves.
    pub has_leader: bool,
    /// Which server that is, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<super::server::Leader>,
    /// The number of its leadership.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// Servers that have their place now.
    #[serde(default)]
    pub servers: u64,
    /// The number of nodes in each state of presence.
    pub nodes: BTreeMap<PresenceState, u64>,
    /// Nodes a person paused.
    pub paused: u64,
    /// Nodes with a failed status.
    pub failing: u64,
    /// Entities, each with where its rollout stands.
    pub entities: Vec<EntityOverview>,
    /// The number of the last event.
    pub last_event: u64,
    /// What keeps everything, as the answering server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<super::server::StoreStatus>,
}

/// One entity in the overview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EntityOverview {
    /// Its name.
    pub name: String,
    /// Its targets.
    pub targets: u64,
    /// The version that was requested last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// Last known good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good: Option<String>,
    /// Last known bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_bad: Option<String>,
    /// Where its rollout stands and why.
    pub message: String,
}
