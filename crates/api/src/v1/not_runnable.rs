//! Nodes that begin no run of a workflow: requests, answers and stored records.

use bellwether_core::records::not_runnable as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, read_some};

/// Why a node begins no run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NotRunnable {
    /// Name of the node.
    pub node: String,
    /// The run that failed on it; absent if a person set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Name of the token that set it; absent if a run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What failed, or the reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
}

/// Request to say whether a node begins runs of workflows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Runnable {
    /// Whether it does. Default true.
    #[serde(default = "yes")]
    pub runnable: bool,
    /// Reason, recorded in the history.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

const fn yes() -> bool {
    true
}

impl Default for Runnable {
    fn default() -> Self {
        Self { runnable: true, reason: String::new() }
    }
}

impl From<&core::NotRunnable> for NotRunnable {
    fn from(from: &core::NotRunnable) -> Self {
        Self {
            node: from.node.to_string(),
            run: from.run.as_ref().map(ToString::to_string),
            by: from.by.as_ref().map(ToString::to_string),
            reason: from.reason.clone(),
            at_ms: from.at.as_millis(),
        }
    }
}

impl TryFrom<NotRunnable> for core::NotRunnable {
    type Error = ShapeError;
    fn try_from(from: NotRunnable) -> Result<Self, ShapeError> {
        Ok(Self {
            node: read("node", &from.node)?,
            run: read_some("run", from.run.as_deref())?,
            by: read_some("by", from.by.as_deref())?,
            reason: from.reason,
            at: Timestamp::from_millis(from.at_ms),
        })
    }
}
