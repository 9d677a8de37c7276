//! One-line texts of a rollout's states.

use core::fmt::{self, Display, Formatter};

use super::{Direction, RolloutPause, RolloutState, RolloutWait};
use crate::records::annotation::attribution;
use crate::words::time::Timestamp;

impl Display for RolloutState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::InProgress => f.write_str("in progress"),
            Self::Waiting(wait) => write!(f, "waiting: {wait}"),
            Self::Paused(pause) => write!(f, "paused {pause}"),
            Self::RollingBack => f.write_str("rolling back"),
            Self::Succeeded => f.write_str("succeeded"),
            Self::PartiallySucceeded { failed } => write!(f, "partially succeeded: {failed} failed"),
            Self::RolledBack => f.write_str("rolled back"),
            Self::RollbackFailed { failed } => write!(f, "rollback failed: {failed} failed on the way back"),
            Self::Aborted { by, reason } => {
                f.write_str("aborted ")?;
                f.write_str(&attribution(by, reason))
            }
            Self::Superseded { by } => write!(f, "superseded by rollout {by}"),
        }
    }
}

impl Display for RolloutWait {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTargets => f.write_str("no targets match"),
            Self::BatchIsZero => f.write_str("the policy's batch is 0, which holds"),
            Self::OnlyHeld => f.write_str("the targets that are left are held by an operator"),
            Self::OnlyQuiet => f.write_str("the targets that are left have just become quiet"),
            Self::OnlyUnreachable => f.write_str("no target can be reached"),
            Self::NoDomain { key } => write!(f, "no target carries the label {key}, the policy's domain"),
            Self::Frozen { freeze, by, reason, until } => {
                write!(f, "frozen by {freeze}")?;
                match until {
                    Some(until) => write!(f, " until {}, ", CivilTime(*until))?,
                    None => f.write_str(", ")?,
                }
                f.write_str(&attribution(by, reason))
            }
            Self::Window { opens } => write!(f, "no window is open before {}", CivilTime(*opens)),
            Self::Shut { .. } => f.write_str("the targets that are left are frozen or outside their window"),
            Self::Approval { stage } => write!(f, "stage {stage} needs a person's approval"),
            Self::Need { need } => write!(f, "{need} has to be functional"),
            Self::Unavailable { domain: None } => f.write_str("as many are unavailable as may be"),
            Self::Unavailable { domain: Some(domain) } => {
                write!(f, "as many are unavailable in {domain} as may be")
            }
            Self::Hook { asked, reason } if reason.is_empty() => {
                write!(f, "the {asked} hook has not answered")
            }
            Self::Hook { asked, reason } => write!(f, "the {asked} hook: {reason}"),
        }
    }
}

impl Display for RolloutPause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person { by, reason } => f.write_str(&attribution(by, reason)),
            Self::Stopped { freeze, by, reason } => {
                write!(f, "by the stop {freeze}, ")?;
                f.write_str(&attribution(by, reason))
            }
            Self::MonitorSilent { reason } => {
                write!(f, "by the engine: the monitor does not answer: {reason}")
            }
            Self::Bad { reason } => write!(f, "by the engine: {reason}"),
            Self::TooManyFailed { failed, tolerated } => {
                write!(f, "by the engine: {failed} failed, {tolerated} tolerated")
            }
            Self::NothingToRollBackTo { failed, tolerated } => write!(
                f,
                "by the engine: {failed} failed, {tolerated} tolerated, and no last known good to roll back to"
            ),
            Self::TooManyUnreachable { unreachable, tolerated } => {
                write!(f, "by the engine: {unreachable} not heard from, {tolerated} tolerated")
            }
        }
    }
}

impl Display for Direction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forward => f.write_str("forward"),
            Self::RollbackFromBad => f.write_str("back, the version is bad"),
            Self::RollbackByUndo { by, reason } => {
                f.write_str("back, undone ")?;
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
            Ok(time) => write!(f, "{time}"),
            Err(_) => f.write_str("the end of time"),
        }
    }
}
