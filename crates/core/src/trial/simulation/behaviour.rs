//! Behaviour of simulated targets: how they respond to assignments in virtual time. Owns the responses and
//! the predefined behaviours; never reads the board.

use alloc::sync::Arc;

use crate::records::policy::Policy;
use crate::records::target::AssignmentPurpose;
use crate::words::counter::AssignmentNumber;
use crate::words::name::TargetName;
use crate::words::random::RandomStream;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// An assignment of a simulated target.
#[derive(Debug, Clone, Copy)]
pub struct AssignedVersion<'a> {
    /// Name of the target.
    pub target: &'a TargetName,
    /// The assigned version.
    pub version: &'a Version,
    /// Whether it is an update, a rollback, or a move to last known good.
    pub purpose: AssignmentPurpose,
    /// Number of the assignment of this target, from 1.
    pub assignment: AssignmentNumber,
    /// Virtual time of the assignment.
    pub at: Timestamp,
    /// The policy of the rollout.
    pub policy: &'a Policy,
}

/// Response of a target to an assignment. Durations count from the assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedResponse {
    /// It runs the version after `apply`, and stays healthy.
    Succeeds {
        /// Time until it runs the version.
        apply: Span,
    },
    /// It reports a failure after `apply`.
    Fails {
        /// Time until it reports the failure.
        apply: Span,
        /// Number of attempts it made, from 1.
        attempts: u32,
    },
    /// It runs the version after `apply`, and a check fails after it was healthy for `healthy_for`.
    BecomesUnhealthy {
        /// Time until it runs the version.
        apply: Span,
        /// Time it is healthy; zero if it never is.
        healthy_for: Span,
    },
    /// It keeps reporting, but never completes the assignment.
    Hangs,
    /// It stops reporting.
    FallsSilent {
        /// Time until its last report.
        after: Span,
    },
}

/// Behaviour of the targets of a simulation.
pub trait TargetBehaviour {
    /// The response of a target to an assignment. `chance` is the target's own random stream for this
    /// assignment: with the same seed every target draws the same numbers under every policy.
    fn answer(&self, assigned: &AssignedVersion<'_>, chance: &mut RandomStream) -> SimulatedResponse;

    /// The domain of a target, such as its zone; batches are counted by it.
    fn domain(&self, target: &TargetName) -> Option<Arc<str>> {
        let _ = target;
        None
    }
}

/// Every target responds alike; rollbacks, and moves to last known good, always succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniformBehaviour {
    /// Response of every target to an update.
    pub forward: SimulatedResponse,
    /// Time until a target runs last known good.
    pub back: Span,
}

impl UniformBehaviour {
    /// Every target runs the version after `apply` and stays healthy: the earliest end.
    #[must_use]
    pub const fn succeeds(apply: Span) -> Self {
        Self { forward: SimulatedResponse::Succeeds { apply }, back: apply }
    }

    /// Every target reports a failure at once: a bad version that is detected as early as possible.
    #[must_use]
    pub const fn fails_at_once(apply: Span) -> Self {
        Self { forward: SimulatedResponse::Fails { apply: Span::ZERO, attempts: u32::MAX }, back: apply }
    }

    /// Every target runs the version, and fails shortly before it would have succeeded: a bad version that is
    /// detected as late as possible. If failing checks do not fail a target at once, only the deadline does.
    #[must_use]
    pub fn fails_at_last(apply: Span, policy: &Policy) -> Self {
        let moment = policy.soak.as_millis().saturating_sub(1);
        let last = SimulatedResponse::BecomesUnhealthy { apply, healthy_for: Span::from_millis(moment) };
        Self { forward: if policy.fail_fast { last } else { SimulatedResponse::Hangs }, back: apply }
    }
}

impl TargetBehaviour for UniformBehaviour {
    fn answer(&self, assigned: &AssignedVersion<'_>, _: &mut RandomStream) -> SimulatedResponse {
        match assigned.purpose {
            AssignmentPurpose::Update | AssignmentPurpose::Adopted => self.forward,
            AssignmentPurpose::Rollback | AssignmentPurpose::KnownGood => {
                SimulatedResponse::Succeeds { apply: self.back }
            }
        }
    }
}
