//! Check results to health, with hysteresis. Owns how many consecutive results change a check's verdict.

use alloc::string::String;

use crate::words::time::Timestamp;

/// How many consecutive results change a check's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hysteresis {
    /// Consecutive failures before a check is failing; at least 1.
    pub fall: u32,
    /// Consecutive passes before it is passing again; at least 1.
    pub rise: u32,
}

impl Default for Hysteresis {
    /// Two either way: one lost packet is not a failure, and one success is not health.
    fn default() -> Self {
        Self { fall: 2, rise: 2 }
    }
}

/// The verdict on a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckVerdict {
    /// Not enough results yet.
    Unknown,
    /// Passing, since this time by the agent's clock.
    Passing(Timestamp),
    /// Failing, since this time by the agent's clock, with the message of the last failure.
    Failing(Timestamp, String),
}

/// The results of one check, folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckHistory {
    verdict: CheckVerdict,
    warning: Option<String>,
    passes: u32,
    failures: u32,
}

impl Default for CheckHistory {
    fn default() -> Self {
        Self::new()
    }
}

impl CheckHistory {
    /// A history without results.
    #[must_use]
    pub const fn new() -> Self {
        Self { verdict: CheckVerdict::Unknown, warning: None, passes: 0, failures: 0 }
    }

    /// The present verdict.
    #[must_use]
    pub const fn verdict(&self) -> &CheckVerdict {
        &self.verdict
    }

    /// The warning of the last result, if it passed with one.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Adds one result: `Ok` passed, perhaps with a warning; `Err` failed; each message is one line.
    #[must_use]
    pub fn fold(
        mut self,
        result: Result<Option<String>, String>,
        limits: Hysteresis,
        now: Timestamp,
    ) -> Self {
        match result {
            Ok(warning) => {
                self.warning = warning;
                self.passes = self.passes.saturating_add(1);
                self.failures = 0;
                let turned = !matches!(self.verdict, CheckVerdict::Passing(_)) && self.passes >= limits.rise;
                if turned {
                    self.verdict = CheckVerdict::Passing(now);
                }
            }
            Err(message) => {
                self.warning = None;
                self.failures = self.failures.saturating_add(1);
                self.passes = 0;
                let since = match self.verdict {
                    CheckVerdict::Failing(since, _) => Some(since),
                    CheckVerdict::Unknown | CheckVerdict::Passing(_) => {
                        (self.failures >= limits.fall).then_some(now)
                    }
                };
                if let Some(since) = since {
                    self.verdict = CheckVerdict::Failing(since, message);
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn run(results: &str) -> CheckVerdict {
        let mut check = CheckHistory::new();
        for (index, result) in (1_u64..).zip(results.bytes()) {
            let result = if result == b'+' { Ok(None) } else { Err("no".into()) };
            check = check.fold(result, Hysteresis::default(), at(index));
        }
        check.verdict().clone()
    }

    #[test]
    fn one_result_decides_nothing() {
        assert_eq!(run("+"), CheckVerdict::Unknown);
        assert_eq!(run("-"), CheckVerdict::Unknown);
        assert_eq!(run("+-+-"), CheckVerdict::Unknown);
    }

    #[test]
    fn a_verdict_keeps_its_first_moment_until_it_turns() {
        assert_eq!(run("++++"), CheckVerdict::Passing(at(2)));
        assert_eq!(run("++-+"), CheckVerdict::Passing(at(2)));
        assert_eq!(run("++--"), CheckVerdict::Failing(at(4), "no".into()));
        assert_eq!(run("++--+-"), CheckVerdict::Failing(at(4), "no".into()));
        assert_eq!(run("++--++"), CheckVerdict::Passing(at(6)));
    }
}
