//! Tallies: the number of targets in each phase within a range of the board, and the next time at which one
//! of them changes.

use super::phase::{PHASES, PhaseSet, TargetPhase};
use crate::words::time::Timestamp;

/// No time: nothing changes without an event.
pub(crate) const NEVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// Phase of one target, and the times at which it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TargetPosition {
    /// Its phase.
    pub(crate) phase: TargetPhase,
    /// Whether it is a target at present; former ones have a position too.
    pub(crate) member: bool,
    /// Whether it has an assignment without an outcome.
    pub(crate) in_flight: bool,
    /// Whether it is in flight, not functional or silent.
    pub(crate) unavailable: bool,
    /// Whether it is functional: it runs a version, reports, is not failing, drained or being updated.
    pub(crate) functional: bool,
    /// Time at which its present observation next has an effect; [`NEVER`] if it has none.
    pub(crate) due: Timestamp,
    /// Start of its deadline, on the entity's pause clock; [`NEVER`] if it has none running.
    pub(crate) clock_from: Timestamp,
}

/// Counts over a range of targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PhaseTally {
    /// Number of targets.
    pub(crate) members: u32,
    /// Number of targets with an assignment without an outcome.
    pub(crate) in_flight: u32,
    /// Number of targets that are in flight, not functional or silent.
    pub(crate) unavailable: u32,
    /// Number of functional targets.
    pub(crate) functional: u32,
    /// The earliest due time.
    pub(crate) due: Timestamp,
    /// The earliest start of a deadline.
    pub(crate) clock_from: Timestamp,
    phases: [u32; PHASES],
}

impl PhaseTally {
    /// The tally of no targets.
    pub(crate) const EMPTY: Self = Self {
        members: 0,
        in_flight: 0,
        unavailable: 0,
        functional: 0,
        due: NEVER,
        clock_from: NEVER,
        phases: [0; PHASES],
    };

    /// Adds one target.
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

    /// Replaces the position of one target, or adds it if it had none. Returns whether the earliest times
    /// must be searched for again, because that target may have been the earliest.
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

    /// Adds another range.
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

    /// Number of targets in these phases.
    pub(crate) fn count(&self, phases: PhaseSet) -> u64 {
        let among = |(place, _): &(u32, &u32)| phases.has_place(*place);
        (0..).zip(&self.phases).filter(among).map(|(_, count)| u64::from(*count)).sum()
    }

    /// Number of targets in this phase.
    pub(crate) fn of(&self, phase: TargetPhase) -> u64 {
        self.phases.get(phase as usize).copied().map_or(0, u64::from)
    }
}
