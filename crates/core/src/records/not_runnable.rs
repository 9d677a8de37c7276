//! That a node begins no run of a workflow: a task failed on it, or a person said so. Written with the verdict that a target of a
//! run failed, and by people's operations; it exists only as long as it holds.

use alloc::format;
use alloc::string::String;

use crate::words::name::{Actor, EntityName, NodeName};
use crate::words::time::Timestamp;

/// Why a node begins no run, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRunnable {
    /// The node.
    pub node: NodeName,
    /// The run that failed on it; `None` if a person set it.
    pub run: Option<EntityName>,
    /// Who set it; `None` if a run failed.
    pub by: Option<Actor>,
    /// What failed, or the reason given: one line, may be empty.
    pub reason: String,
    /// Since when, by the server's clock.
    pub at: Timestamp,
}

impl NotRunnable {
    /// Why runs wait for the node, and what ends it, in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { node, reason, .. } = self;
        let colon = if reason.is_empty() { "" } else { ": " };
        match (&self.run, &self.by) {
            (Some(run), _) => format!(
                "not runnable: run {run} failed{colon}{reason}; see: bellwether job get {run}/{node}; then: bellwether node runnable {node}"
            ),
            (None, Some(by)) => {
                format!("not runnable, set by {by}{colon}{reason}; end it: bellwether node runnable {node}")
            }
            (None, None) => format!("not runnable{colon}{reason}; end it: bellwether node runnable {node}"),
        }
    }
}
