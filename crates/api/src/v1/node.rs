//! Nodes, as they travel and are kept.

use crate::v1::annotation::Annotation;
use std::collections::BTreeMap;

use bellwether_core::records::node as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::labels::{labels_in, labels_out};
use super::pause::Pause;
use super::status::Status;
use crate::shape::{ShapeError, read, read_some};
use crate::word::words;

words! {
    /// Whether a node reports to the control plane.
    PresenceState = core::PresenceState {
        /// It joined and never reported.
        Never = "never",
        /// It reports.
        Up = "up",
        /// Its last report is older than usual.
        Suspect = "suspect",
        /// It has not reported for so long that it is declared unreachable. What runs on it may be healthy.
        Unreachable = "unreachable",
    }
}

words! {
    /// Why a node counts as silent.
    SilentState {
        /// It is expected and has not joined.
        Expected = "expected",
        /// It joined and never reported.
        Never = "never",
        /// Its last report is older than usual.
        Suspect = "suspect",
        /// It is declared unreachable.
        Unreachable = "unreachable",
    }
}

/// A node as people and its join describe it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Node {
    /// Its name, a DNS label.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When it last joined, in milliseconds since the Unix epoch.
    pub joined_at_ms: u64,
    /// SHA-256 of its certificate's public key, lower-case hex.
    pub key_fingerprint: String,
    /// Who paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Annotation>,
    /// Who cordoned or drained it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordon: Option<Cordon>,
    /// Who decommissioned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decommissioned: Option<Annotation>,
}

/// A person's word that a node is to be told nothing new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Cordon {
    /// Who, when and why.
    pub annotation: Annotation,
    /// Whether what it offers is not to serve others any more.
    #[serde(default)]
    pub drained: bool,
}

/// The reason of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// One line for whoever asks why; at most 512 bytes.
    #[serde(default)]
    pub reason: String,
}

/// Asks to change labels.
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

/// What the control plane knows of a node's connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Presence {
    /// Whether the node reports.
    pub state: PresenceState,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// The server that it holds its session with, or held the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// Everything known about one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NodeView {
    /// The node itself.
    pub node: Node,
    /// Its connection.
    pub presence: Presence,
    /// Pauses that hold it by their selectors, beside its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
    /// What it runs, by entity: versions that validation passed on.
    pub running: BTreeMap<String, String>,
    /// What it was told to be at, by entity.
    pub assigned: BTreeMap<String, String>,
    /// Its statuses, by category.
    pub statuses: BTreeMap<String, Status>,
    /// The agent's version, once it has reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// When its last report arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_at_ms: Option<u64>,
}

/// A node of whom nobody hears.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SilentNode {
    /// Its name.
    pub node: String,
    /// Why it counts as silent.
    pub state: SilentState,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Who expects it, of one that has not joined.
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
            pause: from.pause.as_ref().map(Annotation::from),
            cordon: from.cordon.as_ref().map(|cordon| Cordon {
                annotation: Annotation::from(&cordon.annotation),
                drained: cordon.drained,
            }),
            decommissioned: from.decommissioned.as_ref().map(Annotation::from),
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
            pause: from.pause.map(TryInto::try_into).transpose()?,
            cordon: from.cordon.map(TryInto::try_into).transpose()?,
            decommissioned: from.decommissioned.map(TryInto::try_into).transpose()?,
        })
    }
}

impl TryFrom<Cordon> for core::Cordon {
    type Error = ShapeError;
    fn try_from(from: Cordon) -> Result<Self, ShapeError> {
        Ok(Self { annotation: from.annotation.try_into()?, drained: from.drained })
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
