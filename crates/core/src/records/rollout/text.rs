//! One-line texts of a rollout's states.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Display, Formatter};

use super::HeldTarget;
use super::frozen_targets::FrozenTargets;
use super::{Direction, RolloutPause, RolloutState, RolloutWait};
use crate::records::annotation::{attribution, attribution_in_brackets};
use crate::words::name::{EntityName, FreezeName};
use crate::words::plural::Plural;
use crate::words::time::Timestamp;

impl RolloutState {
    /// The state alone, without its details.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::InProgress => "in progress",
            Self::Waiting(_) => "waiting",
            Self::Paused(_) => "paused",
            Self::RollingBack => "rolling back",
            Self::Succeeded => "succeeded",
            Self::PartiallySucceeded { .. } => "partially succeeded",
            Self::Failed { .. } => "failed",
            Self::RolledBack => "rolled back",
            Self::RollbackFailed { .. } => "rollback failed",
            Self::Aborted { .. } => "aborted",
            Self::Superseded { .. } => "superseded",
        }
    }
}

impl RolloutState {
    /// The freeze that the rollout waits for, if any.
    #[must_use]
    pub const fn freeze(&self) -> Option<&FreezeName> {
        if let Self::Waiting(
            RolloutWait::Frozen { freeze, .. }
            | RolloutWait::Shut { frozen: Some(FrozenTargets { freeze, .. }), .. },
        ) = self
        {
            Some(freeze)
        } else {
            None
        }
    }
}

impl RolloutState {
    /// The command by which a person has it continue; `None` if it is not theirs to continue it.
    #[must_use]
    pub fn continued_by(&self, entity: &EntityName) -> Option<String> {
        if let Self::Waiting(RolloutWait::Approval { stage }) = self {
            return Some(format!("bellwether rollout approve {entity} --stage {stage}"));
        }
        let Self::Paused(pause) = self else { return None };
        // A stop ends with its freeze.
        let is_stopped = matches!(pause, RolloutPause::Stopped { .. });
        let resume =
            || format!("bellwether rollout resume {entity}   (or: bellwether rollout abort {entity})");
        (!is_stopped).then(resume)
    }

    /// The details without the state: why a rollout waits or is paused.
    #[must_use]
    pub fn details(&self) -> Option<String> {
        match self {
            Self::Waiting(wait) => Some(wait.to_string()),
            Self::Paused(pause) => Some(pause.to_string()),
            Self::InProgress
            | Self::RollingBack
            | Self::Succeeded
            | Self::PartiallySucceeded { .. }
            | Self::Failed { .. }
            | Self::RolledBack
            | Self::RollbackFailed { .. }
            | Self::Aborted { .. }
            | Self::Superseded { .. } => None,
        }
    }
}

impl Display for RolloutState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let label = self.label();
        match self {
            Self::InProgress | Self::RollingBack | Self::Succeeded | Self::RolledBack => f.write_str(label),
            Self::Waiting(wait) => write!(f, "{label}: {wait}"),
            Self::Paused(pause) => write!(f, "{label} {pause}"),
            Self::PartiallySucceeded { failed } => write!(f, "{label}: {failed} failed"),
            Self::Failed { failed } => write!(f, "{label} on {}", Plural(*failed, "target")),
            Self::RollbackFailed { failed } => write!(f, "{label} on {}", Plural(*failed, "target")),
            Self::Aborted { by, reason } => write!(f, "{label} {}", attribution(by, reason)),
            Self::Superseded { by } => write!(f, "{label} by rollout {by}"),
        }
    }
}

