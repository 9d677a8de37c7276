//! Behaviour: what targets do about what they are told, in virtual time. Owns the answers and the ready-made casts; never
//! sees the board.

use alloc::sync::Arc;

use crate::records::policy::Policy;
use crate::records::target::AssignmentPurpose;
use crate::trial::simulation::random::RandomStream;
use crate::words::counter::AssignmentNumber;
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// What one target was told.
#[derive(Debug, Clone, Copy)]
pub struct AssignedVersion<'a> {
    /// Which target.
    pub target: &'a TargetName,
    /// What it was told to run.
    pub version: &'a Version,
    /// Whether it is its turn, or goes back.
    pub purpose: AssignmentPurpose,
    /// How often it was told something, this time included.
    pub assignment: AssignmentNumber,
    /// When.
    pub at: Timestamp,
    /// The policy under which.
    pub policy: &'a Policy,
}

/// What a target does about what it was told. Lengths count from when it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedResponse {
    /// It runs the version after `apply`, and well.
    Succeeds {
        /// How long it takes to run it.
        apply: Span,
    },
    /// It reports after `apply` that it could not.
    Fails {
        /// How long it tried.
        apply: Span,
        /// How many attempts it made, from 1.
        attempts: u32,
    },
    /// It runs the version after `apply`, and a check fails when it was healthy for so long.
    BecomesUnhealthy {
        /// How long it takes to run it.
        apply: Span,
        /// How long it is healthy; zero when it never is.
        healthy_for: Span,
    },
    /// It is heard from, and never gets it done.
    Hangs,
    /// It is not heard from any more.
    FallsSilent {
        /// How long it is still heard from.
        after: Span,
    },
}

/// How the targets of a rehearsal behave.
pub trait TargetBehaviour {
    /// What a target does about what it was just told. `chance` is the target's own stream for this assignment: the same
    /// seed gives every target the same luck under every policy.
    fn answer(&self, told: &AssignedVersion<'_>, chance: &mut RandomStream) -> SimulatedResponse;

    /// Where a target stands, such as its zone; batches are counted by it.
    fn domain(&self, target: &TargetName) -> Option<Arc<str>> {
        let _ = target;
        None
    }
}

/// Everybody does alike; the way back, and to last known good, always succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniformBehaviour {
    /// What everybody does about the version.
    pub forward: SimulatedResponse,
    /// How long a target takes to run last known good.
    pub back: Span,
}

impl UniformBehaviour {
    /// Everybody runs it after `apply` and stays well: the earliest end.
    #[must_use]
    pub const fn succeeds(apply: Span) -> Self {
        Self { forward: SimulatedResponse::Succeeds { apply }, back: apply }
    }

    /// Everybody says at once that it could not: a bad version that shows itself as early as it can.
    #[must_use]
    pub const fn fails_at_once(apply: Span) -> Self {
        Self { forward: SimulatedResponse::Fails { apply: Span::ZERO, attempts: u32::MAX }, back: apply }
    }

    /// Everybody runs it, and fails a moment before that counts as success: a bad version that shows itself as late as it
    /// can. Where checks fail nobody at once, only the deadline does.
    #[must_use]
    pub fn fails_at_last(apply: Span, policy: &Policy) -> Self {
        let moment = policy.soak.as_millis().saturating_sub(1);
        let last = SimulatedResponse::BecomesUnhealthy { apply, healthy_for: Span::from_millis(moment) };
        Self { forward: if policy.fail_fast { last } else { SimulatedResponse::Hangs }, back: apply }
    }
}

impl TargetBehaviour for UniformBehaviour {
    fn answer(&self, told: &AssignedVersion<'_>, _: &mut RandomStream) -> SimulatedResponse {
        match told.purpose {
            AssignmentPurpose::Update | AssignmentPurpose::Adopted => self.forward,
            AssignmentPurpose::Rollback | AssignmentPurpose::KnownGood => {
                SimulatedResponse::Succeeds { apply: self.back }
            }
        }
    }
}
