//! Annotations: who did something, why and when.

use bellwether_core::records::annotation as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// Who did something, why and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Annotation {
    /// Name of the token or node that did it.
    pub by: String,
    /// Time of the action, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The reason given: one line of at most 512 bytes, or empty.
    #[serde(default)]
    pub reason: String,
}

impl From<&core::Annotation> for Annotation {
    fn from(from: &core::Annotation) -> Self {
        Self { by: from.by.to_string(), at_ms: from.at.as_millis(), reason: from.reason.clone() }
    }
}

impl TryFrom<Annotation> for core::Annotation {
    type Error = ShapeError;
    fn try_from(from: Annotation) -> Result<Self, ShapeError> {
        Ok(Self { by: read("by", &from.by)?, at: Timestamp::from_millis(from.at_ms), reason: from.reason })
    }
}
