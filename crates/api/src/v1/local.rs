//! What programs on a machine say to its own agent, over the agent's socket.

use serde::{Deserialize, Serialize};

use super::status::StatusState;

/// Says which state this machine is in, in a category of the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewStatus {
    /// The state; `unknown` is refused.
    pub state: StatusState,
    /// One line for a person, at most 512 bytes.
    #[serde(default)]
    pub reason: String,
    /// For how long it holds without being refreshed, in milliseconds, from a second to a year; for ever if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_ms: Option<u64>,
}
