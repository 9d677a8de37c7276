//! Lanes: where a target stands for its entity's rollout. Every target is in exactly one.

/// Where a target stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Where it should be; nothing is to be done for it.
    Rest,
    /// No target any more; what was kept of it goes.
    Gone,
    /// No target any more, but its failure counts until the rollout ends.
    Departed,
    /// Runs the rolling version untold, and is healthy; succeeds after the soak.
    Adopting,
    /// In flight to the rolling version for an older rollout; joins this one.
    Carried,
    /// In flight to a version that was replaced; its place passes to the new one.
    Passing,
    /// Can be told now, when there is room.
    Ready,
    /// Can be told now, when there is room; is broken already, so that telling it makes nothing worse.
    Sick,
    /// Belongs on last known good first, and can be told so now.
    Newcomer,
    /// In flight to last known good, before its turn.
    Settling,
    /// Cannot be told now: it has just become quiet.
    Quiet,
    /// Cannot be told now: it is not heard from.
    Away,
    /// Cannot be told now: an operator holds it.
    Held,
    /// Told by this rollout, no verdict yet.
    InFlight,
    /// Told by this rollout, no verdict yet, and an operator holds it.
    HeldFlight,
    /// Told by this rollout, succeeded.
    Succeeded,
    /// Ran the version untold, counted as succeeded.
    Adopted,
    /// Told by this rollout, failed.
    Failed,
    /// Told by this rollout, not heard from in time, and still silent.
    Lost,
    /// Has to go back to last known good.
    Moved,
    /// Has to go back, and is still in flight to what it was told before.
    MovedFlight,
    /// Has to go back, and is not heard from.
    MovedAway,
}

/// How many lanes there are.
pub(crate) const LANES: usize = Lane::MovedAway as usize + 1;

/// Several lanes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneSet(u32);

impl LaneSet {
    /// These lanes.
    pub(crate) const fn of(mut lanes: &[Lane]) -> Self {
        let mut bits = 0;
        while let [lane, rest @ ..] = lanes {
            bits |= 1 << *lane as u32;
            lanes = rest;
        }
        Self(bits)
    }

    /// Whether a lane is among them.
    pub(crate) const fn has(self, lane: Lane) -> bool {
        self.0 & (1 << lane as u32) != 0
    }

    /// Whether the lane at a place of the enum is among them.
    pub(crate) const fn has_place(self, place: u32) -> bool {
        self.0 & (1 << place) != 0
    }
}

/// Handed a turn by this rollout, whatever came of it.
pub(crate) const TURNED: LaneSet =
    LaneSet::of(&[Lane::InFlight, Lane::HeldFlight, Lane::Succeeded, Lane::Failed, Lane::Lost]);

/// Will move on without anything changing around them.
pub(crate) const OPEN: LaneSet = LaneSet::of(&[
    Lane::Adopting,
    Lane::Carried,
    Lane::Passing,
    Lane::Ready,
    Lane::Sick,
    Lane::Newcomer,
    Lane::Settling,
    Lane::InFlight,
]);

/// Can be told something now.
pub(crate) const TELLABLE: LaneSet = LaneSet::of(&[Lane::Passing, Lane::Ready, Lane::Sick, Lane::Newcomer]);

/// Wait for their turn.
pub(crate) const IN_LINE: LaneSet = LaneSet::of(&[Lane::Ready, Lane::Sick]);

/// Told by the rollout, without a verdict.
pub(crate) const FLYING: LaneSet = LaneSet::of(&[Lane::InFlight, Lane::HeldFlight]);

/// Have to go back.
pub(crate) const MOVED: LaneSet = LaneSet::of(&[Lane::Moved, Lane::MovedFlight, Lane::MovedAway]);
