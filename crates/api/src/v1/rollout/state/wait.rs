//! What a rollout waits for, and why it is paused, as it travels and is kept.

use bellwether_core::records::hook_answers::HookPurpose;
use bellwether_core::records::rollout::{RolloutPause, RolloutWait};
use bellwether_core::words::time::Timestamp;

use super::RolloutState;
use crate::shape::{ShapeError, read};

const PLAIN: [(RolloutWait, &str); 5] = [
    (RolloutWait::NoTargets, "no_targets"),
    (RolloutWait::BatchIsZero, "batch_is_zero"),
    (RolloutWait::OnlyHeld, "only_held"),
    (RolloutWait::OnlyQuiet, "only_quiet"),
    (RolloutWait::OnlyUnreachable, "only_unreachable"),
];

/// The shape of a wait.
pub(super) fn waiting(wait: &RolloutWait) -> RolloutState {
    match wait {
        RolloutWait::NoTargets
        | RolloutWait::BatchIsZero
        | RolloutWait::OnlyHeld
        | RolloutWait::OnlyQuiet
        | RolloutWait::OnlyUnreachable => {
            let word = PLAIN.iter().find(|(known, _)| known == wait).map_or("no_targets", |(_, word)| word);
            RolloutState::Waiting { reason: word.to_owned() }
        }
        RolloutWait::NoDomain { key } => RolloutState::WaitingNoDomain { key: key.to_string() },
        RolloutWait::Frozen { freeze, by, reason, until } => RolloutState::WaitingFrozen {
            freeze: freeze.to_string(),
            by: by.to_string(),
            reason: reason.clone(),
            until_ms: until.map(Timestamp::as_millis),
        },
        RolloutWait::Window { opens } => RolloutState::WaitingWindow { opens_ms: opens.as_millis() },
        RolloutWait::Shut { until } => {
            RolloutState::WaitingShut { until_ms: until.map(Timestamp::as_millis) }
        }
        RolloutWait::Approval { stage } => RolloutState::WaitingApproval { stage: *stage },
        RolloutWait::Need { need } => RolloutState::WaitingNeed { need: need.to_string() },
        RolloutWait::Unavailable { domain } => {
            RolloutState::WaitingUnavailable { domain: domain.as_ref().map(ToString::to_string) }
        }
        RolloutWait::Hook { asked, reason } => {
            RolloutState::WaitingHook { hook: asked.to_string(), reason: reason.clone() }
        }
    }
}

/// The wait that a shape says.
#[expect(clippy::wildcard_enum_match_arm, reason = "asked only for waits; any other is an error")]
pub(super) fn wait(from: RolloutState) -> Result<RolloutWait, ShapeError> {
    Ok(match from {
        RolloutState::WaitingNoDomain { key } => RolloutWait::NoDomain { key: key.into() },
        RolloutState::WaitingFrozen { freeze, by, reason, until_ms } => RolloutWait::Frozen {
            freeze: read("state.freeze", &freeze)?,
            by: read("state.by", &by)?,
            reason,
            until: until_ms.map(Timestamp::from_millis),
        },
        RolloutState::WaitingWindow { opens_ms } => {
            RolloutWait::Window { opens: Timestamp::from_millis(opens_ms) }
        }
        RolloutState::WaitingShut { until_ms } => {
            RolloutWait::Shut { until: until_ms.map(Timestamp::from_millis) }
        }
        RolloutState::WaitingApproval { stage } => RolloutWait::Approval { stage },
        RolloutState::WaitingNeed { need } => RolloutWait::Need { need: read("state.need", &need)? },
        RolloutState::WaitingUnavailable { domain } => {
            RolloutWait::Unavailable { domain: domain.map(Into::into) }
        }
        RolloutState::WaitingHook { hook, reason } => {
            RolloutWait::Hook { asked: asked("state.hook", &hook)?, reason }
        }
        RolloutState::Waiting { reason } => {
            let found = PLAIN.iter().find(|(_, word)| *word == reason).map(|(wait, _)| wait.clone());
            found.ok_or_else(|| ShapeError::at("state.reason", format!("{reason:?} is unknown")))?
        }
        _ => return Err(ShapeError::at("state", "it is no wait")),
    })
}

/// Reads who is asked.
fn asked(place: &str, text: &str) -> Result<HookPurpose, ShapeError> {
    let found = HookPurpose::ALL.into_iter().find(|asked| asked.as_str() == text);
    found.ok_or_else(|| ShapeError::at(place, format!("{text:?} is no hook")))
}

/// The shape of a pause.
pub(super) fn paused(pause: &RolloutPause) -> RolloutState {
    match pause {
        RolloutPause::Person { by, reason } => {
            RolloutState::PausedByPerson { by: by.to_string(), reason: reason.clone() }
        }
        RolloutPause::Stopped { freeze, by, reason } => RolloutState::PausedStopped {
            freeze: freeze.to_string(),
            by: by.to_string(),
            reason: reason.clone(),
        },
        RolloutPause::MonitorSilent { reason } => {
            RolloutState::PausedMonitorSilent { reason: reason.clone() }
        }
        RolloutPause::Bad { reason } => RolloutState::PausedBad { reason: reason.clone() },
        RolloutPause::TooManyFailed { failed, tolerated } => {
            RolloutState::PausedTooManyFailed { failed: *failed, tolerated: *tolerated }
        }
        RolloutPause::NothingToRollBackTo { failed, tolerated } => {
            RolloutState::PausedNothingToRollBackTo { failed: *failed, tolerated: *tolerated }
        }
        RolloutPause::TooManyUnreachable { unreachable, tolerated } => {
            RolloutState::PausedTooManyUnreachable { unreachable: *unreachable, tolerated: *tolerated }
        }
    }
}

/// The pause that a shape says.
#[expect(clippy::wildcard_enum_match_arm, reason = "asked only for pauses; any other is an error")]
pub(super) fn pause(from: RolloutState) -> Result<RolloutPause, ShapeError> {
    Ok(match from {
        RolloutState::PausedByPerson { by, reason } => {
            RolloutPause::Person { by: read("state.by", &by)?, reason }
        }
        RolloutState::PausedStopped { freeze, by, reason } => RolloutPause::Stopped {
            freeze: read("state.freeze", &freeze)?,
            by: read("state.by", &by)?,
            reason,
        },
        RolloutState::PausedMonitorSilent { reason } => RolloutPause::MonitorSilent { reason },
        RolloutState::PausedBad { reason } => RolloutPause::Bad { reason },
        RolloutState::PausedTooManyFailed { failed, tolerated } => {
            RolloutPause::TooManyFailed { failed, tolerated }
        }
        RolloutState::PausedNothingToRollBackTo { failed, tolerated } => {
            RolloutPause::NothingToRollBackTo { failed, tolerated }
        }
        RolloutState::PausedTooManyUnreachable { unreachable, tolerated } => {
            RolloutPause::TooManyUnreachable { unreachable, tolerated }
        }
        _ => return Err(ShapeError::at("state", "it is no pause")),
    })
}
