//! How the states of a rollout read, in one line each.

use core::fmt::{self, Display, Formatter};

use super::{Heading, Pause, State, Wait};

impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Waiting(wait) => write!(f, "waiting: {wait}"),
            Self::Paused(pause) => write!(f, "paused {pause}"),
            Self::RollingBack => f.write_str("rolling back"),
            Self::Succeeded => f.write_str("succeeded"),
            Self::SucceededPartly { failed } => write!(f, "succeeded partly: {failed} failed"),
            Self::RolledBack => f.write_str("rolled back"),
            Self::RollbackFailed { failed } => write!(f, "rollback failed: {failed} failed on the way back"),
            Self::Aborted { by, why } => {
                f.write_str("aborted ")?;
                said(f, by.as_str(), why)
            }
            Self::Superseded { by } => write!(f, "superseded by rollout {by}"),
        }
    }
}

impl Display for Wait {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTargets => "no targets match",
            Self::BatchIsZero => "the policy's batch is 0, which holds",
            Self::OnlyHeld => "the targets that are left are held by an operator",
            Self::OnlyQuiet => "the targets that are left have just become quiet",
            Self::OnlyUnreachable => "no target can be reached",
        })
    }
}

impl Display for Pause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person { by, why } => said(f, by.as_str(), why),
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

impl Display for Heading {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forward => f.write_str("forward"),
            Self::BackFromBad => f.write_str("back, the version is bad"),
            Self::BackByUndo { by, why } => {
                f.write_str("back, undone ")?;
                said(f, by.as_str(), why)
            }
        }
    }
}

/// Writes who said something and, if they did, why.
fn said(f: &mut Formatter<'_>, by: &str, why: &str) -> fmt::Result {
    if why.is_empty() { write!(f, "by {by}") } else { write!(f, "by {by}: {why}") }
}
