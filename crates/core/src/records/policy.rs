//! The policy of an entity: limits and pace of its rollouts. Owns the fields and their defaults; decides
//! nothing. Written by operations, as part of the entity.

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

use crate::words::name::ProbeName;
use crate::words::percent::{Amount, Percent};
use crate::words::time::Span;
use crate::words::window::Window;

/// Default of `batch`: a mistake costs a twentieth of the fleet.
const DEFAULT_BATCH: Amount = Amount::Share(percent(5));

/// Default of `unreachable`, the share of targets that may be silent before a rollout pauses.
const DEFAULT_UNREACHABLE: Amount = Amount::Share(percent(10));

/// Default of `soak`: most crashes at start happen within it.
const DEFAULT_SOAK: Span = Span::from_secs(60);

/// Default time for the change itself, before the soak; the default deadline is both together.
const DEFAULT_APPLY_TIME: Span = Span::from_secs(120);

/// Default of `settle`.
const DEFAULT_SETTLE: Span = Span::from_secs(900);

/// Limits and pace of an entity's rollouts: [`PolicyFields`] that do not contradict each other. Made by
/// [`Policy::new`], which fills in the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy(PolicyFields);

/// A policy as a person writes it: what is `None` takes its default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyDraft {
    /// Most targets in flight at once, a count or a share rounded up; with zero no target starts. Default 5
    /// %.
    pub batch: Option<Amount>,
    /// The upper bound of each stage, each larger than the one before, the last 100 %. Default: none, which
    /// means a single stage with every target.
    pub stages: Option<Vec<PolicyStage>>,
    /// Most targets that may be in flight, unhealthy or silent together before another one starts, a count or
    /// a share rounded up; with `domain`, also within each domain. Default: no limit.
    pub max_unavailable: Option<Amount>,
    /// Share of targets that must succeed for the version to become last known good. 1 to 100 %, default 100.
    pub success: Option<Percent>,
    /// Failures tolerated, a count or a share rounded down. Default: the rest of the targets above `success`.
    pub failures: Option<Amount>,
    /// Silent targets tolerated, a count or a share rounded down. Default 10 %.
    pub unreachable: Option<Amount>,
    /// Uninterrupted healthy time on the version that counts as success. 0 s to a year, default 60 s.
    pub soak: Option<Span>,
    /// Time from assignment to success; a target that exceeds it has failed. Above `soak`, up to a year;
    /// default 120 s plus the soak.
    pub deadline: Option<Span>,
    /// Time within which one more target must succeed, else the version is bad; waiting for a need, a window,
    /// a freeze or a person does not count. Above `soak`, up to a year. Default: no limit.
    pub progress: Option<Span>,
    /// Whether an error report or a failing check fails a target at once, without waiting for the deadline.
    /// Default: true.
    pub fail_fast: Option<bool>,
    /// Apply attempts after the first before a target fails. 0 to 100, default 0.
    pub retries: Option<u32>,
    /// The label whose values are updated one after the other. Default: none.
    pub domain: Option<Domain>,
    /// Order in which targets are updated within a domain. Default: by name.
    pub order: Option<TargetOrder>,
    /// The probe of the data stores on the targets, for `order` and `quorum`. Default: none.
    pub store: Option<ProbeName>,
    /// Whether no target starts without which its cluster of data stores would have no quorum. Default: false.
    pub quorum: Option<bool>,
    /// When targets may be updated: while a window for every target is open, and for targets that have
    /// windows of their own, while one of these is open too. Default: always.
    pub windows: Option<Vec<Window>>,
    /// Services that must be functional before another target starts. Default: none.
    pub needs: Option<Vec<ServiceNeed>>,
    /// The monitor that judges the rollout as a whole, besides its targets. Default: none.
    pub monitor: Option<Monitor>,
    /// The controllers to call. Default: none.
    pub hooks: Option<Hooks>,
    /// What happens when the version is bad. Default: roll back.
    pub on_failure: Option<OnFailure>,
    /// Most targets in flight at once during a rollback; never zero. Default 100 %.
    pub rollback: Option<Amount>,
    /// What a newly requested version does to a rollout in progress. Default: replace it.
    pub supersede: Option<Supersede>,
    /// How long after its success a target's failure is still attributed to the version. 0 s to a year,
    /// default 15 min.
    pub settle: Option<Span>,
}

/// Why a draft is not a valid policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy.{field}: {reason}")]
pub struct PolicyError {
    /// The field to change.
    pub field: &'static str,
    /// What is wrong with the field, with the values.
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
        store: None,
        quorum: false,
        windows: Vec::new(),
        needs: Vec::new(),
        monitor: None,
        hooks: Hooks::NONE,
        on_failure: OnFailure::Rollback,
        rollback: Amount::Share(Percent::ALL),
        supersede: Supersede::Replace,
        settle: DEFAULT_SETTLE,
    });

    /// Whether it has hooks or a monitor to ask during a rollout.
    #[must_use]
    pub fn asks_hooks(&self) -> bool {
        self.monitor.is_some() || !self.hooks.is_empty()
    }

    /// The policy that a draft describes.
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
            store: draft.store,
            quorum: draft.quorum.unwrap_or(usual.quorum),
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

    /// The draft of exactly this policy: every default written out, except for a deadline that follows from
    /// the soak.
    #[must_use]
    pub fn to_draft(&self) -> PolicyDraft {
        let values = self.0.clone();
        // A deadline that was not set goes on following the soak.
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
            store: values.store,
            quorum: values.quorum.then_some(true),
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
