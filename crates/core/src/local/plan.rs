//! The next step for one entity on one node. Decides; never does.

use super::memory::{ApplyProgress, EntityMemory};
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// What an agent does next about one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyStep {
    /// Run the static part.
    Static(Version),
    /// Run the dynamic part.
    Dynamic(Version),
    /// Validate: run the validation and wait for the checks' verdict.
    Validate(Version),
    /// Run the validation of what runs once more; nothing is changed by it.
    Revalidate(Version),
    /// Run the commands of the dynamic part once more: what they are made from changed.
    Refresh(Version),
    /// Nothing, for this reason; look again when something changes or at the time given.
    Rest(IdleReason, Option<Timestamp>),
}

/// Why nothing is done. Each fits after "waits: ".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdleReason {
    /// It is what it should be.
    #[error("it is what it should be")]
    UpToDate,
    /// The control plane has said nothing about it.
    #[error("no version was ever assigned")]
    NoAssignment,
    /// A person paused the node.
    #[error("the node is paused")]
    Paused,
    /// The last attempt did not go well; the next one comes later.
    #[error("the last attempt did not go well; trying again")]
    BackingOff,
    /// An action ran, did not go well, and is not run again.
    #[error("it ran once and did not go well; it is not run again")]
    AttemptsExhausted,
}

/// What is true around the entity right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalObservation {
    /// A person paused the node.
    pub paused: bool,
    /// A validated version's checks fail (past hysteresis), its process is gone, or its last validation failed.
    pub unhealthy: bool,
    /// When what was validated is to be validated again; `None` for never.
    pub validate_at: Option<Timestamp>,
    /// When the dynamic part is to run again because what it follows changed; `None` while it did not.
    pub follow_at: Option<Timestamp>,
}

/// The next step for one entity.
///
/// A version counts as running only once validation passed on it, so a version that was touched and not validated is
/// always worked on, whatever `running` says. A validated version that is unwell is configured again, with back-off. What
/// was validated is validated again from time to time, also while the node is paused.
#[must_use]
pub fn next(memory: &EntityMemory, seen: LocalObservation, now: Timestamp) -> ApplyStep {
    let Some(wanted) = &memory.wanted else { return ApplyStep::Rest(IdleReason::NoAssignment, None) };
    let version = &wanted.version;
    let same = memory.touched.as_ref() == Some(version);
    let right = same && memory.progress == ApplyProgress::Validated;
    let rest = if right && !seen.unhealthy {
        Some(IdleReason::UpToDate)
    } else {
        seen.paused.then_some(IdleReason::Paused)
    };
    if let Some(rest) = rest {
        let follow = memory.settled().zip(seen.follow_at).filter(|_| rest == IdleReason::UpToDate);
        if let Some((version, _)) = follow.filter(|(_, at)| *at <= now) {
            return ApplyStep::Refresh(version.clone());
        }
        let settled = memory.settled().zip(seen.validate_at);
        return match settled {
            Some((version, at)) if at <= now => ApplyStep::Revalidate(version.clone()),
            settled => {
                let dues = [settled.map(|(_, at)| at), follow.map(|(_, at)| at)];
                ApplyStep::Rest(rest, dues.into_iter().flatten().min())
            }
        };
    }
    match memory.retry_at {
        Some(at) if at > now => return ApplyStep::Rest(IdleReason::BackingOff, Some(at)),
        Some(_) | None => {}
    }
    if !same {
        return ApplyStep::Static(version.clone());
    }
    match memory.progress {
        ApplyProgress::Begun | ApplyProgress::Validated => ApplyStep::Static(version.clone()),
        ApplyProgress::Static => ApplyStep::Dynamic(version.clone()),
        ApplyProgress::Dynamic => ApplyStep::Validate(version.clone()),
    }
}

#[cfg(test)]
mod tests;
