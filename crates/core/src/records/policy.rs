//! The policy of an entity: how carefully its targets change. Owns the fields and their defaults; decides nothing.
//! Written by people, as part of the entity.

pub mod choice;
mod contradiction;
mod fields;
pub mod hook;
pub mod ordering;

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Deref;

pub use choice::{OnFailure, Supersede};
pub use fields::{MAX_LISTED, MAX_RETRIES, MAX_SPAN, PolicyFields};
use hook::{Hooks, Monitor};
use ordering::{Domain, PolicyStage, ServiceNeed, TargetOrder};

use crate::words::percent::{Amount, Percent};
use crate::words::time::Span;
use crate::words::window::Window;

/// Most targets in flight at once, unless said: a mistake costs a twentieth of the fleet.
const DEFAULT_BATCH: Amount = Amount::Share(percent(5));

/// Share of targets that may be silent before a rollout pauses, unless said.
const DEFAULT_UNREACHABLE: Amount = Amount::Share(percent(10));

/// Uninterrupted healthy time that counts as success, unless said: most crashes at start show within it.
const DEFAULT_SOAK: Span = Span::from_secs(60);

/// Time for the change itself, before the soak, unless a deadline is said.
const DEFAULT_APPLY_TIME: Span = Span::from_secs(120);

/// How long failures of a good version are still told as belonging to its rollout, unless said.
const DEFAULT_SETTLE: Span = Span::from_secs(900);

/// How carefully an entity's targets change: [`PolicyFields`] that do not contradict each other. Made by [`Policy::new`],
/// which fills in the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy(PolicyFields);

