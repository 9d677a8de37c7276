//! Ages and times of day, for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How long ago, in the largest unit or two: `8s`, `3m12s`, `5h`, `2d`.
pub(crate) fn ago(now_ms: u64, then_ms: u64) -> String {
    let secs = now_ms.saturating_sub(then_ms) / 1_000;
    match secs {
        0..60 => format!("{secs}s"),
        60..600 => format!("{}m{}s", secs / 60, secs % 60),
        600..3_600 => format!("{}m", secs / 60),
        3_600..172_800 => format!("{}h", secs / 3_600),
        _ => format!("{}d", secs / 86_400),
    }
}

/// A length of time, in the largest unit and the next: `250ms`, `45s`, `3m12s`, `1h30m`, `2d4h`.
pub(crate) fn length(millis: u64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let Some(largest) = units.iter().position(|(_, unit)| millis >= *unit) else { return "0s".to_owned() };
    let mut rest = millis;
    let mut text = String::new();
    for (name, unit) in units.iter().skip(largest).take(2) {
        // Beside whole seconds, parts of one say nothing.
        if rest >= *unit && (*name != "ms" || text.is_empty()) {
            text.push_str(&format!("{}{name}", rest / unit));
        }
        rest %= unit;
    }
    text
}

/// The time of day, in this machine's zone.
pub(crate) fn clock(at_ms: u64) -> String {
    show(at_ms, "%H:%M:%S")
}

/// Date and time, in this machine's zone.
pub(crate) fn date(at_ms: u64) -> String {
    show(at_ms, "%Y-%m-%d %H:%M:%S")
}

fn show(at_ms: u64, form: &str) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    at.map_or_else(|| "?".to_owned(), |at| at.to_zoned(TimeZone::system()).strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_two_units() {
        let lengths: Vec<String> =
            [0, 250, 1_250, 60_000, 192_000, 5_400_000, 3_601_000, 187_200_000].map(length).into();
        assert_eq!(lengths, ["0s", "250ms", "1s", "1m", "3m12s", "1h30m", "1h", "2d4h"]);
    }

    #[test]
    fn ages_are_short() {
        let ages: Vec<String> = [0, 59, 60, 192, 700, 7_200, 200_000].map(|s| ago(s * 1_000, 0)).into();
        assert_eq!(ages, ["0s", "59s", "1m0s", "3m12s", "11m", "2h", "2d"]);
    }
}
