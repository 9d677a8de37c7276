//! Stored records of tasks, stages and workflows.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::definition::{Definition, DefinitionId};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shape::{ShapeError, read};
use crate::v1::labels::{labels_in, labels_out};

/// Stored record of a task, a stage or a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredDefinition {
    /// `task`, `stage` or `workflow`.
    pub kind: String,
    /// Name of it.
    pub name: String,
    /// Its content.
    pub content: Value,
    /// SHA-256 of the content in canonical form, in lower-case hex.
    pub digest: String,
    /// Labels given to it by `apply`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl TryFrom<&Definition> for StoredDefinition {
    type Error = ShapeError;
    fn try_from(from: &Definition) -> Result<Self, ShapeError> {
        Ok(Self {
            kind: from.id.kind().to_owned(),
            name: from.id.name().to_owned(),
            content: serde_json::from_str(&from.content).map_err(|error| ShapeError::at("content", error))?,
            digest: from.digest.clone(),
            labels: labels_out(&from.labels),
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        })
    }
}

impl TryFrom<StoredDefinition> for Definition {
    type Error = ShapeError;
    fn try_from(from: StoredDefinition) -> Result<Self, ShapeError> {
        let id = match from.kind.as_str() {
            "task" => DefinitionId::Task(read("name", &from.name)?),
            "stage" => DefinitionId::Stage(read("name", &from.name)?),
            "workflow" => DefinitionId::Workflow(read("name", &from.name)?),
            other => return Err(ShapeError::at("kind", format!("{other:?} is not task, stage or workflow"))),
        };
        Ok(Self {
            id,
            content: from.content.to_string(),
            digest: from.digest,
            labels: labels_in(&from.labels)?,
            annotation: Annotation {
                by: read("by", &from.by)?,
                reason: from.reason,
                at: Timestamp::from_millis(from.at_ms),
            },
        })
    }
}
