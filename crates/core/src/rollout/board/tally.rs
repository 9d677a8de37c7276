//! Tallies: how many targets of a stretch of the board stand where, and when time alone will change one of them.

use super::lane::{LANES, Lane, LaneSet};
use crate::words::time::Timestamp;

/// No time: nothing will happen by itself.
pub(crate) const NEVER: Timestamp = Timestamp::from_millis(u64::MAX);

/// Where one target stands, and what time will do to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its lane.
    pub(crate) lane: Lane,
    /// Whether it is a target now; what is kept of former ones has a place too.
    pub(crate) member: bool,
    /// Whether it has an assignment without a verdict.
    pub(crate) flying: bool,
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
pub(crate) struct Tally {
    /// Targets.
    pub(crate) members: u32,
    /// Those with an assignment without a verdict.
    pub(crate) flying: u32,
    /// Those that are in flight, broken or not heard from.
    pub(crate) unavailable: u32,
    /// Those that serve.
    pub(crate) functional: u32,
    /// The earliest of their due times.
    pub(crate) due: Timestamp,
    /// The earliest of their deadline clocks.
    pub(crate) clock_from: Timestamp,
    lanes: [u32; LANES],
}

impl Tally {
    /// Of no targets.
    pub(crate) const EMPTY: Self = Self {
        members: 0,
        flying: 0,
        unavailable: 0,
        functional: 0,
        due: NEVER,
        clock_from: NEVER,
        lanes: [0; LANES],
    };

    /// Counts one more target.
    pub(crate) fn add(&mut self, place: &Place) {
        self.members += u32::from(place.member);
        self.flying += u32::from(place.flying);
        self.unavailable += u32::from(place.unavailable);
        self.functional += u32::from(place.functional);
        self.due = self.due.min(place.due);
        self.clock_from = self.clock_from.min(place.clock_from);
        if let Some(count) = self.lanes.get_mut(place.lane as usize) {
            *count += 1;
        }
    }

    /// Counts one target anew that had another place, or none, before. Says whether the earliest times have to be
    /// looked for again, because that target may have been the one with the earliest.
    pub(crate) fn exchange(&mut self, old: Option<&Place>, new: &Place) -> bool {
        let mut stale = false;
        if let Some(old) = old {
            stale = old.due == self.due && new.due > old.due
                || old.clock_from == self.clock_from && new.clock_from > old.clock_from;
            self.members -= u32::from(old.member);
            self.flying -= u32::from(old.flying);
            self.unavailable -= u32::from(old.unavailable);
            self.functional -= u32::from(old.functional);
            if let Some(count) = self.lanes.get_mut(old.lane as usize) {
                *count -= 1;
            }
        }
        self.add(new);
        stale
    }

    /// Counts another stretch too.
    pub(crate) fn join(&mut self, other: &Self) {
        self.members += other.members;
        self.flying += other.flying;
        self.unavailable += other.unavailable;
        self.functional += other.functional;
        self.due = self.due.min(other.due);
        self.clock_from = self.clock_from.min(other.clock_from);
        for (count, more) in self.lanes.iter_mut().zip(&other.lanes) {
            *count += more;
        }
    }

    /// How many stand in these lanes.
    pub(crate) fn count(&self, lanes: LaneSet) -> u64 {
        let among = |(place, _): &(u32, &u32)| lanes.has_place(*place);
        (0..).zip(&self.lanes).filter(among).map(|(_, count)| u64::from(*count)).sum()
    }

    /// How many stand in this lane.
    pub(crate) fn of(&self, lane: Lane) -> u64 {
        self.lanes.get(lane as usize).copied().map_or(0, u64::from)
    }
}
