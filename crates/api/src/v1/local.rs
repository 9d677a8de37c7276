//! Requests of programs on a machine to its agent, over the agent's socket.

use serde::{Deserialize, Serialize};

use super::status::StatusState;

/// Request to set the state of this machine in a category that the user chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewStatus {
    /// The state; `unknown` is refused.
    pub state: StatusState,
    /// The reason, one line of at most 512 bytes.
    #[serde(default)]
    pub reason: String,
    /// How long the status is valid without being refreshed, in milliseconds, from one second to a year; it
    /// does not expire if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_ms: Option<u64>,
}

/// Answer to a request to reload the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reload {
    /// Number of the new configuration; the agent's status shows it once that is in force.
    pub number: u64,
}
