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
    fn ages_are_short() {
        let ages: Vec<String> = [0, 59, 60, 192, 700, 7_200, 200_000].map(|s| ago(s * 1_000, 0)).into();
        assert_eq!(ages, ["0s", "59s", "1m0s", "3m12s", "11m", "2h", "2d"]);
    }
}
