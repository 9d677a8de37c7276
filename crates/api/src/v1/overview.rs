//! Summary of a namespace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::node::PresenceState;
use crate::shape::is_zero;

/// Summary of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Overview {
    /// Namespace.
    pub namespace: String,
    /// Version of the answering server.
    pub server_version: String,
    /// Whether a server leads; without a leader no rollout advances.
    pub has_leader: bool,
    /// The leader and since when it leads; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<super::server::Leader>,
    /// Term of the leader; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// Number of live servers.
    #[serde(default)]
    pub servers: u64,
    /// The number of nodes in each state of presence.
    pub nodes: BTreeMap<PresenceState, u64>,
    /// Number of nodes that a person paused.
    pub paused: u64,
    /// Number of nodes whose drain waits for its budget.
    #[serde(default)]
    pub waiting_drains: u64,
    /// The first of them by name, and what its drain waits for; absent if none waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_waiting_drain: Option<String>,
    /// Number of nodes with a failed status.
    pub failing: u64,
    /// Number of nodes in contact that do not accept their orders; absent if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refusing: u64,
    /// The first of them by name, with the reason; absent if there is none, or the caller may not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_refusing: Option<String>,
    /// Number of service instances with a failing check, without those of drained and of unreachable nodes.
    #[serde(default)]
    pub failing_instances: u64,
    /// The ensembles of which a member or an OSD does not work, or is not known to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impaired_ensembles: Vec<ImpairedEnsemble>,
    /// Number of nodes that begin no run of a workflow.
    #[serde(default)]
    pub not_runnable: u64,
    /// The first of them by name, with the reason; absent if there is none, or the caller may not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_not_runnable: Option<String>,
    /// Number of conditions of data stores and clusters that are true, as far as the caller may read their nodes.
    #[serde(default)]
    pub conditions: u64,
    /// The first of them, in the order of their subjects; at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_conditions: Vec<ConditionOverview>,
    /// Reactions that start nothing now since they fired as often as they may within an hour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited_reactions: Vec<String>,
    /// Sinks that stopped, or that have failed with the same event for a minute at least; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck_sinks: Vec<StuckSink>,
    /// The freezes and stops in force, those of all namespaces too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub freezes: Vec<super::freeze::FreezeView>,
    /// The entities, each with the state of its rollout.
    pub entities: Vec<EntityOverview>,
    /// Number of the last event.
    pub last_event: u64,
    /// What is wrong with the answering server's keys for secrets, each with the next step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// State of the store, as the answering server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<super::server::StoreStatus>,
}

/// An ensemble of which something does not work, in the summary.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ImpairedEnsemble {
    /// Name of the ensemble.
    pub ensemble: String,
    /// Number of members that vote, or that are the primary or a replica.
    pub members: u64,
    /// Number of those of them that work.
    pub working: u64,
    /// Number of members that there are to be.
    #[serde(default)]
    pub wanted: u64,
    /// Number of OSDs that have data; absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub osds: u64,
    /// Number of those of them that work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub working_osds: u64,
    /// Number of members that were to leave a minute ago or longer, and have not, of an ensemble that was deleted; absent of any other one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub staying: u64,
    /// Number of members that nodes have of it and that are not recorded; absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unrecorded: u64,
    /// Number of members that work and warn, as of one whose directory is gone; absent if none does.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warning: u64,
    /// Whether nothing is decided for it, as the control plane was restored and its members may be newer than what is recorded of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// A condition in the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConditionOverview {
    /// Name of the condition.
    #[schema(example = "no_primary")]
    pub condition: String,
    /// What it is true of.
    #[schema(example = "cluster/db/kv")]
    pub subject: String,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
}

/// A sink that does not send, in the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StuckSink {
    /// Name of the sink.
    pub sink: String,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
    /// Why, in one line.
    pub reason: String,
}

/// An entity in the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EntityOverview {
    /// Entity name.
    pub name: String,
    /// Number of its targets.
    pub targets: u64,
    /// The version that targets are to run now: the one requested last, or the last known good one once a
    /// rollback began; absent before the first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// The version that was requested last; absent before the first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// The last known good version; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good: Option<String>,
    /// The last known bad version; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_bad: Option<String>,
    /// Number of its known bad versions, the last one included.
    #[serde(default)]
    pub known_bad: u64,
    /// Number of failures, in the last ten minutes, of targets that had succeeded; at most those among the newest events.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_failures: u64,
    /// State of its rollout and the reason for it, one line.
    pub reason: String,
}
