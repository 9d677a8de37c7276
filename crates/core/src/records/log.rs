//! Stored logs: the end of the output of a node's last failing run, one per category and entity. Written only
//! by the node's own agent, replaced by the next failure, and removed with the entity.

use alloc::string::String;

use crate::words::name::{Category, EntityName, NodeName};
use crate::words::time::Timestamp;

/// Longest stored log, in bytes; only the end of a longer output is stored.
pub const MAX_LOG_BYTES: usize = 64 << 10;

/// Most stored logs of one node; beyond this the oldest is removed.
pub const MAX_LOGS: usize = 16;

/// Longest name of a run, in bytes.
pub const MAX_RUN_BYTES: usize = 64;

/// The end of the output of a failing run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLog {
    /// Name of the node.
    pub node: NodeName,
    /// Status category of the failing run.
    pub category: Category,
    /// Entity whose run failed.
    pub entity: EntityName,
    /// The agent's name for the run, at most [`MAX_RUN_BYTES`].
    pub run: String,
    /// Time it arrived, by the server's clock.
    pub at: Timestamp,
    /// Length of the text, in bytes.
    pub bytes: usize,
    /// The output, at most [`MAX_LOG_BYTES`]. Empty in the world, which holds the other fields only.
    pub text: String,
}

impl NodeLog {
    /// The log without its text.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self { text: String::new(), ..self }
    }
}
