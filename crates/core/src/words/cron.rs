//! Cron expressions: minutes of local time, as crontab(5) writes them. Owns which minutes an expression names, and when the next
//! one is.
//!
//! When clocks are set forward, what falls into the skipped time is due right after the change. When they are set back, a time that
//! comes twice counts once, unless the expression names every hour: then every hour that passes counts.

mod read;

use alloc::string::String;
use core::fmt;

use jiff::Span as Days;
use jiff::civil::Date;

use super::time::Timestamp;
use super::zone::Zone;

/// Days that are searched for the next time: 29 February on a given weekday comes at least once in forty years.
const SEARCHED_DAYS: i32 = 41 * 366;

/// Minutes of local time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    /// From Sunday, which is 0.
    weekdays: Set,
}

/// The values that a field names: each a bit. No field has a value above 59.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Set {
    bits: u64,
    /// Whether the field begins with `*`: days of the month and of the week restrict each other only if neither does.
    is_any: bool,
}

/// Why a text is not a cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a cron expression: {reason}; write \"MINUTE HOUR DAY MONTH WEEKDAY\", like \"30 3 * * Mon-Fri\", or @daily"
)]
pub struct CronError {
    /// The text, cut to a readable length.
    pub text: String,
    /// What is wrong with the text.
    pub reason: String,
}

impl Cron {
    /// The text from which it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first time after this one that it names, by the clocks of a zone; `None` if there is none within forty years.
    #[must_use]
    pub fn after(&self, zone: &Zone, at: Timestamp) -> Option<Timestamp> {
        let today = zone.date_at(at)?;
        // An hour that comes twice around midnight belongs to the day before.
        let before = today.checked_sub(Days::new().days(1)).ok();
        let before = before
            .filter(|date| zone.readings(date.at(23, 59, 0, 0)).is_some_and(|end| end.second.is_some()));
        let days = (0..SEARCHED_DAYS).filter_map(|days| today.checked_add(Days::new().days(days)).ok());
        let mut days = before.into_iter().chain(days).filter(|date| self.has_day(*date));
        days.find_map(|date| self.after_on(date, zone, at))
    }

    fn has_day(&self, date: Date) -> bool {
        let day = self.days.has(date.day());
        let weekday = self.weekdays.has(date.weekday().to_sunday_zero_offset());
        let any = self.days.is_any || self.weekdays.is_any;
        self.months.has(date.month()) && if any { day && weekday } else { day || weekday }
    }

    /// The first time of a day after this time.
    fn after_on(&self, date: Date, zone: &Zone, at: Timestamp) -> Option<Timestamp> {
        let every_hour = self.hours == Set { bits: (1 << 24) - 1, is_any: true };
        let mut found: Option<Timestamp> = None;
        for hour in self.hours.values() {
            let end = zone.readings(date.at(hour, 59, 0, 0));
            if end.is_some_and(|end| end.second.unwrap_or(end.first) <= at) {
                continue;
            }
            for minute in self.minutes.values() {
                let Some(readings) = zone.readings(date.at(hour, minute, 0, 0)) else { continue };
                let second = readings.second.filter(|_| every_hour);
                let next =
                    [Some(readings.first), second].into_iter().flatten().filter(|time| *time > at).min();
                found = [found, next].into_iter().flatten().min();
                // Times of a day are in order, except where an hour comes twice: its second time may be the next.
                if found.is_some() && readings.second.is_none() {
                    return found;
                }
            }
        }
        found
    }
}

impl Set {
    const fn has(self, value: i8) -> bool {
        value >= 0 && self.bits >> value & 1 == 1
    }

    fn values(self) -> impl Iterator<Item = i8> {
        (0..60).filter(move |value| self.has(*value))
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
