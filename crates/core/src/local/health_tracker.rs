//! For how long what runs has been well, measured on this machine alone.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::health::{CheckHistory, CheckVerdict};
use crate::records::evidence::Evidence;
use crate::words::name::CheckName;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// What the checks of one entity say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckSummary {
    /// There is nothing that could fail.
    NoChecks,
    /// Not every check has its verdict yet, and none fails.
    Unknown,
    /// All pass.
    Healthy,
    /// At least one fails, or the process is gone.
    Unhealthy(Evidence),
}

/// What all checks say together; one that fails outweighs the others.
#[must_use]
pub fn vital(checks: &BTreeMap<CheckName, CheckHistory>) -> CheckSummary {
    let mut failing: Vec<String> = Vec::new();
    let mut first: Option<String> = None;
    let mut unknown = false;
    for (name, check) in checks {
        match check.verdict() {
            CheckVerdict::Unknown => unknown = true,
            CheckVerdict::Passing(_) => {}
            CheckVerdict::Failing(_, message) => {
                first.get_or_insert_with(|| alloc::format!("check {name} is failing: {message}"));
                failing.push(name.to_string());
            }
        }
    }
    match first {
        Some(summary) => {
            CheckSummary::Unhealthy(Evidence { summary, failing_checks: failing, ..Evidence::default() })
        }
        None if checks.is_empty() => CheckSummary::NoChecks,
        None if unknown => CheckSummary::Unknown,
        None => CheckSummary::Healthy,
    }
}

/// Since when a version has been well without a break.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HealthTracker {
    since: Option<(Version, Timestamp)>,
}

impl HealthTracker {
    /// Looks again: `settled` is the validated version, if what is on the host is that and nothing else.
    pub fn observe(&mut self, settled: Option<&Version>, vital: &CheckSummary, now: Timestamp) {
        let well = match vital {
            CheckSummary::NoChecks | CheckSummary::Healthy => true,
            // A verdict once reached stays until it turns, so this is before the first.
            CheckSummary::Unknown | CheckSummary::Unhealthy(_) => false,
        };
        match settled {
            Some(version) if well => {
                if self.since.as_ref().is_none_or(|(of, _)| of != version) {
                    self.since = Some((version.clone(), now));
                }
            }
            Some(_) | None => self.since = None,
        }
    }

    /// Since when, by the agent's clock.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        self.since.as_ref().map(|(_, since)| *since)
    }

    /// For how long; no time at all when it is not well.
    #[must_use]
    pub fn lasted(&self, now: Timestamp) -> Span {
        self.since().map_or(Span::ZERO, |since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn time_is_measured_anew_for_another_version_and_after_a_break() {
        let (v1, v2) = (version("v1"), version("v2"));
        let mut wellness = HealthTracker::default();
        wellness.observe(Some(&v1), &CheckSummary::Unknown, at(1));
        assert_eq!(wellness.since(), None);
        wellness.observe(Some(&v1), &CheckSummary::Healthy, at(2));
        wellness.observe(Some(&v1), &CheckSummary::Healthy, at(5));
        assert_eq!(wellness.since(), Some(at(2)));
        assert_eq!(wellness.lasted(at(5)), Span::from_millis(3));
        wellness.observe(Some(&v1), &CheckSummary::Unhealthy(Evidence::default()), at(6));
        assert_eq!(wellness.since(), None);
        wellness.observe(Some(&v1), &CheckSummary::Healthy, at(7));
        wellness.observe(None, &CheckSummary::Healthy, at(8));
        assert_eq!(wellness.since(), None);
        wellness.observe(Some(&v2), &CheckSummary::NoChecks, at(9));
        assert_eq!(wellness.since(), Some(at(9)));
    }

    #[test]
    fn one_failing_check_outweighs_the_others_and_is_named() {
        let limits = super::super::health::Hysteresis { fall: 1, rise: 1 };
        let name = |text: &str| CheckName::parse(text).unwrap();
        let mut checks = BTreeMap::new();
        assert_eq!(vital(&checks), CheckSummary::NoChecks);
        checks.insert(name("a"), CheckHistory::new().fold(Ok(None), limits, at(1)));
        assert_eq!(vital(&checks), CheckSummary::Healthy);
        checks.insert(name("b"), CheckHistory::new());
        assert_eq!(vital(&checks), CheckSummary::Unknown);
        checks.insert(name("c"), CheckHistory::new().fold(Err("status 500".into()), limits, at(1)));
        let CheckSummary::Unhealthy(evidence) = vital(&checks) else { panic!("it is unwell") };
        assert_eq!(evidence.summary, "check c is failing: status 500");
        assert_eq!(evidence.failing_checks, ["c"]);
    }
}
