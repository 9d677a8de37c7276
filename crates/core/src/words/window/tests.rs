//! Windows around the nights in which clocks are changed, and texts that are none.

use alloc::string::ToString;

use jiff::Timestamp as Instant;

use super::*;

fn window(text: &str) -> Window {
    text.parse().unwrap_or_else(|error: WindowError| panic!("{error}"))
}

fn utc(text: &str) -> Timestamp {
    let instant: Instant = text.parse().unwrap();
    Timestamp::from_millis(instant.as_millisecond().try_into().unwrap())
}

fn closed_until(window: &Window, now: &str, opens: &str) {
    assert_eq!(window.at(utc(now)), WindowState::Closed { until: utc(opens) }, "{window} at {now}");
}

fn open_until(window: &Window, now: &str, closes: &str) {
    assert_eq!(window.at(utc(now)), WindowState::Open { until: utc(closes) }, "{window} at {now}");
}

#[test]
fn a_window_opens_and_closes_by_the_wall_clock_of_its_zone() {
    let nights = window("Mon..Fri 22:00-04:00 Europe/Berlin");
    closed_until(&nights, "2026-11-18T12:00:00Z", "2026-11-18T21:00:00Z"); // winter: one hour ahead of UTC
    open_until(&nights, "2026-11-18T21:00:00Z", "2026-11-19T03:00:00Z");
    closed_until(&nights, "2026-11-19T03:00:00Z", "2026-11-19T21:00:00Z");
    open_until(&nights, "2026-11-21T02:59:59Z", "2026-11-21T03:00:00Z"); // Friday's night ends on Saturday
    closed_until(&nights, "2026-11-21T03:00:00Z", "2026-11-23T21:00:00Z"); // and the next is Monday's
    closed_until(&nights, "2026-07-15T12:00:00Z", "2026-07-15T20:00:00Z"); // summer: two hours ahead
}

#[test]
fn a_window_keeps_its_length_when_clocks_are_set_forward() {
    let early = window("Sun 01:00-04:00 Europe/Berlin"); // clocks jump from 02:00 to 03:00 on 29 March 2026
    closed_until(&early, "2026-03-28T23:00:00Z", "2026-03-29T00:00:00Z");
    open_until(&early, "2026-03-29T00:00:00Z", "2026-03-29T03:00:00Z");
}

#[test]
fn a_window_whose_opening_is_jumped_over_opens_with_the_jump() {
    let lost = window("daily 02:30-03:30 Europe/Berlin");
    closed_until(&lost, "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z");
    open_until(&lost, "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z");
    open_until(&lost, "2026-03-30T00:30:00Z", "2026-03-30T01:30:00Z");
}

#[test]
fn a_window_whose_opening_comes_twice_opens_once() {
    let twice = window("Sun 02:00-03:00 Europe/Berlin"); // 25 October 2026: 02:00 to 03:00 comes twice
    closed_until(&twice, "2026-10-24T23:59:59Z", "2026-10-25T00:00:00Z");
    open_until(&twice, "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z");
    closed_until(&twice, "2026-10-25T01:00:00Z", "2026-11-01T01:00:00Z");
}

#[test]
fn every_window_has_the_same_openings_and_hours_in_every_week_of_a_year() {
    for text in [
        "Sun 02:30-03:30 Europe/Berlin",
        "Sun 02:00-02:30 America/New_York",
        "Sun 01:45-02:15 Australia/Lord_Howe",
        "Sat 23:30-00:30 America/Sao_Paulo",
        "daily 00:00-24:00 Asia/Kolkata",
    ] {
        let window = window(text);
        let (mut now, mut openings) = (utc("2026-01-05T00:00:00Z"), 0);
        let end = now.plus(Span::from_secs(52 * 7 * 86_400));
        let expected = if text.starts_with("daily") { 52 * 7 } else { 52 };
        while now < end {
            match window.at(now) {
                WindowState::Closed { until } => {
                    now = until;
                    if let WindowState::Open { until: closes } = window.at(now) {
                        assert_eq!(
                            closes.since(now),
                            Span::from_secs(u64::from(window.length) * 60),
                            "{text}"
                        );
                    }
                }
                WindowState::Open { until } => {
                    (now, openings) = (until, openings + 1);
                }
            }
        }
        assert!((expected - 1..=expected + 1).contains(&openings), "{text}: {openings}");
    }
}

#[test]
fn windows_read_and_write_the_same_text() {
    for text in [
        "Mon..Fri 22:00-04:00 Europe/Berlin",
        "Mon,Wed..Fri,Sun 00:00-24:00 UTC",
        "daily 02:00-03:00 America/New_York for window=night and zone in (a, b)",
    ] {
        assert_eq!(window(text).to_string(), text);
    }
    assert_eq!(
        window("fri..mon 1:00-02:00 utc".replace("1:", "01:").as_str()).to_string(),
        "Mon,Fri..Sun 01:00-02:00 UTC"
    );
}

#[test]
fn what_is_no_window_is_refused_with_its_place() {
    for (text, reason) in [
        ("", "it needs days, times and a time zone"),
        ("Mon 22:00-04:00", "it needs days, times and a time zone"),
        ("Mo 22:00-04:00 UTC", "\"Mo\" is not a day"),
        ("Mon 22:00-22:00 UTC", "22:00-22:00 is never open"),
        ("Mon 24:00-02:00 UTC", "a window cannot open at 24:00"),
        ("Mon 22:60-23:00 UTC", "\"22:60\" is not a time of day"),
        ("Mon 2200-2300 UTC", "\"2200\" is not a time of day"),
        ("Mon 22:00 UTC", "is not a time range"),
        ("Mon 22:00-23:00 Europe/Berlim", "did you mean \"Europe/Berlin\"?"),
        ("Mon 22:00-23:00 Nowhere", "use a name like Europe/Berlin"),
        ("Mon 22:00-23:00 UTC for zone=", "invalid filter"),
    ] {
        let error = text.parse::<Window>().unwrap_err();
        assert!(error.to_string().contains(reason), "{text:?}: {error}");
    }
}

#[test]
fn windows_that_are_never_open_together_are_known() {
    let from = utc("2026-01-01T00:00:00Z");
    let (nights, days) = (window("daily 22:00-04:00 UTC"), window("daily 08:00-16:00 UTC"));
    assert!(!nights.ever_meets(&days, from) && !days.ever_meets(&nights, from));
    let tokyo = window("Mon 08:00-16:00 Asia/Tokyo"); // 23:00 to 07:00 UTC
    assert!(nights.ever_meets(&tokyo, from) && tokyo.ever_meets(&nights, from));
}
