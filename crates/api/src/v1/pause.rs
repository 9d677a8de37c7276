//! Pauses of the nodes that match a selector: requests, answers and stored records.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation as CoreAnnotation;
use bellwether_core::records::pause as core;
use bellwether_core::words::selector::Selector;
use serde::{Deserialize, Serialize};

use super::labels::{labels_in, labels_out};
use crate::shape::{ShapeError, read, reason, selector};
use crate::v1::annotation::Annotation;

/// Request to create or replace a pause of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSpec {
    /// Selector of the nodes that are paused, nodes that match later included; `all` for every node of the
    /// namespace.
    #[schema(example = "role=db")]
    pub nodes: String,
    /// Reason for the pause, at most 512 bytes; shown to everyone whose rollout waits.
    #[schema(example = "the disks are being replaced")]
    #[serde(default)]
    pub reason: String,
}

impl PauseSpec {
    /// Reads the specification: the selector and the reason.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn read(&self) -> Result<(Selector, String), ShapeError> {
        Ok((selector("nodes", &self.nodes)?, reason(&self.reason)?))
    }
}

/// A pause of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Pause {
    /// Pause name.
    pub name: String,
    /// Selector of the nodes that are paused, nodes that match later included.
    pub nodes: String,
    /// Who set it, when and why.
    pub annotation: Annotation,
    /// Labels that `apply` set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A pause with the number of nodes that it pauses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PauseView {
    /// The pause.
    pub pause: Pause,
    /// Number of nodes that it pauses now.
    pub held: u64,
}

/// Answer to the resume of a node: pauses that still apply to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Resumed {
    /// Pauses that still apply to the node by their selectors; each ends only as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<Pause>,
}

impl From<&core::NodePause> for Pause {
    fn from(from: &core::NodePause) -> Self {
        Self {
            name: from.name.to_string(),
            nodes: from.nodes.to_string(),
            annotation: (&from.annotation).into(),
            labels: labels_out(&from.labels),
        }
    }
}

impl TryFrom<Pause> for core::NodePause {
    type Error = ShapeError;
    fn try_from(from: Pause) -> Result<Self, ShapeError> {
        let annotation: CoreAnnotation = from.annotation.try_into()?;
        let labels = labels_in(&from.labels)?;
        Ok(Self {
            name: read("name", &from.name)?,
            nodes: selector("nodes", &from.nodes)?,
            annotation,
            labels,
        })
    }
}