impl Display for RolloutWait {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTargets => f.write_str("no target matches"),
            Self::BatchIsZero => f.write_str("batch is 0, so no target starts"),
            Self::OnlyHeld { held: None } => f.write_str("the remaining targets are held"),
            Self::OnlyHeld { held: Some(HeldTarget { target, reason, others: 0 }) } => {
                write!(f, "{target} is held: {reason}")
            }
            Self::OnlyHeld { held: Some(HeldTarget { target, reason, others }) } => {
                write!(f, "{target} and {others} more are held: {reason}")
            }
            Self::OnlyQuiet => f.write_str("the remaining targets stopped reporting"),
            Self::OnlyUnreachable => f.write_str("no target is reachable"),
            Self::NoDomain { key } => write!(f, "no target has the label {key}, which policy.domain names"),
            Self::Frozen { freeze, by, reason, until } => {
                write!(f, "freeze {freeze} is in force")?;
                if let Some(until) = until {
                    write!(f, " until {}", CivilTime(*until))?;
                }
                write!(f, ", set {}", attribution(by, reason))
            }
            Self::Window { opens } => write!(f, "the next window opens at {}", CivilTime(*opens)),
            Self::Shut { frozen: Some(frozen), .. } => frozen.fmt(f),
            Self::Shut { frozen: None, .. } => f.write_str("the remaining targets are outside their windows"),
            Self::Approval { stage } => write!(f, "stage {stage} needs approval"),
            Self::Stores { reason } => f.write_str(reason),
            Self::Need { need, functional } => write!(
                f,
                "{} of {} needed, {functional} found",
                Plural(u64::from(need.count), "functional instance"),
                need.service
            ),
            Self::Unavailable { domain: None } => f.write_str("the limit of unavailable targets is reached"),
            Self::Unavailable { domain: Some(domain) } => {
                write!(f, "the limit of unavailable targets in {domain} is reached")
            }
            Self::Hook { asked, reason } if reason.is_empty() => {
                write!(f, "the {asked} hook has not answered")
            }
            Self::Hook { asked, reason } => write!(f, "{asked} hook: {reason}"),
        }
    }
}

impl Display for RolloutPause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person { by, reason } => f.write_str(&attribution(by, reason)),
            Self::Stopped { freeze, by, reason } => {
                write!(f, "by {freeze} {}", attribution_in_brackets(by, reason))
            }
            Self::MonitorSilent { reason } => {
                write!(f, "automatically: the monitor does not answer: {reason}")
            }
            Self::Bad { reason } => write!(f, "automatically: {reason}"),
            Self::TooManyFailed { failed, tolerated } => {
                write!(f, "automatically: {failed} failed, {tolerated} tolerated")
            }
            Self::NothingToRollBackTo { failed, tolerated } => write!(
                f,
                "automatically: {failed} failed, {tolerated} tolerated, and no last known good version to roll back to"
            ),
            Self::OnlyFailingBefore { failing } => write!(
                f,
                "automatically: {failing} failed, but every one of them was failing before the rollout, so nothing shows whether the version is good"
            ),
            Self::TooManyUnreachable { unreachable, refusing, tolerated } => {
                f.write_str("automatically: ")?;
                let silent = unreachable.saturating_sub(*refusing);
                match (silent, refusing) {
                    (silent, 0) => write!(f, "{silent} unreachable")?,
                    (0, refusing) => write!(f, "{refusing} not accepting orders")?,
                    (silent, refusing) => {
                        write!(f, "{silent} unreachable and {refusing} not accepting orders")?;
                    }
                }
                write!(f, ", {tolerated} tolerated")
            }
        }
    }
}

impl Display for Direction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forward => f.write_str("forward"),
            Self::RollbackFromBad => f.write_str("back: the version is bad"),
            Self::RollbackByUndo { by, reason } => {
                f.write_str("back: undone ")?;
                f.write_str(&attribution(by, reason))
            }
        }
    }
}

/// A point in time for people: date and time in UTC.
struct CivilTime(Timestamp);

impl Display for CivilTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(millis) {
            Ok(time) => write!(f, "{}", time.strftime("%Y-%m-%d %H:%M:%S UTC")),
            Err(_) => f.write_str("the end of time"),
        }
    }
}
