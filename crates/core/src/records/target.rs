//! The assignment of one target by its entity, and its outcome. Written only by the rollout decider; what the target is
//! doing at the moment is not stored but read from its sighting by [`phase`](crate::rollout::observation::phase).

use alloc::sync::Arc;

use super::evidence::Evidence;
use crate::words::counter::{AssignmentNumber, RolloutNumber};
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// The assignment of one target, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetState {
    /// The version it was told.
    pub version: Version,
    /// The rollout that told it, or the newest one when it was brought to last known good without any.
    pub rollout: RolloutNumber,
    /// Why it was told.
    pub purpose: AssignmentPurpose,
    /// How often it was told something; a report that answers an older number is old news.
    pub assignment: AssignmentNumber,
    /// When it was told.
    pub assigned_at: Timestamp,
    /// Counts towards its deadline.
    pub clock: DeadlineClock,
    /// The outcome of the assignment.
    pub outcome: AssignmentOutcome,
}

/// Why a target was told a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentPurpose {
    /// It was its turn in a rollout.
    Update,
    /// It already ran the rollout's version, untold.
    Adopted,
    /// It went back with its rollout.
    Rollback,
    /// It joined, or was not reached in time, and belongs on last known good.
    KnownGood,
}

/// Counts towards a target's deadline, on the entity's pause clock; stands still while an operator holds the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineClock {
    /// Counting since this time of the entity's pause clock.
    Running {
        /// Later than the assignment by whatever time did not count.
        from: Timestamp,
    },
    /// Standing still, with this much counted.
    Stopped {
        /// What was counted before it stopped.
        spent: Span,
    },
}

/// The outcome of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignmentOutcome {
    /// No verdict yet.
    InFlight,
    /// Healthy on the version for the soak.
    Succeeded {
        /// Time of the outcome, by the server's clock.
        at: Timestamp,
        /// When it was first seen failing afterwards, if it was. Reported, never rolled back.
        failed_later: Option<Timestamp>,
    },
    /// It said that it failed, its checks failed, or its deadline passed while it was heard from.
    Failed {
        /// Time of the outcome, by the server's clock.
        at: Timestamp,
        /// What was observed when it failed.
        evidence: Arc<Evidence>,
    },
    /// Its deadline passed while it was silent.
    Unreachable {
        /// Time of the outcome, by the server's clock.
        at: Timestamp,
    },
}

impl TargetState {
    /// Whether the assignment has no verdict yet.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        match self.outcome {
            AssignmentOutcome::InFlight => true,
            AssignmentOutcome::Succeeded { .. }
            | AssignmentOutcome::Failed { .. }
            | AssignmentOutcome::Unreachable { .. } => false,
        }
    }
}
