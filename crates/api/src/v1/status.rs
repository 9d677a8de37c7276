//! Node statuses, as they travel.

use bellwether_core::records::status as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::ShapeError;

/// A node's one state in a category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// `success`, `failed`, `running` or `pending`.
    pub state: String,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock. Ignored in requests.
    #[serde(default)]
    pub since_ms: u64,
    /// One line for a person, at most 512 bytes.
    #[serde(default)]
    pub reason: String,
}

impl From<&core::Status> for Status {
    fn from(from: &core::Status) -> Self {
        Self {
            state: from.state.as_str().to_owned(),
            since_ms: from.since.as_millis(),
            reason: from.reason.clone(),
        }
    }
}

impl TryFrom<Status> for core::Status {
    type Error = ShapeError;
    fn try_from(from: Status) -> Result<Self, ShapeError> {
        let state = core::State::parse(&from.state).ok_or_else(|| {
            ShapeError::at("state", format!("{:?} is not success, failed, running or pending", from.state))
        })?;
        if from.reason.len() > core::MAX_REASON_BYTES {
            return Err(ShapeError::at("reason", "it is longer than 512 bytes"));
        }
        Ok(Self { state, since: Timestamp::from_millis(from.since_ms), reason: from.reason })
    }
}
