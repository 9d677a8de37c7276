//! Numbers as typed: a refusal states the numbers that are allowed.

use std::fmt::Display;
use std::str::FromStr;

/// Reads a whole number.
pub(super) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| match text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        true => "the number is too large".to_owned(),
        false => "write a whole number".to_owned(),
    })
}

/// Reads a whole number within limits, both included.
pub(super) fn between<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("write a number from {least} to {most}"))
    }
}

/// Reads the number of a port.
pub(super) fn port(text: &str) -> Result<u16, String> {
    between(0, u16::MAX)(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_states_what_is_allowed() {
        assert_eq!(between(1, 1_000)("0"), Err("write a number from 1 to 1000".to_owned()));
        assert_eq!(between(1, 1_000)("x"), Err("write a number from 1 to 1000".to_owned()));
        assert_eq!(between(1, 1_000)("1000"), Ok(1_000));
        assert_eq!(whole::<u32>("two"), Err("write a whole number".to_owned()));
        assert_eq!(whole::<u32>("4294967296"), Err("the number is too large".to_owned()));
    }
}
