//! Durations and points in time as people read them: at most two units, and local time with its zone.

use bellwether_core::words::time::Span;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The time from `then` to `now`, in whole seconds, like `3m 12s`.
pub(crate) fn ago(now_ms: u64, then_ms: u64) -> String {
    length(now_ms.saturating_sub(then_ms) / 1_000 * 1_000)
}

/// A duration, like `250ms`, `45s` or `3m 12s`.
pub(crate) fn length(millis: u64) -> String {
    Span::from_millis(millis).brief().to_string()
}

/// The time of day in this machine's zone, with the zone.
pub(crate) fn clock(at_ms: u64) -> String {
    local(at_ms, "%H:%M:%S %Z")
}

/// Date and time in this machine's zone, with the zone.
pub(crate) fn date(at_ms: u64) -> String {
    local(at_ms, "%Y-%m-%d %H:%M:%S %Z")
}

/// Date and time in ISO 8601, UTC, for programs; `None` beyond the calendar.
pub(crate) fn iso(at_ms: u64) -> Option<String> {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
    Some(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

fn local(at_ms: u64, form: &str) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    at.map_or_else(|| "?".to_owned(), |at| at.to_zoned(TimeZone::system()).strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_in_whole_seconds_and_at_most_two_units() {
        let ages: Vec<String> = [0, 59, 60, 192, 700, 7_200, 200_000].map(|s| ago(s * 1_000 + 9, 0)).into();
        assert_eq!(ages, ["0s", "59s", "1m", "3m 12s", "11m 40s", "2h", "2d 7h"]);
    }

    #[test]
    fn times_name_their_zone() {
        assert_eq!(iso(1_700_000_000_123).as_deref(), Some("2023-11-14T22:13:20.123Z"));
        assert_eq!(date(1_700_000_000_123).split(' ').count(), 3);
    }
}
