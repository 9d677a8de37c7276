//! The next step for one entity on one node. Decides; never acts.

use super::memory::{ApplyProgress, EntityMemory};
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// The next step of an agent for one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyStep {
    /// Run the static part.
    Static(Version),
    /// Run the dynamic part.
    Dynamic(Version),
    /// Run the validation and wait for the checks' verdict.
    Validate(Version),
    /// Run the validation of the running version again; it changes nothing.
    Revalidate(Version),
    /// Run the commands of the dynamic part again, because their inputs changed.
    Refresh(Version),
    /// Do nothing, for this reason; decide again when something changes or at this time.
    Rest(IdleReason, Option<Timestamp>),
}

/// Why nothing is done. Each text follows "waits: ".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdleReason {
    /// The desired version is running.
    #[error("up to date")]
    UpToDate,
    /// No version is assigned.
    #[error("no version is assigned")]
    NoAssignment,
    /// A person paused the node.
    #[error("the node is paused")]
    Paused,
    /// The last attempt failed; the next one follows after the back-off.
    #[error("the last attempt failed; retrying later")]
    BackingOff,
    /// The control plane has not recorded this agent's ledger yet, without which no action begins.
    #[error("the control plane has not recorded this agent's ledger yet")]
    LedgerNotRecorded,
    /// An action ran, failed, and is not run again.
    #[error("it ran once and failed; it is not run again")]
    AttemptsExhausted,
}

/// The present conditions of an entity on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalObservation {
    /// Whether a person paused the node.
    pub paused: bool,
    /// Whether a validated version's checks fail (after hysteresis), its process ended, or its last
    /// validation failed.
    pub unhealthy: bool,
    /// Time of the next periodic validation; `None` for never.
    pub validate_at: Option<Timestamp>,
    /// Time to run the dynamic part again because its inputs changed; `None` if they did not.
    pub follow_at: Option<Timestamp>,
}

/// The next step for one entity.
///
/// A version counts as running only once it passed validation, so a version that was touched and not
/// validated is always worked on, whatever `running` is. A validated version that is unhealthy is configured
/// again, with back-off. The validation runs periodically, also while the node is paused.
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
