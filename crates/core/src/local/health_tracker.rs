//! How long the running version has been healthy, measured on this machine alone.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::health::{CheckHistory, CheckVerdict};
use crate::records::evidence::Evidence;
use crate::words::name::CheckName;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Combined verdict of an entity's checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckSummary {
    /// There are no checks.
    NoChecks,
    /// At least one check has no verdict yet, and none fails.
    Unknown,
    /// All checks pass.
    Healthy,
    /// At least one check fails, or the process ended.
    Unhealthy(Evidence),
}

/// The combined verdict of all checks; a failing one outweighs the others.
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

/// Start of the uninterrupted healthy time of a version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HealthTracker {
    since: Option<(Version, Timestamp)>,
}

impl HealthTracker {
    /// Continues a healthy time that began before the agent's restart.
    #[must_use]
    pub const fn restored(version: Version, since: Timestamp) -> Self {
        Self { since: Some((version, since)) }
    }

    /// Records an observation: `settled` is the validated version, if exactly that is on the host.
    pub fn observe(&mut self, settled: Option<&Version>, vital: &CheckSummary, now: Timestamp) {
        let well = match vital {
            CheckSummary::NoChecks | CheckSummary::Healthy => true,
            // A verdict stays until it changes, so `Unknown` occurs only before the first one.
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

    /// Start of the healthy time, by the agent's clock.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        self.since.as_ref().map(|(_, since)| *since)
    }

    /// Length of the healthy time; zero while not healthy.
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
        let CheckSummary::Unhealthy(evidence) = vital(&checks) else { panic!("the check failed") };
        assert_eq!(evidence.summary, "check c is failing: status 500");
        assert_eq!(evidence.failing_checks, ["c"]);
    }
}