/// A policy as a person writes it: what is `None` takes its default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyDraft {
    /// Most targets in flight at once, a count or a share rounded up; zero holds. Default 5 %.
    pub batch: Option<Amount>,
    /// How far it goes before the next stage begins, each further than the one before, the last 100 %. Default: none,
    /// which is one stage of everything.
    pub stages: Option<Vec<PolicyStage>>,
    /// Most targets that may be in flight, broken or not heard from together before another is touched, a count or a
    /// share rounded up; with `domain`, of each domain too. Default: no limit.
    pub max_unavailable: Option<Amount>,
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
    /// Within this the rollout must gain a target, else its version is bad; waiting for a need, a window, a freeze or a
    /// person does not count. Above `soak`, up to a year. Default: no limit.
    pub progress: Option<Span>,
    /// Whether an error report or a failed check fails a target at once. Default yes.
    pub fail_fast: Option<bool>,
    /// Apply attempts after the first before a target has failed. 0 to 100, default 0.
    pub retries: Option<u32>,
    /// The label whose values change one after the other. Default: none.
    pub domain: Option<Domain>,
    /// In which order targets take their turn, within a domain. Default: by name.
    pub order: Option<TargetOrder>,
    /// When turns are handed out: while one of those for every target is open, and for targets that have some of their
    /// own, one of these too. Default: always.
    pub windows: Option<Vec<Window>>,
    /// Services that must be functional before another turn is handed out. Default: none.
    pub needs: Option<Vec<ServiceNeed>>,
    /// What judges the rollout as a whole, beside its targets. Default: nothing.
    pub monitor: Option<Monitor>,
    /// Controllers that are asked. Default: none.
    pub hooks: Option<Hooks>,
    /// What to do when the version is bad. Default: roll back.
    pub on_failure: Option<OnFailure>,
    /// Most targets in flight at once while rolling back; never zero. Default 100 %.
    pub rollback: Option<Amount>,
    /// What a new version does to a rollout that is under way. Default: replace it.
    pub supersede: Option<Supersede>,
    /// How long after its success a target's failure is still told as the version's. 0 s to a year, default 15 min.
    pub settle: Option<Span>,
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
    pub const DEFAULT: Self = Self(PolicyFields {
        batch: DEFAULT_BATCH,
        stages: Vec::new(),
        max_unavailable: None,
        success: Percent::ALL,
        failures: None,
        unreachable: DEFAULT_UNREACHABLE,
        soak: DEFAULT_SOAK,
        deadline: DEFAULT_APPLY_TIME.plus(DEFAULT_SOAK),
        progress: None,
        fail_fast: true,
        retries: 0,
        domain: None,
        order: TargetOrder::Name,
        windows: Vec::new(),
        needs: Vec::new(),
        monitor: None,
        hooks: Hooks::NONE,
        on_failure: OnFailure::Rollback,
        rollback: Amount::Share(Percent::ALL),
        supersede: Supersede::Replace,
        settle: DEFAULT_SETTLE,
    });

    /// The policy a draft means.
    ///
    /// # Errors
    /// [`PolicyError`] naming the first field that is out of range or contradicts another.
    pub fn new(draft: PolicyDraft) -> Result<Self, PolicyError> {
        let Self(usual) = Self::DEFAULT;
        let soak = draft.soak.unwrap_or(usual.soak);
        let values = PolicyFields {
            batch: draft.batch.unwrap_or(usual.batch),
            stages: draft.stages.unwrap_or_default(),
            max_unavailable: draft.max_unavailable,
            success: draft.success.unwrap_or(usual.success),
            failures: draft.failures,
            unreachable: draft.unreachable.unwrap_or(usual.unreachable),
            soak,
            deadline: draft.deadline.unwrap_or(DEFAULT_APPLY_TIME.plus(soak)),
            progress: draft.progress,
            fail_fast: draft.fail_fast.unwrap_or(usual.fail_fast),
            retries: draft.retries.unwrap_or(usual.retries),
            domain: draft.domain,
            order: draft.order.unwrap_or(usual.order),
            windows: draft.windows.unwrap_or_default(),
            needs: draft.needs.unwrap_or_default(),
            monitor: draft.monitor,
            hooks: draft.hooks.unwrap_or(usual.hooks),
            on_failure: draft.on_failure.unwrap_or(usual.on_failure),
            rollback: draft.rollback.unwrap_or(usual.rollback),
            supersede: draft.supersede.unwrap_or(usual.supersede),
            settle: draft.settle.unwrap_or(usual.settle),
        };
        match contradiction::of(&values) {
            None => Ok(Self(values)),
            Some((field, reason)) => Err(PolicyError { field, reason }),
        }
    }

    /// The draft that means exactly this policy: every default written out, but for a deadline that follows the soak.
    #[must_use]
    pub fn to_draft(&self) -> PolicyDraft {
        let values = self.0.clone();
        // A deadline that was never said goes on following the soak.
        let said_deadline =
            (values.deadline != DEFAULT_APPLY_TIME.plus(values.soak)).then_some(values.deadline);
        PolicyDraft {
            batch: Some(values.batch),
            stages: some_listed(values.stages),
            max_unavailable: values.max_unavailable,
            success: Some(values.success),
            failures: values.failures,
            unreachable: Some(values.unreachable),
            soak: Some(values.soak),
            deadline: said_deadline,
            progress: values.progress,
            fail_fast: Some(values.fail_fast),
            retries: Some(values.retries),
            domain: values.domain,
            order: Some(values.order),
            windows: some_listed(values.windows),
            needs: some_listed(values.needs),
            monitor: values.monitor,
            hooks: (values.hooks != Hooks::NONE).then_some(values.hooks),
            on_failure: Some(values.on_failure),
            rollback: Some(values.rollback),
            supersede: Some(values.supersede),
            settle: Some(values.settle),
        }
    }
}

impl Deref for Policy {
    type Target = PolicyFields;
    fn deref(&self) -> &PolicyFields {
        &self.0
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

fn some_listed<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

const fn percent(number: u8) -> Percent {
    match Percent::new(number) {
        Some(percent) => percent,
        None => Percent::ALL,
    }
}

#[cfg(test)]
mod tests;
