//! Points in time and durations, in milliseconds. Never reads a clock: the present is always an argument.

use core::fmt;

/// A point in time: whole milliseconds since the Unix epoch, by the control plane's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

/// A duration: whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// The time at these milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This time moved later by `span`; saturates at the largest time.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// This time moved earlier by `span`; saturates at the epoch.
    #[must_use]
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// Duration from `earlier` to this time; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// The duration of these milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The duration of these seconds; saturates.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// Whole milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The sum of both durations; saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This duration without `other`; zero if `other` is longer.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The form for people: at most two units, rounded down, like `2m 3s` or `250ms`. It cannot be read back.
    #[must_use]
    pub const fn brief(self) -> BriefSpan {
        BriefSpan(self)
    }

    /// The standard library's form, for timers.
    #[must_use]
    pub const fn to_duration(self) -> core::time::Duration {
        core::time::Duration::from_millis(self.0)
    }
}

/// Why a text is not a valid duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration; write 90s or 1h30m")]
pub struct SpanError {
    /// The text that was given.
    pub text: alloc::string::String,
}

impl core::str::FromStr for Span {
    type Err = SpanError;

    /// Reads `250ms`, `90s`, `1h30m`, `2d`; units follow each other from large to small, each once. A bare `0` is zero.
    fn from_str(text: &str) -> Result<Self, SpanError> {
        let refuse = || SpanError { text: text.into() };
        if text == "0" {
            return Ok(Self::ZERO);
        }
        let (mut rest, mut total, mut smaller) = (text, 0_u64, &UNITS[..]);
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at_checked(digits).ok_or_else(refuse)?;
            let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, after) = tail.split_at_checked(letters).ok_or_else(refuse)?;
            let number: u64 = number.parse().map_err(|_| refuse())?;
            let place = smaller.iter().position(|(name, _)| *name == unit).ok_or_else(refuse)?;
            let (units, left) = smaller.split_at_checked(place + 1).ok_or_else(refuse)?;
            let scale = units.last().ok_or_else(refuse)?.1;
            smaller = left;
            let part = number.checked_mul(scale).ok_or_else(refuse)?;
            total = total.checked_add(part).ok_or_else(refuse)?;
            rest = after;
        }
        if text.is_empty() { Err(refuse()) } else { Ok(Self(total)) }
    }
}

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl fmt::Display for Span {
    /// Writes the form that [`FromStr`](core::str::FromStr) reads, exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, scale) in UNITS {
            let count = rest / scale;
            if count > 0 {
                write!(f, "{count}{unit}")?;
                rest %= scale;
            }
        }
        Ok(())
    }
}

/// A [`Span`] in the form for people; see [`Span::brief`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BriefSpan(Span);

impl fmt::Display for BriefSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.0.0;
        let Some(place) = UNITS.iter().position(|(_, scale)| total >= *scale) else { return f.pad("0s") };
        let mut text = alloc::string::String::new();
        let mut rest = total;
        for (index, (unit, scale)) in UNITS.iter().enumerate().skip(place).take(2) {
            let count = rest / scale;
            // Next to whole seconds, milliseconds are of no interest.
            if count > 0 && (*unit != "ms" || index == place) {
                let space = if text.is_empty() { "" } else { " " };
                text.push_str(&alloc::format!("{space}{count}{unit}"));
            }
            rest %= scale;
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn spans_read_and_write_the_same_text() {
        for text in ["90s", "1h30m", "250ms", "2d", "0", "1m1ms"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
        assert_eq!("90s".parse::<Span>().unwrap(), Span::from_millis(90_000));
        assert_eq!(Span::from_secs(90).to_string(), "1m30s");
    }

    #[test]
    fn a_brief_span_has_at_most_two_units() {
        let brief = |millis| Span::from_millis(millis).brief().to_string();
        let texts = [0, 250, 1_250, 60_000, 120_964, 192_000, 5_400_000, 3_601_000, 187_200_000].map(brief);
        assert_eq!(texts, ["0s", "250ms", "1s", "1m", "2m", "3m 12s", "1h 30m", "1h", "2d 4h"]);
    }

    #[test]
    fn spans_without_a_unit_or_number_are_refused() {
        for text in ["", "5", "s", "5 s", "-1s", "1w", "99999999999999999999s", "18446744073709551615d"] {
            assert!(text.parse::<Span>().is_err(), "{text:?} was accepted");
        }
    }
}
