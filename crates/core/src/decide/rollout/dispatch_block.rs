//! Why no target may be dispatched.

use crate::records::rollout::RolloutWait;
use crate::words::time::Timestamp;

/// Why nobody takes a turn, and when that changes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DispatchBlock {
    pub(super) wait: RolloutWait,
    pub(super) until: Option<Timestamp>,
}

impl DispatchBlock {
    /// A gate that time does not open.
    pub(super) const fn of(wait: RolloutWait) -> Self {
        Self { wait, until: None }
    }
}
