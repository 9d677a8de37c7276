//! Phases of a target within its entity's rollout. Every target is in exactly one.

/// Phase of a target within its entity's rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetPhase {
    /// On the desired version; nothing to do.
    Rest,
    /// A former target; the record of its assignment is to be removed.
    Gone,
    /// A former target whose failure counts until the rollout ends.
    Departed,
    /// Runs the rolling version without an assignment and is healthy; succeeds after the soak.
    Adopting,
    /// In flight to the rolling version for an older rollout; joins this one.
    CarriedOver,
    /// In flight to a version that was replaced; it can be assigned the new one.
    Passing,
    /// Can be assigned the version now, within the batch.
    Ready,
    /// Can be assigned the version now, within the batch; it is unavailable already, so updating it reduces
    /// nothing.
    Unhealthy,
    /// Needs last known good first, and can be assigned it now.
    Newcomer,
    /// Joined running the rolling version, and is not healthy: what it does counts for that version.
    Arrived,
    /// In flight to last known good, before it is updated.
    Settling,
    /// Cannot be assigned now: it has recently stopped reporting.
    Quiet,
    /// Cannot be assigned now: it is silent.
    Silent,
    /// Cannot be assigned now: an operator holds it.
    Held,
    /// Assigned by this rollout, in flight.
    InFlight,
    /// Assigned by this rollout, in flight, and held by an operator.
    HeldFlight,
    /// Assigned by this rollout, succeeded.
    Succeeded,
    /// Ran the version without an assignment, counted as succeeded.
    Adopted,
    /// Assigned by this rollout, failed.
    Failed,
    /// Assigned by this rollout, failed as it had on last known good before: no evidence against the version.
    FailedAsBefore,
    /// Assigned by this rollout, silent at its deadline, and silent still.
    Lost,
    /// Assigned by this rollout, given up as unreachable, and heard of again: it is in flight again once there is room.
    Returning,
    /// The same, and held by an operator.
    HeldReturning,
    /// Must be rolled back to last known good.
    Moved,
    /// Must be rolled back, and is unavailable already, so that rolling it back reduces nothing.
    MovedUnhealthy,
    /// Must be rolled back, and is still in flight to its former assignment.
    MovedFlight,
    /// Must be rolled back, and is silent.
    MovedSilent,
}

/// Number of phases.
pub(crate) const PHASES: usize = TargetPhase::MovedSilent as usize + 1;

/// A set of phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PhaseSet(u32);

impl PhaseSet {
    /// The set of these phases.
    pub(crate) const fn of(mut phases: &[TargetPhase]) -> Self {
        let mut bits = 0;
        while let [phase, rest @ ..] = phases {
            bits |= 1 << *phase as u32;
            phases = rest;
        }
        Self(bits)
    }

    /// Whether it contains a phase.
    pub(crate) const fn has(self, phase: TargetPhase) -> bool {
        self.0 & (1 << phase as u32) != 0
    }

    /// Whether it contains the phase at this index of the enum.
    pub(crate) const fn has_place(self, place: u32) -> bool {
        self.0 & (1 << place) != 0
    }
}

/// Assigned by this rollout, whatever the outcome.
pub(crate) const STARTED: PhaseSet = PhaseSet::of(&[
    TargetPhase::InFlight,
    TargetPhase::HeldFlight,
    TargetPhase::Succeeded,
    TargetPhase::Failed,
    TargetPhase::FailedAsBefore,
    TargetPhase::Lost,
    TargetPhase::Returning,
    TargetPhase::HeldReturning,
]);

/// Held by an operator, whatever they were about.
pub(crate) const HELD: PhaseSet =
    PhaseSet::of(&[TargetPhase::Held, TargetPhase::HeldFlight, TargetPhase::HeldReturning]);

/// Failed in this rollout, or were given up in it.
pub(crate) const MAY_HAVE_FAILED: PhaseSet = PhaseSet::of(&[
    TargetPhase::Failed,
    TargetPhase::FailedAsBefore,
    TargetPhase::Departed,
    TargetPhase::Lost,
    TargetPhase::Returning,
    TargetPhase::HeldReturning,
]);

/// Proceed without any change around them.
pub(crate) const OPEN: PhaseSet = PhaseSet::of(&[
    TargetPhase::Adopting,
    TargetPhase::CarriedOver,
    TargetPhase::Passing,
    TargetPhase::Ready,
    TargetPhase::Unhealthy,
    TargetPhase::Newcomer,
    TargetPhase::Arrived,
    TargetPhase::Settling,
    TargetPhase::Returning,
    TargetPhase::InFlight,
]);

/// Can be assigned a version now.
pub(crate) const ASSIGNABLE: PhaseSet = PhaseSet::of(&[
    TargetPhase::Passing,
    TargetPhase::Ready,
    TargetPhase::Unhealthy,
    TargetPhase::Newcomer,
    TargetPhase::Arrived,
]);

/// Wait to be updated.
pub(crate) const QUEUED: PhaseSet = PhaseSet::of(&[TargetPhase::Ready, TargetPhase::Unhealthy]);

/// Assigned by the rollout, in flight.
pub(crate) const IN_FLIGHT_PHASES: PhaseSet = PhaseSet::of(&[TargetPhase::InFlight, TargetPhase::HeldFlight]);

/// Must be rolled back.
pub(crate) const MOVED: PhaseSet = PhaseSet::of(&[
    TargetPhase::Moved,
    TargetPhase::MovedUnhealthy,
    TargetPhase::MovedFlight,
    TargetPhase::MovedSilent,
]);
