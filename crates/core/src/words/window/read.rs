//! The textual form of a window. Owns the grammar: days, hours, time zone, and the targets it applies to.

use alloc::format;
use alloc::string::{String, ToString};
use core::str::FromStr;

use super::{Window, WindowError};
use crate::words::selector::Selector;
use crate::words::window::days::{DAY_MINUTES, WEEKDAYS};
use crate::words::zone::Zone;

/// Longest part of a text that an error quotes, in characters.
const SHOWN: usize = 120;

impl FromStr for Window {
    type Err = WindowError;

    /// Reads `DAYS HH:MM-HH:MM ZONE [for SELECTOR]`. Days are `daily`, `Mon..Fri`, `Sat,Sun`; `24:00` ends a day;
    /// an end at or before the start is on the next day.
    fn from_str(text: &str) -> Result<Self, WindowError> {
        let refuse = |reason: String| WindowError { text: text.chars().take(SHOWN).collect(), reason };
        let (when, only) = match text.split_once(" for ") {
            Some((when, only)) => (when, Some(only)),
            None => (text, None),
        };
        let only = only.map(Selector::parse).transpose().map_err(|error| refuse(error.to_string()))?;
        let mut words = when.split_whitespace();
        let (Some(days), Some(stretch), Some(zone_name), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(refuse("it needs days, times and a time zone".into()));
        };
        let days = read_days(days).map_err(refuse)?;
        let (opens, length) = read_stretch(stretch).map_err(refuse)?;
        let zone = Zone::read(zone_name).map_err(refuse)?;
        Ok(Self { days, opens, length, zone, only })
    }
}

fn read_days(text: &str) -> Result<[bool; 7], String> {
    if text.eq_ignore_ascii_case("daily") {
        return Ok([true; 7]);
    }
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (first, last) = (read_day(first)?, read_day(last)?);
        let count = (last + 7 - first) % 7;
        for day in (0..=count).map(|step| (first + step) % 7) {
            if let Some(day) = days.get_mut(day) {
                *day = true;
            }
        }
    }
    Ok(days)
}

fn read_day(text: &str) -> Result<usize, String> {
    let found = WEEKDAYS.iter().position(|(name, _)| name.eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("{text:?} is not a day; days are Mon, Tue, Wed, Thu, Fri, Sat, Sun"))
}

/// Opening time and length, in minutes.
fn read_stretch(text: &str) -> Result<(u16, u16), String> {
    let (from, to) =
        text.split_once('-').ok_or_else(|| format!("{text:?} is not a time range like 22:00-04:00"))?;
    let (from, to) = (read_minute(from)?, read_minute(to)?);
    if from == to {
        return Err(format!("{text} is never open; a whole day is 00:00-24:00"));
    }
    if from == DAY_MINUTES {
        return Err("a window cannot open at 24:00; write 00:00 on the next day".into());
    }
    let end = if to > from { to } else { to + DAY_MINUTES };
    Ok((from, end - from))
}

fn read_minute(text: &str) -> Result<u16, String> {
    let refuse = || format!("{text:?} is not a time of day like 04:00");
    let (hour, minute) = text.split_once(':').ok_or_else(refuse)?;
    if hour.len() != 2 || minute.len() != 2 {
        return Err(refuse());
    }
    let (hour, minute): (u16, u16) =
        (hour.parse().map_err(|_| refuse())?, minute.parse().map_err(|_| refuse())?);
    let time = hour * 60 + minute;
    if minute < 60 && time <= DAY_MINUTES { Ok(time) } else { Err(refuse()) }
}
