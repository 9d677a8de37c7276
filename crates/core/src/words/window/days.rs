//! Weekdays of a window, and their text.

use core::fmt;

use jiff::civil::Weekday;

/// Names of the weekdays, Monday first.
pub(super) const WEEKDAYS: [(&str, Weekday); 7] = [
    ("Mon", Weekday::Monday),
    ("Tue", Weekday::Tuesday),
    ("Wed", Weekday::Wednesday),
    ("Thu", Weekday::Thursday),
    ("Fri", Weekday::Friday),
    ("Sat", Weekday::Saturday),
    ("Sun", Weekday::Sunday),
];

/// Minutes per day.
pub(super) const DAY_MINUTES: u16 = 1_440;

/// Writes days as single days and ranges.
pub(super) fn write_days(days: &[bool; 7], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if days.iter().all(|day| *day) {
        return f.write_str("daily");
    }
    let mut rest = days.iter().zip(WEEKDAYS).peekable();
    let mut comma = "";
    while let Some((open, (first, _))) = rest.next() {
        if !open {
            continue;
        }
        let mut last = first;
        while let Some((_, (next, _))) = rest.next_if(|(open, _)| **open) {
            last = next;
        }
        if first == last {
            write!(f, "{comma}{first}")?
        } else {
            write!(f, "{comma}{first}..{last}")?
        }
        comma = ",";
    }
    Ok(())
}
