//! Kept logs: the end of what a node's last failing run said, one per category and entity. Written only by the node's own
//! agent, and replaced only by the next failure.

use alloc::string::String;

use crate::words::name::{Category, EntityName, NodeName};
use crate::words::time::Timestamp;

/// Most of a log that is kept, in bytes: its end.
pub const MAX_LOG_BYTES: usize = 64 << 10;

/// Most logs kept of one node: beyond this the oldest goes.
pub const MAX_LOGS: usize = 16;

/// Longest name of a run, in bytes.
pub const MAX_RUN_BYTES: usize = 64;

/// The end of what a failing run said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLog {
    /// Name of the node.
    pub node: NodeName,
    /// What it failed at.
    pub category: Category,
    /// What it was about.
    pub entity: EntityName,
    /// Which run, by the agent's own name for it.
    pub run: String,
    /// When it arrived, by the server's clock.
    pub at: Timestamp,
    /// How long the text is, in bytes.
    pub bytes: usize,
    /// What it said, at most [`MAX_LOG_BYTES`]. Empty in the world, which remembers only that it is there.
    pub text: String,
}

impl NodeLog {
    /// The log without what it said.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self { text: String::new(), ..self }
    }
}
