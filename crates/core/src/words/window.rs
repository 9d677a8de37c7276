//! Maintenance windows: weekly, by local time in a named time zone. Owns when a window opens and closes.
//!
//! A window opens at a local time and lasts for its nominal length: a clock change during it makes it neither
//! longer nor shorter. An opening time that a clock change skips is moved to right after the change; one that
//! occurs twice counts the first time.

mod days;
mod read;

use crate::words::window::days::DAY_MINUTES;
use alloc::string::String;
use core::fmt;

use jiff::Span as Days;
use jiff::civil::{Date, Time};

use super::label::Labels;
use super::node_data::NodeData;
use super::selector::Selector;
use super::time::{Span, Timestamp};
use super::zone::Zone;

/// Days around the present in which an opening is searched for: a week, and a day at each end for time zones.
const LOOK_DAYS: i32 = 9;

/// Days of openings over which two windows are compared: a year, so that both clock changes are among them.
const COMPARED_DAYS: i32 = 370;

/// A weekly period in which changes are allowed: `Mon..Fri 22:00-04:00 Europe/Berlin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// By weekday, Monday first: whether the window opens on that day.
    days: [bool; 7],
    /// Opening time, in minutes after local midnight, 0 to 1439.
    opens: u16,
    /// Length, in minutes, 1 to 1440.
    length: u16,
    zone: Zone,
    /// Selector of the targets it applies to; `None` for every target.
    only: Option<Selector>,
}

/// State of a window at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowState {
    /// Open.
    Open {
        /// Time it closes.
        until: Timestamp,
    },
    /// Closed.
    Closed {
        /// Time it opens next.
        until: Timestamp,
    },
}

/// Why a text is not a valid window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid window: {reason}; write it like \"Mon..Fri 22:00-04:00 Europe/Berlin\"")]
pub struct WindowError {
    /// The text, cut to a readable length.
    pub text: String,
    /// What is wrong with the text.
    pub reason: String,
}

impl Window {
    /// Whether it applies to this target. A window without `for …` applies to every target.
    #[must_use]
    pub fn is_for(&self, name: &str, labels: &Labels, data: &NodeData) -> bool {
        self.only.as_ref().is_none_or(|only| only.picks(name, labels, data))
    }

    /// Whether it applies to some targets only.
    #[must_use]
    pub const fn is_for_some(&self) -> bool {
        self.only.is_some()
    }

    /// Its state at `now`, and the time at which that ends.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> WindowState {
        let never = WindowState::Closed { until: Timestamp::from_millis(u64::MAX) };
        let Some(today) = self.zone.date_at(now) else { return never };
        for day in -LOOK_DAYS..=LOOK_DAYS {
            let Some((opens, closes)) = self.opening_on(today, day) else { continue };
            if now < opens {
                return WindowState::Closed { until: opens };
            }
            if now < closes {
                return WindowState::Open { until: closes };
            }
        }
        never
    }

    /// Whether both are open at the same time at least once within a year of `from`.
    #[must_use]
    pub fn ever_meets(&self, other: &Self, from: Timestamp) -> bool {
        let Some(first) = self.zone.date_at(from) else { return false };
        (0..COMPARED_DAYS).filter_map(|day| self.opening_on(first, day)).any(|(opens, closes)| {
            match other.at(opens) {
                WindowState::Open { .. } => true,
                WindowState::Closed { until } => until < closes,
            }
        })
    }

    /// Opening and closing time, if it opens `days` days after `first`.
    fn opening_on(&self, first: Date, days: i32) -> Option<(Timestamp, Timestamp)> {
        let date = first.checked_add(Days::new().days(days)).ok()?;
        let weekday = usize::try_from(date.weekday().to_monday_zero_offset()).ok()?;
        if !*self.days.get(weekday)? {
            return None;
        }
        let (hour, minute) = (i8::try_from(self.opens / 60).ok()?, i8::try_from(self.opens % 60).ok()?);
        let local = date.to_datetime(Time::new(hour, minute, 0, 0).ok()?);
        let opens = self.zone.readings(local)?.first;
        Some((opens, opens.plus(Span::from_secs(u64::from(self.length) * 60))))
    }
}

impl fmt::Display for Window {
    /// Writes the form that [`FromStr`](core::str::FromStr) reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::words::window::days::write_days(&self.days, f)?;
        let closes = match self.opens + self.length {
            end if end > DAY_MINUTES => end - DAY_MINUTES,
            end => end,
        };
        let (from, to) = (self.opens, closes);
        write!(f, " {:02}:{:02}-{:02}:{:02} {}", from / 60, from % 60, to / 60, to % 60, self.zone)?;
        match &self.only {
            Some(only) => write!(f, " for {}", only.as_str()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
