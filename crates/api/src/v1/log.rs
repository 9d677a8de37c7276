//! Logs of failed runs: requests, answers and stored records.

use bellwether_core::records::log as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// The end of the output of a failed run, as an agent sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLog {
    /// The agent's name of the run: 1 to 64 letters, digits and `-`.
    pub run: String,
    /// The end of the output, at most 65,536 bytes.
    pub text: String,
}

/// The end of the output of a node's last failed run of one category and entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NodeLog {
    /// Node name.
    pub node: String,
    /// Status category of the run.
    pub category: String,
    /// Entity that the run belongs to.
    pub entity: String,
    /// The agent's name of the run.
    pub run: String,
    /// Time at which the log arrived, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Length of the text, in bytes.
    pub bytes: u64,
    /// The end of the output; empty in lists.
    #[serde(default)]
    pub text: String,
}

/// Reads the name of a run.
///
/// # Errors
/// [`ShapeError`] at `run`.
pub fn run(text: &str) -> Result<String, ShapeError> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if text.is_empty() || text.len() > core::MAX_RUN_BYTES || !text.bytes().all(fine) {
        return Err(ShapeError::at("run", "must be 1 to 64 letters, digits and '-'"));
    }
    Ok(text.to_owned())
}

/// Checks the length of a log.
///
/// # Errors
/// [`ShapeError`] at `text` when it is longer than 65,536 bytes.
pub fn text(text: String) -> Result<String, ShapeError> {
    if text.len() > core::MAX_LOG_BYTES {
        return Err(ShapeError::at("text", "longer than 65536 bytes; send the end only"));
    }
    Ok(text)
}

impl From<&core::NodeLog> for NodeLog {
    fn from(from: &core::NodeLog) -> Self {
        Self {
            node: from.node.to_string(),
            category: from.category.to_string(),
            entity: from.entity.to_string(),
            run: from.run.clone(),
            at_ms: from.at.as_millis(),
            bytes: u64::try_from(from.bytes).unwrap_or(u64::MAX),
            text: from.text.clone(),
        }
    }
}

impl TryFrom<NodeLog> for core::NodeLog {
    type Error = ShapeError;
    fn try_from(from: NodeLog) -> Result<Self, ShapeError> {
        Ok(Self {
            node: read("node", &from.node)?,
            category: read("category", &from.category)?,
            entity: read("entity", &from.entity)?,
            run: run(&from.run)?,
            at: Timestamp::from_millis(from.at_ms),
            bytes: usize::try_from(from.bytes).unwrap_or(usize::MAX),
            text: text(from.text)?,
        })
    }
}
