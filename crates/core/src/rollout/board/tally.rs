//! Tallies: how many targets of a stretch of the board stand where, and when time alone will change one of them.

use super::phase::{LANES, PhaseSet, TargetPhase};
use crate::words::time::Timestamp;

/// No time: nothing will happen by itself.
pub(crate) const NEVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// Where one target stands, and what time will do to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TargetPosition {
    /// Its lane.
    pub(crate) phase: TargetPhase,
    /// Whether it is a target now; what is kept of former ones has a place too.
    pub(crate) member: bool,
    /// Whether it has an assignment without a verdict.
    pub(crate) in_flight: bool,
    /// Whether it is in flight, broken or not heard from.
    pub(crate) unavailable: bool,
    /// Whether it serves: it runs something, is heard from and is not failing.
    pub(crate) functional: bool,
    /// When its sighting, unchanged, brings something; [`NEVER`] if nothing.
    pub(crate) due: Timestamp,
    /// Since when its deadline counts, on the entity's pause clock; [`NEVER`] if none counts.
    pub(crate) clock_from: Timestamp,
}

/// What holds of a stretch of targets together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PhaseTally {
    /// Targets.
    pub(crate) members: u32,
    /// Those with an assignment without a verdict.
    pub(crate) in_flight: u32,
    /// Those that are in flight, broken or not heard from.
    pub(crate) unavailable: u32,
    /// Those that serve.
    pub(crate) functional: u32,
    /// The earliest of their due times.
    pub(crate) due: Timestamp,
    /// The earliest of their deadline clocks.
    pub(crate) clock_from: Timestamp,
    phases: [u32; LANES],
}

impl PhaseTally {
    /// Of no targets.
    pub(crate) const EMPTY: Self = Self {
        members: 0,
        in_flight: 0,
        unavailable: 0,
        functional: 0,
        due: NEVER,
        clock_from: NEVER,
        phases: [0; LANES],
    };

    /// Counts one more target.
    pub(crate) fn add(&mut self, place: &TargetPosition) {
        self.members += u32::from(place.member);
        self.in_flight += u32::from(place.in_flight);
        self.unavailable += u32::from(place.unavailable);
        self.functional += u32::from(place.functional);
        self.due = self.due.min(place.due);
        self.clock_from = self.clock_from.min(place.clock_from);
        if let Some(count) = self.phases.get_mut(place.phase as usize) {
            *count += 1;
        }
    }

    /// Counts one target anew that had another place, or none, before. Says whether the earliest times have to be
    /// looked for again, because that target may have been the one with the earliest.
    pub(crate) fn exchange(&mut self, old: Option<&TargetPosition>, new: &TargetPosition) -> bool {
        let mut stale = false;
        if let Some(old) = old {
            stale = old.due == self.due && new.due > old.due
                || old.clock_from == self.clock_from && new.clock_from > old.clock_from;
            self.members -= u32::from(old.member);
            self.in_flight -= u32::from(old.in_flight);
            self.unavailable -= u32::from(old.unavailable);
            self.functional -= u32::from(old.functional);
            if let Some(count) = self.phases.get_mut(old.phase as usize) {
                *count -= 1;
            }
        }
        self.add(new);
        stale
    }

    /// Counts another stretch too.
    pub(crate) fn join(&mut self, other: &Self) {
        self.members += other.members;
        self.in_flight += other.in_flight;
        self.unavailable += other.unavailable;
        self.functional += other.functional;
        self.due = self.due.min(other.due);
        self.clock_from = self.clock_from.min(other.clock_from);
        for (count, more) in self.phases.iter_mut().zip(&other.phases) {
            *count += more;
        }
    }

    /// How many stand in these lanes.
    pub(crate) fn count(&self, phases: PhaseSet) -> u64 {
        let among = |(place, _): &(u32, &u32)| phases.has_place(*place);
        (0..).zip(&self.phases).filter(among).map(|(_, count)| u64::from(*count)).sum()
    }

    /// How many stand in this lane.
    pub(crate) fn of(&self, phase: TargetPhase) -> u64 {
        self.phases.get(phase as usize).copied().map_or(0, u64::from)
    }
}
