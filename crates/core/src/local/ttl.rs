//! TTL checks, and the combined state of a service instance's checks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::health::{CheckHistory, CheckVerdict};
use crate::records::registrations::{CheckStatus, MAX_WORD_BYTES};
use crate::words::name::CheckName;
use crate::words::time::{Span, Timestamp};

/// An update that a program sends to a TTL check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TtlUpdate {
    /// It is healthy.
    Passing,
    /// It is functional, but needs attention.
    Warning,
    /// It is not functional.
    Failing,
}

/// A TTL check: it fails when it gets no update in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TtlCheck {
    /// How long an update is valid.
    pub lifetime: Span,
    /// Time of the last update by the agent's clock, its state, and the program's message in one line.
    pub last: Option<(Timestamp, TtlUpdate, String)>,
}

impl TtlCheck {
    /// A check without updates.
    #[must_use]
    pub const fn new(lifetime: Span) -> Self {
        Self { lifetime, last: None }
    }

    /// Time at which the last update expires, if it is still valid at `now`.
    #[must_use]
    pub fn ends(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.last.as_ref()?.0.plus(self.lifetime);
        (ends > now).then_some(ends)
    }
}

impl TtlUpdate {
    /// Reads the name of a state, as programs send it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "passing" | "pass" => Some(Self::Passing),
            "warning" | "warn" => Some(Self::Warning),
            "failing" | "critical" | "fail" => Some(Self::Failing),
            _ => None,
        }
    }
}

/// Combined state of an instance's checks: failing until every check has a result, and while one fails.
#[must_use]
pub fn serving(
    checks: &BTreeMap<CheckName, CheckHistory>,
    listening: &BTreeMap<CheckName, TtlCheck>,
    now: Timestamp,
) -> CheckStatus {
    let asked = checks.iter().map(|(name, check)| (name, of_check(check)));
    let heard = listening.iter().map(|(name, check)| (name, of_listening(check, now)));
    let mut worst = CheckStatus::Passing;
    for (name, said) in asked.chain(heard) {
        let reason = |text: &str| {
            cut(&if text.is_empty() { format!("check {name}") } else { format!("check {name}: {text}") })
        };
        match (said, &worst) {
            (TtlState::Well, _)
            | (_, CheckStatus::Failing { .. })
            | (TtlState::Warns(_), CheckStatus::Warning { .. }) => {}
            (TtlState::Fails(text), CheckStatus::Passing | CheckStatus::Warning { .. }) => {
                worst = CheckStatus::Failing { reason: reason(&text) };
            }
            (TtlState::Warns(text), CheckStatus::Passing) => {
                worst = CheckStatus::Warning { reason: reason(&text) }
            }
        }
    }
    worst
}

/// State of an instance whose needs are not met: it is registered, so that others find its address, and is
/// not functional.
#[must_use]
pub fn waiting(unmet: &str) -> CheckStatus {
    CheckStatus::Failing { reason: cut(&format!("needs {unmet}")) }
}

/// State of an instance whose process does not run, or was just started: for this reason it is not functional.
#[must_use]
pub fn down(reason: &str) -> CheckStatus {
    CheckStatus::Failing { reason: cut(reason) }
}

enum TtlState {
    Well,
    Warns(String),
    Fails(String),
}

fn of_check(check: &CheckHistory) -> TtlState {
    match (check.verdict(), check.warning()) {
        (CheckVerdict::Unknown, _) => TtlState::Fails("not enough results yet".into()),
        (CheckVerdict::Passing(_), None) => TtlState::Well,
        (CheckVerdict::Passing(_), Some(warning)) => TtlState::Warns(warning.into()),
        (CheckVerdict::Failing(_, message), _) => TtlState::Fails(message.clone()),
    }
}

fn of_listening(check: &TtlCheck, now: Timestamp) -> TtlState {
    match &check.last {
        None => TtlState::Fails("no update yet".into()),
        Some(_) if check.ends(now).is_none() => TtlState::Fails(format!("no update for {}", check.lifetime)),
        Some((_, TtlUpdate::Passing, _)) => TtlState::Well,
        Some((_, TtlUpdate::Warning, note)) => TtlState::Warns(note.clone()),
        Some((_, TtlUpdate::Failing, note)) => TtlState::Fails(note.clone()),
    }
}

fn cut(text: &str) -> Arc<str> {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let end = (0..=flat.len().min(MAX_WORD_BYTES)).rev().find(|index| flat.is_char_boundary(*index));
    Arc::from(flat.get(..end.unwrap_or_default()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::health::Hysteresis;
    use super::*;

    const ONCE: Hysteresis = Hysteresis { fall: 1, rise: 1 };

    fn at(seconds: u64) -> Timestamp {
        Timestamp::EPOCH.plus(Span::from_secs(seconds))
    }

    fn name(text: &str) -> CheckName {
        CheckName::parse(text).unwrap()
    }

    #[test]
    fn the_worst_check_says_whether_it_serves() {
        let mut checks = BTreeMap::new();
        let none = BTreeMap::new();
        let said = |checks: &BTreeMap<_, _>| serving(checks, &none, at(1));
        assert_eq!(said(&checks), CheckStatus::Passing, "without checks it serves");
        checks.insert(name("a"), CheckHistory::new());
        assert_eq!(said(&checks).reason(), "check a: not enough results yet");
        checks.insert(name("a"), CheckHistory::new().fold(Ok(None), ONCE, at(1)));
        assert_eq!(said(&checks), CheckStatus::Passing);
        checks.insert(name("b"), CheckHistory::new().fold(Ok(Some("91 % full".into())), ONCE, at(1)));
        assert_eq!(said(&checks), CheckStatus::Warning { reason: "check b: 91 % full".into() });
        checks.insert(name("c"), CheckHistory::new().fold(Err("refused\nagain".into()), ONCE, at(1)));
        assert_eq!(said(&checks), CheckStatus::Failing { reason: "check c: refused again".into() });
        checks.insert(name("b"), CheckHistory::new().fold(Ok(None), ONCE, at(2)));
        assert_eq!(said(&checks).as_str(), "failing");
    }

    #[test]
    fn what_a_program_said_holds_for_its_lifetime() {
        let mut listening = TtlCheck::new(Span::from_secs(10));
        let said = |listening: &TtlCheck, now| {
            serving(&BTreeMap::new(), &BTreeMap::from([(name("ttl"), listening.clone())]), at(now))
        };
        assert_eq!(said(&listening, 0).reason(), "check ttl: no update yet");
        listening.last = Some((at(5), TtlUpdate::Passing, String::new()));
        assert_eq!((said(&listening, 14), listening.ends(at(14))), (CheckStatus::Passing, Some(at(15))));
        assert_eq!(said(&listening, 15).reason(), "check ttl: no update for 10s");
        assert_eq!(listening.ends(at(15)), None);
        listening.last = Some((at(20), TtlUpdate::Failing, "out of disk".into()));
        assert_eq!(said(&listening, 21).reason(), "check ttl: out of disk");
        listening.last = Some((at(30), TtlUpdate::Warning, String::new()));
        assert_eq!(said(&listening, 31), CheckStatus::Warning { reason: "check ttl".into() });
    }
}
