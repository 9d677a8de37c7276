//! The policy of an entity: how carefully its targets change. Owns defaults and contradictions; decides nothing.
//! Written by people, as part of the entity.

use alloc::string::String;
use alloc::string::ToString;

use crate::words::percent::{Amount, Percent};
use crate::words::time::Span;

/// Most apply attempts that may be asked for: beyond this a retry is a loop.
pub const MAX_RETRIES: u32 = 100;

/// Longest soak or deadline: a year. Longer is a typing error.
pub const MAX_SPAN: Span = Span::from_secs(31_536_000);

/// Most targets in flight at once, unless said: a mistake costs a twentieth of the fleet.
const DEFAULT_BATCH: Amount = Amount::Share(percent(5));

/// Share of targets that may be silent before a rollout pauses, unless said.
const DEFAULT_UNREACHABLE: Amount = Amount::Share(percent(10));

/// Uninterrupted healthy time that counts as success, unless said: most crashes at start show within it.
const DEFAULT_SOAK: Span = Span::from_secs(60);

/// Time for the change itself, before the soak, unless a deadline is said.
const DEFAULT_APPLY_TIME: Span = Span::from_secs(120);

/// How carefully an entity's targets change. Made by [`Policy::new`], which fills in the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    batch: Amount,
    success: Percent,
    failures: Option<Amount>,
    unreachable: Amount,
    soak: Span,
    deadline: Span,
    fail_fast: bool,
    retries: u32,
    on_failure: OnFailure,
    rollback: Amount,
    supersede: Supersede,
}

/// A policy as a person writes it: what is `None` takes its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Draft {
    /// Most targets in flight at once, a count or a share rounded up; zero holds. Default 5 %.
    pub batch: Option<Amount>,
    /// Share of targets that must succeed for the version to become last known good. 1 to 100 %, default 100 %.
    pub success: Option<Percent>,
    /// Failures tolerated, a count or a share rounded down. Default: what `success` leaves over.
    pub failures: Option<Amount>,
    /// Targets that may stay silent, a count or a share rounded down. Default 10 %.
    pub unreachable: Option<Amount>,
    /// Uninterrupted healthy time on the version. 0 s to a year, default 60 s.
    pub soak: Option<Span>,
    /// From assignment to success, else failed. Above `soak`, up to a year; default 120 s and the soak.
    pub deadline: Option<Span>,
    /// Whether an error report or a failed check fails a target at once. Default yes.
    pub fail_fast: Option<bool>,
    /// Apply attempts after the first before a target has failed. 0 to 100, default 0.
    pub retries: Option<u32>,
    /// What to do when the version is bad. Default: roll back.
    pub on_failure: Option<OnFailure>,
    /// Most targets in flight at once while rolling back; never zero. Default 100 %.
    pub rollback: Option<Amount>,
    /// What a new version does to a rollout that is under way. Default: replace it.
    pub supersede: Option<Supersede>,
}

/// What happens when more targets failed than the policy tolerates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Every target that was moved goes back to last known good.
    #[default]
    Rollback,
    /// Nothing more is handed out until a person decides.
    Pause,
    /// The rollout goes on to its end; the version does not become last known good.
    Continue,
}

/// What a new target version does to a rollout that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Supersede {
    /// The old version is no longer handed out, neither good nor bad; the new one starts at once.
    #[default]
    Replace,
    /// The rollout under way ends first.
    Finish,
    /// The new version is refused.
    Refuse,
}

/// Why a draft is not a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("use the policy: {field}: {reason}")]
pub struct PolicyError {
    /// The field to change.
    pub field: &'static str,
    /// What is wrong with it, with the values.
    pub reason: String,
}

impl Policy {
    /// The policy of an empty draft.
    pub const DEFAULT: Self = Self {
        batch: DEFAULT_BATCH,
        success: Percent::ALL,
        failures: None,
        unreachable: DEFAULT_UNREACHABLE,
        soak: DEFAULT_SOAK,
        deadline: DEFAULT_APPLY_TIME.plus(DEFAULT_SOAK),
        fail_fast: true,
        retries: 0,
        on_failure: OnFailure::Rollback,
        rollback: Amount::Share(Percent::ALL),
        supersede: Supersede::Replace,
    };

    /// The policy a draft means.
    ///
    /// # Errors
    /// [`PolicyError`] naming the first field that is out of range or contradicts another.
    pub fn new(draft: Draft) -> Result<Self, PolicyError> {
        let usual = Self::DEFAULT;
        let soak = draft.soak.unwrap_or(usual.soak);
        let policy = Self {
            batch: draft.batch.unwrap_or(usual.batch),
            success: draft.success.unwrap_or(usual.success),
            failures: draft.failures,
            unreachable: draft.unreachable.unwrap_or(usual.unreachable),
            soak,
            deadline: draft.deadline.unwrap_or(DEFAULT_APPLY_TIME.plus(soak)),
            fail_fast: draft.fail_fast.unwrap_or(usual.fail_fast),
            retries: draft.retries.unwrap_or(usual.retries),
            on_failure: draft.on_failure.unwrap_or(usual.on_failure),
            rollback: draft.rollback.unwrap_or(usual.rollback),
            supersede: draft.supersede.unwrap_or(usual.supersede),
        };
        match policy.contradiction() {
            None => Ok(policy),
            Some((field, reason)) => Err(PolicyError { field, reason }),
        }
    }

