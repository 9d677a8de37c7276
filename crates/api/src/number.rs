//! Numbers that JSON keeps: whole numbers of 64 bits and binary fractions. Any other would be stored as its nearest neighbour, so
//! whoever reads JSON refuses it, with its place.

use std::fmt;

use serde::de::IgnoredAny;

/// Most significant digits that every binary fraction keeps.
const SAFE_DIGITS: usize = 15;

/// A number that would lose digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InexactNumber<'a> {
    /// As it is written.
    pub number: &'a str,
    /// Where it is, such as `params.limits[2]`; empty for the whole text.
    pub place: String,
}

impl fmt::Display for InexactNumber<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the number {} cannot be kept with all its digits", self.number)
    }
}

impl InexactNumber<'_> {
    /// What is wrong, after its place.
    #[must_use]
    pub fn at_place(&self) -> String {
        if self.place.is_empty() { self.to_string() } else { format!("{}: {self}", self.place) }
    }
}

/// The next step for who wrote such a number.
#[must_use]
pub fn kept_as_text(number: &str) -> String {
    format!("to keep it as text, quote it: \"{number}\"")
}

/// The first number of a JSON text that would lose digits; none if the text is no JSON.
#[must_use]
pub fn inexact(json: &str) -> Option<InexactNumber<'_>> {
    let found = may_be_inexact(json).then(|| scan(json)).flatten()?;
    serde_json::from_str::<IgnoredAny>(json).is_ok().then_some(found)
}

/// Whether a text has anything like a number of many digits or with an exponent, in any of the formats that documents have.
#[must_use]
pub fn may_be_inexact(text: &str) -> bool {
    let (mut digits, mut after_digit) = (0, false);
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'.' | b'_' => {}
            b'e' | b'E' | b'x' | b'o' | b'b' if after_digit => return true,
            _ => digits = 0,
        }
        if digits > SAFE_DIGITS {
            return true;
        }
        after_digit = byte.is_ascii_digit() || byte == b'.';
    }
    let is_word = |word: &[u8]| word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan");
    text.as_bytes().windows(3).any(is_word)
}

/// An object or a list around what is being read.
enum Level<'a> {
    /// The key of the member, as it is written.
    Member(&'a str),
    /// The index of the item.
    Item(usize),
}

fn scan(json: &str) -> Option<InexactNumber<'_>> {
    let is_token = |c: char| matches!(c, '"' | '{' | '}' | '[' | ']' | ',' | '-') || c.is_ascii_digit();
    let (mut rest, mut levels) = (json, Vec::new());
    while let Some(at) = rest.find(is_token) {
        let (token, after) = rest.get(at..)?.split_at_checked(1)?;
        rest = match token {
            "\"" => {
                let (text, after) = until_quote(after);
                if let (true, Some(level)) = (after.trim_start().starts_with(':'), levels.last_mut()) {
                    *level = Level::Member(text);
                }
                after
            }
            "{" | "[" => {
                levels.push(if token == "{" { Level::Member("") } else { Level::Item(0) });
                after
            }
            "}" | "]" => {
                levels.pop();
                after
            }
            "," => {
                if let Some(Level::Item(index)) = levels.last_mut() {
                    *index += 1;
                }
                after
            }
            _ => {
                let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
                let from = rest.get(at..)?;
                let (number, after) =
                    from.split_at(from.find(|c: char| !is_of_number(c)).unwrap_or(from.len()));
                if !is_exact(number) {
                    return Some(InexactNumber { number, place: place(&levels) });
                }
                after
            }
        };
    }
    None
}

/// A JSON text after its opening quote, and what follows its closing one.
fn until_quote(text: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = text.find(|c: char| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    let (text, after) = text.split_at(end.unwrap_or(text.len()));
    (text, after.strip_prefix('"').unwrap_or_default())
}

fn place(levels: &[Level<'_>]) -> String {
    let mut place = String::new();
    for level in levels {
        match level {
            Level::Member(key) if place.is_empty() => place.push_str(key),
            Level::Member(key) => place.extend([".", key]),
            Level::Item(index) => place.push_str(&format!("[{index}]")),
        }
    }
    place
}

/// Whether a decimal number is kept with all its digits; true for what is no number.
#[must_use]
pub fn is_exact(number: &str) -> bool {
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    match number.parse::<f64>() {
        Ok(value) => value.is_finite() && digits(number) == digits(&format!("{value:e}")),
        Err(_) => true,
    }
}

/// The significant digits of a number, and the power of ten of the first: the same for every way to write it.
fn digits(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('-');
    let all = format!("{whole}{fraction}");
    let from_first = all.trim_start_matches('0');
    if from_first.is_empty() {
        return (String::new(), 0);
    }
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let zeros = length(&all).saturating_sub(length(from_first));
    let power = exponent.trim_start_matches('+').parse().unwrap_or(i64::MAX);
    let first = length(whole).saturating_sub(zeros).saturating_add(power);
    (from_first.trim_end_matches('0').to_owned(), first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_would_lose_digits_is_found_with_its_place() {
        let long = "123456789012345678901234567890";
        let json = format!(r#"{{"{long}": [1.5, 1e3, {{"a\\\"b": ["{long}", 0.1, {long}]}}]}}"#);
        let found = inexact(&json).unwrap();
        assert_eq!((found.number, found.place.as_str()), (long, &*format!(r#"{long}[2].a\\\"b[2]"#)));
        assert_eq!(inexact(long).unwrap().at_place(), inexact(long).unwrap().to_string());
        for kept in
            ["18446744073709551615", "[-9223372036854775808, 1.50]", "\"1e999\"", "{1e999", "1.2.3-e5"]
        {
            assert_eq!(inexact(kept), None, "{kept}");
        }
        for lost in ["1e999", "0.12345678901234567", "1e-999", "[1, 36893488147419103233]"] {
            assert!(inexact(lost).is_some(), "{lost}");
        }
    }

    #[test]
    fn only_texts_with_long_numbers_or_exponents_are_read_again() {
        for short in ["123456789.012345", "2026-11-24 abcdef 0.1", "0 e"] {
            assert!(!may_be_inexact(short), "{short}");
        }
        for long in ["1234567.890123456", "1e9", "a: -.INF", "0x1F", "1_000_000_000_000_000"] {
            assert!(may_be_inexact(long), "{long}");
        }
    }
}
