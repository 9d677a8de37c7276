//! The assignment of one target by its entity, and its outcome. Written only by the rollout decider; the
//! target's present activity is not stored but derived from its observation by
//! [`phase`](crate::rollout::observation::phase).

use alloc::sync::Arc;

use super::evidence::Evidence;
use crate::words::counter::{AssignmentNumber, RolloutNumber};
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// The assignment of a target, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetState {
    /// The assigned version.
    pub version: Version,
    /// The rollout that assigned it; the newest one if it was assigned last known good outside of a rollout.
    pub rollout: RolloutNumber,
    /// Purpose of the assignment.
    pub purpose: AssignmentPurpose,
    /// Number of the assignment, from 1; reports that answer an older number are ignored.
    pub assignment: AssignmentNumber,
    /// Time of the assignment, by the server's clock.
    pub assigned_at: Timestamp,
    /// Time counted towards the deadline.
    pub clock: DeadlineClock,
    /// The outcome of the assignment.
    pub outcome: AssignmentOutcome,
}

/// Purpose of an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentPurpose {
    /// A rollout updates the target.
    Update,
    /// The target already ran the rollout's version before it was assigned.
    Adopted,
    /// A rollout rolls the target back.
    Rollback,
    /// The target joined, or was unreachable, and belongs on last known good.
    KnownGood,
}

/// Time counted towards a target's deadline, on the entity's pause clock; it stops while an operator holds
/// the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineClock {
    /// Running.
    Running {
        /// Start on the entity's pause clock; later than the assignment by the time that did not count.
        from: Timestamp,
    },
    /// Stopped.
    Stopped {
        /// Time counted before it stopped.
        spent: Span,
    },
}

/// The outcome of an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignmentOutcome {
    /// No outcome yet.
    InFlight,
    /// Healthy on the version for the soak time.
    Succeeded {
        /// Time of the outcome, by the server's clock.
        at: Timestamp,
        /// Time it was first observed failing afterwards. Reported, never rolled back.
        failed_later: Option<Timestamp>,
    },
    /// It reported a failure, its checks failed, or its deadline passed while it was reporting.
    Failed {
        /// Time of the outcome, by the server's clock.
        at: Timestamp,
        /// Evidence of the failure.
        evidence: Arc<Evidence>,
    },
    /// Its deadline passed while it was silent.
    Unreachable {
        /// Time of the outcome, by the server's clock.
        at: Timestamp,
    },
}

impl TargetState {
    /// Whether the assignment has no outcome yet.
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
