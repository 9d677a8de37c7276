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
    /// Time for which it must be healthy to succeed, as its agent was told.
    pub soak: Span,
    /// Time counted towards the deadline.
    pub clock: DeadlineClock,
    /// The last known good version, if the target was failing on it when it was assigned: failing again is no evidence
    /// against the assigned version. `None` once it has succeeded.
    pub failing_before: Option<Version>,
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

/// Time counted towards a target's deadline. Only time in which a success could have been seen counts: it stops
/// while the target waits, is held by an operator or is out of contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineClock {
    /// Running.
    Running {
        /// Start on the entity's pause clock; later than the assignment by the time that did not count.
        from: Timestamp,
        /// When it was started, by the server's clock. Contact regained later starts it anew.
        set_at: Timestamp,
    },
    /// Stopped.
    Stopped {
        /// Time counted before it stopped.
        spent: Span,
    },
    /// Not counted: the target is out of contact. After as long again as the deadline it is given up as unreachable.
    Silent {
        /// Start of the silence, on the entity's pause clock.
        since: Timestamp,
        /// Time counted before it, without the last moments, in which contact was assumed and not proved.
        spent: Span,
    },
    /// The deadline has passed. For a node, contact that lasts decides; for an external target, its next report.
    Overdue {
        /// When it was noticed, by the server's clock.
        at: Timestamp,
        /// When contact has lasted long enough to prove that the target could have reported a success; `None` if
        /// only a report proves that.
        until: Option<Timestamp>,
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
    /// It reported a failure, its checks failed, or it was seen not to have succeeded after its deadline.
    Failed {
        /// Time of the outcome, by the server's clock.
        at: Timestamp,
        /// Evidence of the failure.
        evidence: Arc<Evidence>,
    },
    /// It was out of contact, or did not accept the assignment, for as long as its deadline; or nobody saw enough of it.
    Unreachable {
        /// Time of the outcome, by the server's clock.
        at: Timestamp,
        /// Why it was given up, in one line.
        reason: Arc<str>,
    },
}

impl TargetState {
    /// Whether a soak can still change what is known of the assignment.
    #[must_use]
    pub const fn awaits_soak(&self) -> bool {
        match self.outcome {
            AssignmentOutcome::InFlight
            | AssignmentOutcome::Failed { .. }
            | AssignmentOutcome::Succeeded { failed_later: Some(_), .. } => true,
            AssignmentOutcome::Succeeded { failed_later: None, .. }
            | AssignmentOutcome::Unreachable { .. } => false,
        }
    }

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
