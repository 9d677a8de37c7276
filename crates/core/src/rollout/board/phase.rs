//! Lanes: where a target stands for its entity's rollout. Every target is in exactly one.

/// Where a target stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetPhase {
    /// Where it should be; nothing is to be done for it.
    Rest,
    /// No target any more; what was kept of it goes.
    Gone,
    /// No target any more, but its failure counts until the rollout ends.
    Departed,
    /// Runs the rolling version untold, and is healthy; succeeds after the soak.
    Adopting,
    /// In flight to the rolling version for an older rollout; joins this one.
    CarriedOver,
    /// In flight to a version that was replaced; its place passes to the new one.
    Passing,
    /// Can be told now, when there is room.
    Ready,
    /// Can be told now, when there is room; is broken already, so that telling it makes nothing worse.
    Unhealthy,
    /// Belongs on last known good first, and can be told so now.
    Newcomer,
    /// In flight to last known good, before its turn.
    Settling,
    /// Cannot be told now: it has just become quiet.
    Quiet,
    /// Cannot be told now: it is not heard from.
    Silent,
    /// Cannot be told now: an operator holds it.
    Held,
    /// Assigned by this rollout, in flight.
    InFlight,
    /// Assigned by this rollout, in flight, and held by an operator.
    HeldFlight,
    /// Assigned by this rollout, succeeded.
    Succeeded,
    /// Ran the version untold, counted as succeeded.
    Adopted,
    /// Assigned by this rollout, failed.
    Failed,
    /// Assigned by this rollout, not heard from before its deadline, and still silent.
    Lost,
    /// Has to go back to last known good.
    Moved,
    /// Has to go back, and is still in flight to what it was told before.
    MovedFlight,
    /// Has to go back, and is not heard from.
    MovedSilent,
}

/// How many lanes there are.
pub(crate) const LANES: usize = TargetPhase::MovedSilent as usize + 1;

/// Several lanes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PhaseSet(u32);

impl PhaseSet {
    /// These lanes.
    pub(crate) const fn of(mut phases: &[TargetPhase]) -> Self {
        let mut bits = 0;
        while let [phase, rest @ ..] = phases {
            bits |= 1 << *phase as u32;
            phases = rest;
        }
        Self(bits)
    }

    /// Whether a lane is among them.
    pub(crate) const fn has(self, phase: TargetPhase) -> bool {
        self.0 & (1 << phase as u32) != 0
    }

    /// Whether the lane at a place of the enum is among them.
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
    TargetPhase::Lost,
]);

/// Will move on without anything changing around them.
pub(crate) const OPEN: PhaseSet = PhaseSet::of(&[
    TargetPhase::Adopting,
    TargetPhase::CarriedOver,
    TargetPhase::Passing,
    TargetPhase::Ready,
    TargetPhase::Unhealthy,
    TargetPhase::Newcomer,
    TargetPhase::Settling,
    TargetPhase::InFlight,
]);

/// Can be told something now.
pub(crate) const TELLABLE: PhaseSet =
    PhaseSet::of(&[TargetPhase::Passing, TargetPhase::Ready, TargetPhase::Unhealthy, TargetPhase::Newcomer]);

/// Wait for their turn.
pub(crate) const QUEUED: PhaseSet = PhaseSet::of(&[TargetPhase::Ready, TargetPhase::Unhealthy]);

/// Assigned by the rollout, in flight.
pub(crate) const FLYING: PhaseSet = PhaseSet::of(&[TargetPhase::InFlight, TargetPhase::HeldFlight]);

/// Have to go back.
pub(crate) const MOVED: PhaseSet =
    PhaseSet::of(&[TargetPhase::Moved, TargetPhase::MovedFlight, TargetPhase::MovedSilent]);
