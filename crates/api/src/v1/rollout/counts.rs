//! Number of targets of a rollout in each state.

use bellwether_core::records::rollout as core;
use serde::{Deserialize, Serialize};

/// Number of targets of a rollout in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct TargetCounts {
    /// All targets.
    pub targets: u64,
    /// Targets that were assigned the version and have neither succeeded nor failed yet.
    pub in_flight: u64,
    /// Targets that succeeded.
    pub succeeded: u64,
    /// Targets that failed.
    pub failed: u64,
    /// Targets that failed as they had on the last known good version before: no evidence against the version.
    pub failing_before: u64,
    /// Targets that are unreachable.
    pub unreachable: u64,
    /// Targets that a person paused or cordoned.
    pub held: u64,
    /// Targets that were not assigned the version yet.
    pub pending: u64,
    /// Targets that were rolled back to the last known good version.
    pub rolled_back: u64,
    /// Targets that failed during their rollback.
    pub rollback_failed: u64,
    /// Targets that were unreachable during the rollback. They are rolled back when they are in contact again.
    pub rollback_unreachable: u64,
}

impl From<core::TargetCounts> for TargetCounts {
    fn from(from: core::TargetCounts) -> Self {
        Self {
            targets: from.targets,
            in_flight: from.in_flight,
            succeeded: from.succeeded,
            failed: from.failed,
            failing_before: from.failing_before,
            unreachable: from.unreachable,
            held: from.held,
            pending: from.waiting,
            rolled_back: from.returned,
            rollback_failed: from.failed_return,
            rollback_unreachable: from.missed_return,
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
            failing_before: from.failing_before,
            unreachable: from.unreachable,
            held: from.held,
            waiting: from.pending,
            returned: from.rolled_back,
            failed_return: from.rollback_failed,
            missed_return: from.rollback_unreachable,
        }
    }
}
