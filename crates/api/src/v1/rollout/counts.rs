//! How many targets of a rollout are in which state.

use bellwether_core::records::rollout as core;
use serde::{Deserialize, Serialize};

/// How a rollout's targets stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct TargetCounts {
    /// All targets: N.
    pub targets: u64,
    /// Assigned, without a verdict yet.
    pub in_flight: u64,
    /// Succeeded on the version.
    pub succeeded: u64,
    /// Failed on it.
    pub failed: u64,
    /// Silent.
    pub unreachable: u64,
    /// Held by an operator.
    pub held: u64,
    /// Not told yet.
    pub pending: u64,
    /// Back on last known good.
    pub rolled_back: u64,
    /// Failed on the way back.
    pub rollback_failed: u64,
}

impl From<core::TargetCounts> for TargetCounts {
    fn from(from: core::TargetCounts) -> Self {
        Self {
            targets: from.targets,
            in_flight: from.in_flight,
            succeeded: from.succeeded,
            failed: from.failed,
            unreachable: from.unreachable,
            held: from.held,
            pending: from.waiting,
            rolled_back: from.returned,
            rollback_failed: from.failed_return,
        }
    }
}

impl From<TargetCounts> for core::TargetCounts {
    fn from(from: TargetCounts) -> Self {
        Self {
            targets: from.targets,
            in_flight: from.in_flight,
            succeeded: from.succeeded,
            failed: from.failed,
            unreachable: from.unreachable,
            held: from.held,
            waiting: from.pending,
            returned: from.rolled_back,
            failed_return: from.rollback_failed,
        }
    }
}
