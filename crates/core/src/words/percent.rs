//! Percentages and amounts. Owns how a share of N targets becomes a number of targets.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// A whole percentage, 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

/// A number of targets, or a share of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Exactly this many.
    Count(u32),
    /// This percentage of all targets.
    Share(Percent),
}

/// Why a text is not a valid amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// More than 100 %.
    #[error("{text:?} is over 100%")]
    OverHundred {
        /// The text that was given.
        text: String,
    },
    /// Neither a count nor a percentage.
    #[error("{text:?} is not an amount; write a count like 3 or a share like 5%")]
    NotAnAmount {
        /// The text that was given.
        text: String,
    },
    /// A count that is too large.
    #[error("{text} is over {max}, the largest count", max = u32::MAX)]
    TooLarge {
        /// The text that was given.
        text: String,
    },
    /// Not a percentage.
    #[error("{text:?} is not a share; write a percentage like 95%")]
    NotAShare {
        /// The text that was given.
        text: String,
    },
}

impl Percent {
    /// 100 %.
    pub const ALL: Self = Self(100);
    /// 0 %.
    pub const NONE: Self = Self(0);

    /// The percentage of a plain number; `None` above 100.
    #[must_use]
    pub const fn new(percent: u8) -> Option<Self> {
        if percent <= 100 { Some(Self(percent)) } else { None }
    }

    /// The number, 0 to 100.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// This share of `total`, rounded up: at least 1 unless the share is 0 % or `total` is zero.
    #[must_use]
    pub const fn of_rounded_up(self, total: u64) -> u64 {
        (total / 100) * self.0 as u64 + ((total % 100) * self.0 as u64).div_ceil(100)
    }

    /// This share of `total`, rounded down.
    #[must_use]
    pub const fn of_rounded_down(self, total: u64) -> u64 {
        (total / 100) * self.0 as u64 + ((total % 100) * self.0 as u64) / 100
    }
}

impl Amount {
    /// A count as it is, a share of `total` rounded up: at least 1 unless the share or `total` is zero.
    #[must_use]
    pub fn of_at_least_one(self, total: u64) -> u64 {
        match self {
            Self::Count(count) => u64::from(count),
            Self::Share(share) => share.of_rounded_up(total),
        }
    }

    /// A count as it is, a share of `total` rounded down.
    #[must_use]
    pub fn of_at_most(self, total: u64) -> u64 {
        match self {
            Self::Count(count) => u64::from(count),
            Self::Share(share) => share.of_rounded_down(total),
        }
    }

    /// Whether this is zero of any total.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        match self {
            Self::Count(count) => count == 0,
            Self::Share(share) => share.0 == 0,
        }
    }
}

impl FromStr for Percent {
    type Err = AmountError;
    /// Reads `5%`.
    fn from_str(text: &str) -> Result<Self, AmountError> {
        let refuse = || AmountError::NotAShare { text: text.into() };
        let digits = text.strip_suffix('%').ok_or_else(refuse)?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(refuse());
        }
        let over = || AmountError::OverHundred { text: text.into() };
        digits.parse().ok().and_then(Self::new).ok_or_else(over)
    }
}

impl FromStr for Amount {
    type Err = AmountError;
    /// Reads `3` or `5%`.
    fn from_str(text: &str) -> Result<Self, AmountError> {
        if text.ends_with('%') {
            return text.parse().map(Self::Share).map_err(|error| match error {
                AmountError::NotAShare { text } => AmountError::NotAnAmount { text },
                over @ (AmountError::OverHundred { .. }
                | AmountError::NotAnAmount { .. }
                | AmountError::TooLarge { .. }) => over,
            });
        }
        let refuse = || AmountError::NotAnAmount { text: text.into() };
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(refuse());
        }
        text.parse().map(Self::Count).map_err(|_| AmountError::TooLarge { text: text.into() })
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Share(share) => write!(f, "{share}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_some_is_never_none() {
        let five: Amount = "5%".parse().unwrap();
        assert_eq!((five.of_at_least_one(1), five.of_at_least_one(20), five.of_at_least_one(21)), (1, 1, 2));
        assert_eq!(five.of_at_least_one(0), 0);
        assert_eq!("0%".parse::<Amount>().unwrap().of_at_least_one(50), 0);
        assert_eq!(five.of_at_most(19), 0);
        assert_eq!(Percent::ALL.of_rounded_up(u64::MAX), u64::MAX);
    }

    #[test]
    fn shares_over_everything_and_nonsense_are_refused() {
        assert!(matches!("101%".parse::<Amount>(), Err(AmountError::OverHundred { .. })));
        for bad in ["", "%", "-1", "5 %", "five", "1.5%", "+3"] {
            assert!(matches!(bad.parse::<Amount>(), Err(AmountError::NotAnAmount { .. })), "{bad:?}");
        }
        let huge = "99999999999".parse::<Amount>().unwrap_err();
        assert_eq!(alloc::format!("{huge}"), "99999999999 is over 4294967295, the largest count");
        for bad in ["3", "", "95 %"] {
            assert!(matches!(bad.parse::<Percent>(), Err(AmountError::NotAShare { .. })), "{bad:?}");
        }
    }
}
