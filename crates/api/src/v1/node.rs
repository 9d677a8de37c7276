//! Nodes: requests, answers and stored records.

use crate::v1::access::{any_service, is_any_service, patterns};
use crate::v1::annotation::Annotation;
use std::collections::BTreeMap;

use bellwether_core::records::node as core;
use bellwether_core::words::counter::RescanNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::authorities::NodeTrust;
use super::ensemble::unrecorded::UnrecordedMember;
use super::facts::NodeFacts;
use super::labels::{labels_in, labels_out};
use super::not_runnable::NotRunnable;
use super::pause::Pause;
use super::probes::NodeProbes;
use super::status::Status;
use crate::shape::{ShapeError, is_zero, read, read_some};
use crate::word::words;

words! {
    /// The connection state of a node.
    PresenceState = core::PresenceState {
        /// The node joined and has never reported.
        Never = "never",
        /// The node reports.
        Up = "up",
        /// The last report is older than usual.
        Suspect = "suspect",
        /// The node has not reported for so long that it is declared unreachable. What runs on it may be
        /// healthy.
        Unreachable = "unreachable",
    }
}

words! {
    /// Why a node counts as silent.
    SilentState {
        /// The node is expected and has not joined.
        Expected = "expected",
        /// The node joined and has never reported.
        Never = "never",
        /// The last report is older than usual.
        Suspect = "suspect",
        /// The node is declared unreachable.
        Unreachable = "unreachable",
    }
}

/// A node, as it joined and as people changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Node {
    /// Node name: a DNS label or a full host name, in lower case, at most 253 characters.
    pub name: String,
    /// Labels of the node.
    pub labels: BTreeMap<String, String>,
    /// Time of its last join, in milliseconds since the Unix epoch.
    pub joined_at_ms: u64,
    /// SHA-256 of the public key of its certificate, lower-case hex.
    pub key_fingerprint: String,
    /// The same of the key that its certificate was renewed for; absent once the node has shown that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_key_fingerprint: Option<String>,
    /// Which authorities it knows; absent if there has been one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<NodeTrust>,
    /// Who paused the node, when and why; absent if it is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Annotation>,
    /// Who cordoned or drained the node; absent if it is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordon: Option<Cordon>,
    /// Who decommissioned the node, when and why; absent if it is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decommissioned: Option<Annotation>,
    /// The cluster whose manager it is, for a logical node, which another node's agent hosts; absent for a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical: Option<String>,
    /// Number of the last requested rescan of its facts; absent if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rescan: u64,
    /// Names of the services that the node may register, each may end with `*`; all if absent. What it registers besides is not in
    /// the catalogue.
    #[serde(default = "any_service", skip_serializing_if = "is_any_service")]
    pub services: Vec<String>,
}

/// A cordon: the node is not assigned new versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Cordon {
    /// Who cordoned or drained it, when and why.
    pub annotation: Annotation,
    /// The drain, requested or done; absent for a cordon alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
}

/// A drain: the node's services are withdrawn from discovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Drain {
    /// Requested, and not begun: its budget does not allow it yet.
    Waiting {
        /// The most instances of any one service that may be unavailable: a count, or a share such as `25%`.
        max_unavailable: String,
        /// Time at which the drain is given up, in milliseconds since the Unix epoch.
        deadline_ms: u64,
        /// What keeps it waiting, one line; absent from what is stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The services are not returned to other nodes.
    Drained {
        /// Since when, in milliseconds since the Unix epoch.
        since_ms: u64,
    },
}

/// Request to change which services a node may register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AllowedServices {
    /// Names of services, at most 64; each may end with `*`. None if empty.
    pub services: Vec<String>,
}

/// Request to drain a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// Reason, one line of at most 512 bytes; may be empty.
    #[serde(default)]
    pub reason: String,
    /// The most instances of any one service that may be unavailable at once: a count, or a share such as `25%`;
    /// `1` if absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::shape::text_or_count"
    )]
    #[schema(value_type = Option<String>)]
    pub max_unavailable: Option<String>,
    /// How long the drain may wait, such as `30m`, at most `365d`; `1h` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Drain at once, whatever else is unavailable.
    #[serde(default)]
    pub force: bool,
}

/// Request to decommission a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecommissionRequest {
    /// Reason, one line of at most 512 bytes; may be empty.
    #[serde(default)]
    pub reason: String,
    /// Whether also a node that is up and has members or OSDs of ensembles is decommissioned, which count as lost then.
    #[serde(default)]
    pub force: bool,
}

/// The reason for an operation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Reason, one line of at most 512 bytes; may be empty.
    #[serde(default)]
    pub reason: String,
}

/// Request to change labels.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelChange {
    /// Labels to set.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Keys to remove.
    #[serde(default)]
    pub remove: Vec<String>,
}

