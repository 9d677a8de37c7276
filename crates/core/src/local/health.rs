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
    /// End of the time for which a verdict of an earlier agent counts without a result of this one; `None` once a
    /// result confirmed or replaced it.
    believed_until: Option<Timestamp>,
    /// End of the start-up, in which no failure counts; `None` after the first pass.
    starting_until: Option<Timestamp>,
    /// Message of the last failure that did not count.
    uncounted: Option<String>,
}

/// What remains of a check's history over a restart of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHistory {
    /// The verdict.
    pub verdict: CheckVerdict,
    /// The warning of the last result, if it passed with one.
    pub warning: Option<String>,
    /// Consecutive results against the verdict; consecutive passes if there is no verdict yet.
    pub against: u32,
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
        Self {
            verdict: CheckVerdict::Unknown,
            warning: None,
            passes: 0,
            failures: 0,
            believed_until: None,
            starting_until: None,
            uncounted: None,
        }
    }

    /// A history without results of something that was just started: before `until`, no failure counts until it passed
    /// once.
    #[must_use]
    pub const fn starting(until: Timestamp) -> Self {
        let mut history = Self::new();
        history.starting_until = Some(until);
        history
    }

    /// The message of the last failure that did not count, because what is checked is starting.
    #[must_use]
    pub fn uncounted(&self) -> Option<&str> {
        self.uncounted.as_deref()
    }

    /// Continues a history that an earlier agent stored. A passing verdict is believed until a result confirms it, and
    /// not beyond `until`: from then on one failure is enough.
    #[must_use]
    pub fn restored(stored: StoredHistory, until: Timestamp) -> Self {
        let StoredHistory { verdict, warning, against } = stored;
        let (passes, failures, believed_until) = match verdict {
            CheckVerdict::Unknown => (against, 0, None),
            CheckVerdict::Passing(_) => (0, against, Some(until)),
            CheckVerdict::Failing(_, _) => (against, 0, None),
        };
        Self { verdict, warning, passes, failures, believed_until, ..Self::new() }
    }

    /// What must be stored to continue after a restart. It stays equal while results only confirm the verdict.
    #[must_use]
    pub fn stored(&self) -> StoredHistory {
        let against = match self.verdict {
            CheckVerdict::Passing(_) => self.failures,
            CheckVerdict::Unknown | CheckVerdict::Failing(_, _) => self.passes,
        };
        StoredHistory { verdict: self.verdict.clone(), warning: self.warning.clone(), against }
    }

    /// Whether there is a verdict or at least one result.
    #[must_use]
    pub fn has_result(&self) -> bool {
        let counted = !matches!(self.verdict, CheckVerdict::Unknown) || self.passes > 0 || self.failures > 0;
        counted || self.uncounted.is_some()
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
                (self.believed_until, self.starting_until, self.uncounted) = (None, None, None);
                let turned = !matches!(self.verdict, CheckVerdict::Passing(_)) && self.passes >= limits.rise;
                if turned {
                    self.verdict = CheckVerdict::Passing(now);
                }
            }
            Err(message) if self.starting_until.is_some_and(|until| now < until) => {
                self.uncounted = Some(message);
            }
            Err(message) => {
                (self.warning, self.uncounted) = (None, None);
                self.failures = self.failures.saturating_add(1);
                self.passes = 0;
                let since = match self.verdict {
                    CheckVerdict::Failing(since, _) => Some(since),
                    CheckVerdict::Unknown | CheckVerdict::Passing(_) => {
                        let over = self.believed_until.is_some_and(|until| now >= until);
                        (over || self.failures >= limits.fall).then_some(now)
                    }
                };
                if let Some(since) = since {
                    self.believed_until = None;
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

    fn passing(until: u64) -> CheckHistory {
        let stored = StoredHistory { verdict: CheckVerdict::Passing(at(1)), warning: None, against: 0 };
        CheckHistory::restored(stored, at(until))
    }

    #[test]
    fn a_stored_verdict_is_continued_and_keeps_its_first_moment() {
        let slow = Hysteresis { fall: 3, rise: 3 };
        let check = passing(10);
        assert!(check.has_result() && !CheckHistory::new().has_result());
        let check = check.fold(Ok(None), slow, at(5)).fold(Err("no".into()), slow, at(20));
        assert_eq!(check.verdict(), &CheckVerdict::Passing(at(1)), "a confirmed verdict falls as any other");
        let again = CheckHistory::restored(check.stored(), at(30));
        assert_eq!(again.stored(), check.stored());
        let turned = again.fold(Err("no".into()), slow, at(21)).fold(Err("no".into()), slow, at(22));
        assert_eq!(turned.verdict(), &CheckVerdict::Failing(at(22), "no".into()), "failures before count");
        let failing = CheckHistory::restored(turned.stored(), at(30));
        let failing = failing.fold(Ok(None), slow, at(23)).fold(Ok(None), slow, at(24));
        assert!(matches!(failing.verdict(), CheckVerdict::Failing(_, _)), "one good result is not health");
    }

    #[test]
    fn a_stored_verdict_that_nothing_confirms_is_not_believed_for_longer_than_said() {
        let slow = Hysteresis { fall: 9, rise: 2 };
        let check = passing(10).fold(Err("no".into()), slow, at(9));
        assert_eq!(check.verdict(), &CheckVerdict::Passing(at(1)));
        let check = check.fold(Err("no".into()), slow, at(10));
        assert_eq!(check.verdict(), &CheckVerdict::Failing(at(10), "no".into()));
    }

    #[test]
    fn while_something_starts_no_failure_counts_before_its_first_pass() {
        let limits = Hysteresis { fall: 2, rise: 2 };
        let fails = |check: CheckHistory, now| check.fold(Err("not yet".into()), limits, at(now));
        let starting = (1..50).fold(CheckHistory::starting(at(100)), fails);
        assert_eq!((starting.verdict(), starting.uncounted()), (&CheckVerdict::Unknown, Some("not yet")));
        assert!(starting.has_result());

        let passed = starting.clone().fold(Ok(None), limits, at(50));
        assert_eq!(passed.uncounted(), None);
        let fallen = fails(fails(passed.clone(), 51), 52);
        assert_eq!(
            fallen.verdict(),
            &CheckVerdict::Failing(at(52), "not yet".into()),
            "from then on they do"
        );
        let risen = passed.fold(Ok(None), limits, at(51));
        assert_eq!(risen.verdict(), &CheckVerdict::Passing(at(51)));

        let late = fails(starting, 100);
        assert_eq!(
            (late.verdict(), late.uncounted()),
            (&CheckVerdict::Unknown, None),
            "and after the start-up"
        );
        assert_eq!(fails(late, 101).verdict(), &CheckVerdict::Failing(at(101), "not yet".into()));
    }

    #[test]
    fn what_is_stored_stays_equal_while_nothing_turns() {
        let check = CheckHistory::new().fold(Ok(None), Hysteresis { fall: 2, rise: 1 }, at(1));
        let same = check.clone().fold(Ok(None), Hysteresis { fall: 2, rise: 1 }, at(2));
        assert_eq!(check.stored(), same.stored());
        assert_ne!(check.fold(Err("no".into()), Hysteresis::default(), at(3)).stored(), same.stored());
    }
}
