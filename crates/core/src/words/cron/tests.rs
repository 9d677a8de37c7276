//! Cron expressions around the nights in which clocks are changed, against a search minute by minute, and texts that are none.

use alloc::string::ToString;
use alloc::vec::Vec;

use jiff::Timestamp as Instant;
use proptest::prelude::*;

use super::*;
use crate::words::time::Span;

fn cron(text: &str) -> Cron {
    text.parse().unwrap_or_else(|error: CronError| panic!("{error}"))
}

fn zone(name: &str) -> Zone {
    Zone::read(name).unwrap()
}

fn utc(text: &str) -> Timestamp {
    let instant: Instant = text.parse().unwrap();
    Timestamp::from_millis(instant.as_millisecond().try_into().unwrap())
}

/// The times that follow, each from the one before.
fn times(text: &str, zone_name: &str, after: &str, expected: &[&str]) {
    let (cron, zone) = (cron(text), zone(zone_name));
    let mut at = utc(after);
    let found: Vec<Timestamp> = expected
        .iter()
        .map_while(|_| {
            at = cron.after(&zone, at)?;
            Some(at)
        })
        .collect();
    let expected: Vec<Timestamp> = expected.iter().map(|text| utc(text)).collect();
    assert_eq!(found, expected, "{text} {zone_name}");
}

#[test]
fn times_follow_the_clocks_of_the_zone() {
    times(
        "30 3 * * Mon-Fri",
        "Europe/Berlin",
        "2026-11-20T12:00:00Z", // a Friday
        &["2026-11-23T02:30:00Z", "2026-11-24T02:30:00Z"],
    );
    times("30 3 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", &["2026-07-01T01:30:00Z"]);
    times(
        "*/20 23 31 dec *",
        "UTC",
        "2026-12-31T23:00:00Z",
        &["2026-12-31T23:20:00Z", "2026-12-31T23:40:00Z", "2027-12-31T23:00:00Z"],
    );
    times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
    times("5/25 4 * * 7", "UTC", "2026-11-22T04:05:00Z", &["2026-11-22T04:30:00Z", "2026-11-22T04:55:00Z"]);
}

#[test]
fn days_of_the_month_and_of_the_week_are_alternatives_if_both_are_named() {
    times(
        "0 0 13 * fri",
        "UTC",
        "2026-11-07T00:00:00Z",
        &["2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z"],
    );
    times("0 0 13 * *", "UTC", "2026-11-07T00:00:00Z", &["2026-11-13T00:00:00Z", "2026-12-13T00:00:00Z"]);
    times("0 0 */2 * fri", "UTC", "2026-11-07T00:00:00Z", &["2026-11-13T00:00:00Z", "2026-11-27T00:00:00Z"]);
}

#[test]
fn what_a_clock_change_skips_is_due_right_after_it_once() {
    times(
        "30 2 * * *",
        "Europe/Berlin", // clocks jump from 02:00 to 03:00, at 01:00 UTC, on 29 March 2026
        "2026-03-28T12:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
    );
    times(
        "*/30 * * * *",
        "Europe/Berlin",
        "2026-03-29T00:00:00Z",
        &["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
    );
}

#[test]
fn what_comes_twice_counts_once_unless_every_hour_is_named() {
    times(
        "30 2 * * *",
        "Europe/Berlin", // 02:00 to 03:00 comes twice on 25 October 2026, from 00:00 and 01:00 UTC
        "2026-10-24T12:00:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
    );
    times(
        "*/30 * * * *",
        "Europe/Berlin",
        "2026-10-25T00:00:00Z",
        &["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"],
    );
}

#[test]
fn texts_that_are_none_say_why() {
    for (text, said) in [
        ("", "it has no minute"),
        ("0 3 * *", "it has no day of the week"),
        ("0 0 3 * * *", "\"*\" is one field too many"),
        ("60 * * * *", "minute \"60\" is not valid: write 0 to 59"),
        ("* 24 * * *", "hour \"24\" is not valid: write 0 to 23"),
        ("* * 0 * *", "day of the month \"0\" is not valid: write 1 to 31"),
        ("* * * janu *", "month \"janu\" is not valid: write 1 to 12, or jan to dec"),
        ("* * * * 8", "day of the week \"8\" is not valid: write 0 to 7, or sun to sat"),
        ("5-1 * * * *", "\"5-1\" ends before it starts"),
        ("*/0 * * * *", "minute step \"0\" is not valid: write 1 to 59"),
        ("1,,2 * * * *", "minute \"\" is not valid"),
        ("+5 * * * *", "minute \"+5\" is not valid"),
        ("*/+5 * * * *", "minute step \"+5\" is not valid"),
        ("0 0 30 2 *", "no such day ever comes"),
        ("0 0 31 4,6,9,11 *", "no such day ever comes"),
        ("@reboot", "it is none of @hourly, @daily"),
        ("@every 5m", "it is none of @hourly"),
    ] {
        let error = text.parse::<Cron>().unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
    let long = "0,".repeat(200) + "0 * * * *";
    assert!(long.parse::<Cron>().unwrap_err().to_string().contains("bytes"));
    assert_eq!(cron(" @weekly ").weekdays, cron("0 0 * * sun").weekdays);
    assert_eq!(cron("0 0 * * 7").weekdays, cron("0 0 * * 0").weekdays);
}

/// Whether the clocks of a zone without clock changes show a minute that is named.
fn is_named(cron: &Cron, zone: &Zone, at: Timestamp) -> bool {
    let date = zone.date_at(at).unwrap();
    let minutes = at.as_millis() / 60_000;
    let (minute, hour) = (minutes % 60, minutes / 60 % 24);
    let has = |set: Set, value: u64| set.has(value.try_into().unwrap());
    cron.has_day(date) && has(cron.minutes, minute) && has(cron.hours, hour)
}

proptest! {
    /// The next time is the first one of those that a search by the minute finds.
    #[test]
    fn nothing_is_left_out(
        minute in "(\\*|\\*/7|3|50-59|1,31)",
        hour in "(\\*|\\*/5|0|22-23)",
        day in "(\\*|\\*/2|1|28-31)",
        weekday in "(\\*|0|mon-wed|7)",
        start in 1_700_000_000_u64..1_900_000_000,
    ) {
        let (cron, zone) = (cron(&[&minute, &hour, &day, "*", &weekday].join(" ")), zone("UTC"));
        let start = Timestamp::from_millis(start * 1_000);
        let next = cron.after(&zone, start).unwrap();
        prop_assert!(next > start && next.as_millis() % 60_000 == 0);
        prop_assert!(is_named(&cron, &zone, next));
        let minute = Span::from_secs(60);
        let mut at = Timestamp::from_millis(start.as_millis() / 60_000 * 60_000).plus(minute);
        // At most a month away, so that a search ends.
        for _ in 0..2_000 {
            if at >= next {
                break;
            }
            prop_assert!(!is_named(&cron, &zone, at), "{at:?}");
            at = at.plus(minute);
        }
    }
}
