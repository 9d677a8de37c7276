//! The textual form of a cron expression: five fields, or one of the names that crontab(5) has for common ones.

use alloc::format;
use alloc::string::{String, ToString};
use core::str::FromStr;

use super::{Cron, CronError, Set};

/// Longest part of a text that an error quotes, in characters.
const SHOWN: usize = 120;

/// Longest expression, in bytes.
const MAX_BYTES: usize = 256;

const MACROS: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// Days of each month, January first; February in a leap year.
const MONTH_DAYS: [i8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A field: what it is called, its smallest and largest value, and names of its values from the smallest one.
struct Field {
    what: &'static str,
    from: u8,
    to: u8,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { what: "minute", from: 0, to: 59, names: &[] },
    Field { what: "hour", from: 0, to: 23, names: &[] },
    Field { what: "day of the month", from: 1, to: 31, names: &[] },
    Field { what: "month", from: 1, to: 12, names: &MONTHS },
    // Sunday is 0 and 7.
    Field { what: "day of the week", from: 0, to: 7, names: &WEEKDAYS },
];

impl FromStr for Cron {
    type Err = CronError;

    /// Reads `MINUTE HOUR DAY MONTH WEEKDAY`, or a name like `@daily`. A field is `*`, a value, a range `1-5`, a list of those with
    /// commas, each range with a step like `*/15`. Months and weekdays have names of three letters; Sunday is 0 or 7.
    fn from_str(text: &str) -> Result<Self, CronError> {
        let refuse = |reason: String| CronError { text: text.chars().take(SHOWN).collect(), reason };
        let text = text.trim();
        if text.len() > MAX_BYTES {
            return Err(refuse(format!("{} bytes; at most {MAX_BYTES} are allowed", text.len())));
        }
        let fields = match text.starts_with('@') {
            true => expanded(text).map_err(refuse)?,
            false => text,
        };
        let mut words = fields.split_whitespace();
        let mut sets = [Set { bits: 0, is_any: false }; 5];
        for (set, field) in sets.iter_mut().zip(&FIELDS) {
            let word = words.next().ok_or_else(|| refuse(format!("it has no {}", field.what)))?;
            *set = field.read(word).map_err(refuse)?;
        }
        if let Some(more) = words.next() {
            return Err(refuse(format!("{more:?} is one field too many; seconds and years are not known")));
        }
        let [minutes, hours, days, months, weekdays] = sets;
        let weekdays = Set { bits: (weekdays.bits | weekdays.bits >> 7) & 0x7f, ..weekdays };
        let cron = Self { text: text.to_string(), minutes, hours, days, months, weekdays };
        if !cron.ever_comes() {
            return Err(refuse("no such day ever comes".into()));
        }
        Ok(cron)
    }
}

impl Cron {
    /// Whether one of its months has one of its days.
    fn ever_comes(&self) -> bool {
        // Days of the week come in each month.
        let by_day = self.days.is_any || !self.weekdays.is_any;
        by_day
            || (1..)
                .zip(MONTH_DAYS)
                .any(|(month, last)| self.months.has(month) && (1..=last).any(|day| self.days.has(day)))
    }
}

impl Field {
    fn read(&self, word: &str) -> Result<Set, String> {
        let is_any = word.starts_with('*') || word == "?";
        let mut bits = 0;
        for part in word.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(self.step(step)?)),
                None => (part, None),
            };
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (self.value(first)?, self.value(last)?),
                None if matches!(range, "*" | "?") => (self.from, self.last()),
                // As elsewhere, `5/15` goes on to the end.
                None => (self.value(range)?, if step.is_some() { self.last() } else { self.value(range)? }),
            };
            if first > last {
                return Err(format!("{range:?} ends before it starts"));
            }
            let values = (first..=last).step_by(usize::from(step.unwrap_or(1)));
            bits = values.fold(bits, |bits, value| bits | 1_u64 << value);
        }
        Ok(Set { bits, is_any })
    }

    /// The largest value that `*` names.
    const fn last(&self) -> u8 {
        if self.to == 7 { 6 } else { self.to }
    }

    fn value(&self, text: &str) -> Result<u8, String> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = named.and_then(|index| u8::try_from(index).ok()).map(|index| index + self.from);
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = named.or_else(|| text.parse().ok().filter(|_| is_number));
        value.filter(|value| (self.from..=self.to).contains(value)).ok_or_else(|| {
            let names = match (self.names.first(), self.names.last()) {
                (Some(first), Some(last)) => format!(", or {first} to {last}"),
                _ => String::new(),
            };
            format!("{} {text:?} is not valid: write {} to {}{names}", self.what, self.from, self.to)
        })
    }

    fn step(&self, text: &str) -> Result<u8, String> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let step = text.parse().ok().filter(|step| is_number && (1..=self.to).contains(step));
        step.ok_or_else(|| format!("{} step {text:?} is not valid: write 1 to {}", self.what, self.to))
    }
}

fn expanded(text: &str) -> Result<&'static str, String> {
    let found = MACROS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, fields)| *fields).ok_or_else(|| {
        let names: alloc::vec::Vec<&str> = MACROS.iter().map(|(name, _)| *name).collect();
        format!("it is none of {}", names.join(", "))
    })
}
