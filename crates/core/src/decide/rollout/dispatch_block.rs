//! Why no target may be dispatched.

use crate::records::rollout::RolloutWait;
use crate::words::time::Timestamp;

/// Why no target may start, and when that changes without an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DispatchBlock {
    pub(super) wait: RolloutWait,
    pub(super) until: Option<Timestamp>,
}

impl DispatchBlock {
    /// A block that time alone does not end.
    pub(super) const fn of(wait: RolloutWait) -> Self {
        Self { wait, until: None }
    }
}