/// The state of a node's connection to the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Presence {
    /// Whether the node reports.
    pub state: PresenceState,
    /// Time since which it is in that state, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Name of the server with which the node has, or last had, its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// A node with its connection, versions and statuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NodeView {
    /// The node.
    pub node: Node,
    /// State of its connection.
    pub presence: Presence,
    /// Pauses that apply to the node by their selectors, in addition to its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
    /// Why it begins no run of a workflow; absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_runnable: Option<NotRunnable>,
    /// Why it does not accept its orders, one line; absent if it does, or is out of contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_refusal: Option<String>,
    /// The version that it runs, by entity name: the last one whose validation passed.
    pub running: BTreeMap<String, String>,
    /// The version that it is assigned, by entity name.
    pub assigned: BTreeMap<String, String>,
    /// Its statuses, by category.
    pub statuses: BTreeMap<String, Status>,
    /// Version of the agent; absent before the first report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Time of its last report, in milliseconds since the Unix epoch; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_at_ms: Option<u64>,
    /// The members of ensembles that it has and that are not recorded, by ensemble; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unrecorded_members: BTreeMap<String, UnrecordedMember>,
    /// Its data stores; absent if its agent probes none, and from lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<NodeProbes>,
    /// Its facts; absent before the agent reported any, and from lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<NodeFacts>,
}

/// A node that does not report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SilentNode {
    /// Node name.
    pub node: String,
    /// Why it counts as silent.
    pub state: SilentState,
    /// Time since which it is in that state, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Who expects the node, when and why; only with state `expected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Annotation>,
}

impl From<&core::Node> for Node {
    fn from(from: &core::Node) -> Self {
        Self {
            name: from.name.to_string(),
            labels: labels_out(&from.labels),
            joined_at_ms: from.joined_at.as_millis(),
            key_fingerprint: from.key_fingerprint.clone(),
            next_key_fingerprint: from.next_key_fingerprint.clone(),
            trust: from.trust.as_ref().map(NodeTrust::from),
            pause: from.pause.as_ref().map(Annotation::from),
            cordon: from.cordon.as_ref().map(|cordon| Cordon {
                annotation: Annotation::from(&cordon.annotation),
                drain: cordon.drain.map(Drain::from),
            }),
            decommissioned: from.decommissioned.as_ref().map(Annotation::from),
            rescan: from.rescan.get(),
            logical: from.logical.as_ref().map(ToString::to_string),
            services: from.services.iter().map(ToString::to_string).collect(),
        }
    }
}

impl TryFrom<Node> for core::Node {
    type Error = ShapeError;
    fn try_from(from: Node) -> Result<Self, ShapeError> {
        Ok(Self {
            name: read("name", &from.name)?,
            labels: labels_in(&from.labels)?,
            joined_at: Timestamp::from_millis(from.joined_at_ms),
            key_fingerprint: from.key_fingerprint,
            next_key_fingerprint: from.next_key_fingerprint,
            trust: from.trust.map(Into::into),
            pause: from.pause.map(TryInto::try_into).transpose()?,
            cordon: from.cordon.map(TryInto::try_into).transpose()?,
            decommissioned: from.decommissioned.map(TryInto::try_into).transpose()?,
            rescan: RescanNumber::new(from.rescan),
            logical: read_some("logical", from.logical.as_deref())?,
            services: patterns("services", &from.services)?,
        })
    }
}

impl TryFrom<Cordon> for core::Cordon {
    type Error = ShapeError;
    fn try_from(from: Cordon) -> Result<Self, ShapeError> {
        Ok(Self {
            annotation: from.annotation.try_into()?,
            drain: from.drain.map(TryInto::try_into).transpose()?,
        })
    }
}

impl From<core::Drain> for Drain {
    fn from(from: core::Drain) -> Self {
        match from {
            core::Drain::Waiting(budget) => Self::Waiting {
                max_unavailable: budget.max_unavailable.to_string(),
                deadline_ms: budget.deadline.as_millis(),
                reason: None,
            },
            core::Drain::Drained(since) => Self::Drained { since_ms: since.as_millis() },
        }
    }
}

impl TryFrom<Drain> for core::Drain {
    type Error = ShapeError;
    fn try_from(from: Drain) -> Result<Self, ShapeError> {
        Ok(match from {
            Drain::Waiting { max_unavailable, deadline_ms, reason: _ } => Self::Waiting(core::DrainBudget {
                max_unavailable: read("max_unavailable", &max_unavailable)?,
                deadline: Timestamp::from_millis(deadline_ms),
            }),
            Drain::Drained { since_ms } => Self::Drained(Timestamp::from_millis(since_ms)),
        })
    }
}

impl From<&core::Presence> for Presence {
    fn from(from: &core::Presence) -> Self {
        Self {
            state: from.contact.into(),
            since_ms: from.since.as_millis(),
            server: from.server.as_ref().map(ToString::to_string),
        }
    }
}

impl TryFrom<Presence> for core::Presence {
    type Error = ShapeError;
    fn try_from(from: Presence) -> Result<Self, ShapeError> {
        let server = read_some("server", from.server.as_deref())?;
        Ok(Self { contact: from.state.into(), since: Timestamp::from_millis(from.since_ms), server })
    }
}