    fn contradiction(&self) -> Option<(&'static str, String)> {
        let shares = match self.failures {
            Some(Amount::Share(share)) => share.get().saturating_add(self.success.get()),
            Some(Amount::Count(_)) | None => 0,
        };
        if self.success == Percent::NONE {
            Some(("success", "a version that nobody must run cannot be good; use 1% or more".to_string()))
        } else if shares > 100 {
            let left = 100_u8.saturating_sub(self.success.get());
            Some(("failures", alloc::format!("success {} leaves at most {left}% to fail", self.success)))
        } else if self.success == Percent::ALL && self.failures.is_some_and(|failures| !failures.is_zero()) {
            let reason = "success 100% leaves nothing to fail; ask for less success, or leave failures out";
            Some(("failures", reason.to_string()))
        } else if self.soak > MAX_SPAN {
            Some(("soak", alloc::format!("{} is over a year", self.soak)))
        } else if self.deadline > MAX_SPAN {
            Some(("deadline", alloc::format!("{} is over a year", self.deadline)))
        } else if self.deadline <= self.soak {
            let (deadline, soak) = (self.deadline, self.soak);
            Some(("deadline", alloc::format!("{deadline} does not exceed the soak of {soak}")))
        } else if self.retries > MAX_RETRIES {
            Some(("retries", alloc::format!("{} is over {MAX_RETRIES}", self.retries)))
        } else if self.rollback.is_zero() {
            Some(("rollback", "a rollback cannot hold; use 1 or more".to_string()))
        } else {
            None
        }
    }

    const fn said_deadline(&self) -> Option<Span> {
        let default = DEFAULT_APPLY_TIME.plus(self.soak).as_millis();
        if self.deadline.as_millis() == default { None } else { Some(self.deadline) }
    }

    /// The draft that means exactly this policy: every default written out, but for a deadline that follows the soak.
    #[must_use]
    pub const fn to_draft(&self) -> Draft {
        Draft {
            batch: Some(self.batch),
            success: Some(self.success),
            failures: self.failures,
            unreachable: Some(self.unreachable),
            soak: Some(self.soak),
            // A deadline that was never said goes on following the soak.
            deadline: self.said_deadline(),
            fail_fast: Some(self.fail_fast),
            retries: Some(self.retries),
            on_failure: Some(self.on_failure),
            rollback: Some(self.rollback),
            supersede: Some(self.supersede),
        }
    }

    /// As in [`Draft::batch`].
    #[must_use]
    pub const fn batch(&self) -> Amount {
        self.batch
    }

    /// As in [`Draft::success`].
    #[must_use]
    pub const fn success(&self) -> Percent {
        self.success
    }

    /// As in [`Draft::failures`].
    #[must_use]
    pub const fn failures(&self) -> Option<Amount> {
        self.failures
    }

    /// As in [`Draft::unreachable`].
    #[must_use]
    pub const fn unreachable(&self) -> Amount {
        self.unreachable
    }

    /// As in [`Draft::soak`].
    #[must_use]
    pub const fn soak(&self) -> Span {
        self.soak
    }

    /// As in [`Draft::deadline`].
    #[must_use]
    pub const fn deadline(&self) -> Span {
        self.deadline
    }

    /// As in [`Draft::fail_fast`].
    #[must_use]
    pub const fn fail_fast(&self) -> bool {
        self.fail_fast
    }

    /// As in [`Draft::retries`].
    #[must_use]
    pub const fn retries(&self) -> u32 {
        self.retries
    }

    /// As in [`Draft::on_failure`].
    #[must_use]
    pub const fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    /// As in [`Draft::rollback`].
    #[must_use]
    pub const fn rollback(&self) -> Amount {
        self.rollback
    }

    /// As in [`Draft::supersede`].
    #[must_use]
    pub const fn supersede(&self) -> Supersede {
        self.supersede
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const fn percent(number: u8) -> Percent {
    match Percent::new(number) {
        Some(percent) => percent,
        None => Percent::ALL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(draft: Draft) -> String {
        Policy::new(draft).unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_are_conservative() {
        let policy = Policy::new(Draft::default()).unwrap();
        assert_eq!(policy.batch(), "5%".parse().unwrap());
        assert_eq!((policy.success(), policy.failures()), (Percent::ALL, None));
        assert_eq!((policy.soak(), policy.deadline()), (Span::from_secs(60), Span::from_secs(180)));
        assert_eq!((policy.fail_fast(), policy.retries()), (true, 0));
        assert_eq!(Policy::new(policy.to_draft()).unwrap(), policy);
        assert_eq!(policy, Policy::DEFAULT);
    }

    #[test]
    fn the_default_deadline_grows_with_the_soak() {
        let draft = Draft { soak: Some(Span::from_secs(600)), ..Draft::default() };
        assert_eq!(Policy::new(draft).unwrap().deadline(), Span::from_secs(720));
    }

    #[test]
    fn a_contradiction_is_refused_with_its_field() {
        let soak = Some(Span::from_secs(30));
        let cases = [
            (
                Draft { soak, deadline: soak, ..Draft::default() },
                "deadline: 30s does not exceed the soak of 30s",
            ),
            (Draft { retries: Some(101), ..Draft::default() }, "retries: 101 is over 100"),
            (
                Draft { success: "90%".parse().ok(), failures: "11%".parse().ok(), ..Draft::default() },
                "failures: success 90% leaves at most 10% to fail",
            ),
            (
                Draft { success: Some(Percent::NONE), ..Draft::default() },
                "success: a version that nobody must run cannot be good; use 1% or more",
            ),
            (
                Draft { rollback: Some(Amount::Count(0)), ..Draft::default() },
                "rollback: a rollback cannot hold; use 1 or more",
            ),
        ];
        for (draft, expected) in cases {
            assert_eq!(refused(draft), alloc::format!("use the policy: {expected}"));
        }
    }

    #[test]
    fn a_batch_of_zero_holds_and_a_soak_of_zero_is_allowed() {
        let draft = Draft { batch: Some(Amount::Count(0)), soak: Some(Span::ZERO), ..Draft::default() };
        assert!(Policy::new(draft).is_ok());
    }
}
