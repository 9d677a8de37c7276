//! Pauses of the nodes that a selector picks, as they travel and are kept.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation as CoreAnnotation;
use bellwether_core::records::pause as core;
use bellwether_core::words::selector::Selector;
use serde::{Deserialize, Serialize};

use super::labels::{labels_in, labels_out};
use crate::shape::{ShapeError, read, reason};
use crate::v1::annotation::Annotation;

/// Asks for a pause of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSpec {
    /// Which nodes, now and later; `all` for every one of the namespace.
    #[schema(example = "role=db")]
    pub nodes: String,
    /// Why, for whoever waits; at most 512 bytes.
    #[schema(example = "the disks are being replaced")]
    #[serde(default)]
    pub reason: String,
}

impl PauseSpec {
    /// Reads it: which nodes, and why.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn read(&self) -> Result<(Selector, String), ShapeError> {
        Ok((read("nodes", &self.nodes)?, reason(&self.reason)?))
    }
}

/// A pause of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Pause {
    /// Its name.
    pub name: String,
    /// Which nodes, now and later.
    pub nodes: String,
    /// Whose it is, since when and why.
    pub annotation: Annotation,
    /// Labels given to it by `apply`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A pause, with what it holds now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PauseView {
    /// The pause.
    pub pause: Pause,
    /// How many nodes it holds now.
    pub held: u64,
}

/// What still keeps a node from starting anything, after a resume.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Resumed {
    /// Pauses that hold it by a selector: they end for all of their nodes, or not at all.
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
        Ok(Self { name: read("name", &from.name)?, nodes: read("nodes", &from.nodes)?, annotation, labels })
    }
}
