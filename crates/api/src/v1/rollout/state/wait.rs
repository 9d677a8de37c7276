//! What a rollout waits for, and why it is paused, as it travels and is kept.

use bellwether_core::records::answers::Asked;
use bellwether_core::records::rollout::{Pause, Wait};
use bellwether_core::words::time::Timestamp;

use super::State;
use crate::shape::{ShapeError, read};

const PLAIN: [(Wait, &str); 5] = [
    (Wait::NoTargets, "no_targets"),
    (Wait::BatchIsZero, "batch_is_zero"),
    (Wait::OnlyHeld, "only_held"),
    (Wait::OnlyQuiet, "only_quiet"),
    (Wait::OnlyUnreachable, "only_unreachable"),
];

/// The shape of a wait.
pub(super) fn waiting(wait: &Wait) -> State {
    match wait {
        Wait::NoTargets | Wait::BatchIsZero | Wait::OnlyHeld | Wait::OnlyQuiet | Wait::OnlyUnreachable => {
            let word = PLAIN.iter().find(|(known, _)| known == wait).map_or("no_targets", |(_, word)| word);
            State::Waiting { reason: word.to_owned() }
        }
        Wait::NoDomain { key } => State::WaitingNoDomain { key: key.to_string() },
        Wait::Frozen { freeze, by, why, until } => State::WaitingFrozen {
            freeze: freeze.to_string(),
            by: by.to_string(),
            why: why.clone(),
            until_ms: until.map(Timestamp::as_millis),
        },
        Wait::Window { opens } => State::WaitingWindow { opens_ms: opens.as_millis() },
        Wait::Shut { until } => State::WaitingShut { until_ms: until.map(Timestamp::as_millis) },
        Wait::Approval { stage } => State::WaitingApproval { stage: *stage },
        Wait::Need { need } => State::WaitingNeed { need: need.to_string() },
        Wait::Unavailable { domain } => {
            State::WaitingUnavailable { domain: domain.as_ref().map(ToString::to_string) }
        }
        Wait::Hook { asked, reason } => {
            State::WaitingHook { hook: asked.to_string(), reason: reason.clone() }
        }
    }
}

/// The wait that a shape says.
#[expect(clippy::wildcard_enum_match_arm, reason = "asked only for waits; any other is an error")]
pub(super) fn wait(from: State) -> Result<Wait, ShapeError> {
    Ok(match from {
        State::WaitingNoDomain { key } => Wait::NoDomain { key: key.into() },
        State::WaitingFrozen { freeze, by, why, until_ms } => Wait::Frozen {
            freeze: read("state.freeze", &freeze)?,
            by: read("state.by", &by)?,
            why,
            until: until_ms.map(Timestamp::from_millis),
        },
        State::WaitingWindow { opens_ms } => Wait::Window { opens: Timestamp::from_millis(opens_ms) },
        State::WaitingShut { until_ms } => Wait::Shut { until: until_ms.map(Timestamp::from_millis) },
        State::WaitingApproval { stage } => Wait::Approval { stage },
        State::WaitingNeed { need } => Wait::Need { need: read("state.need", &need)? },
        State::WaitingUnavailable { domain } => Wait::Unavailable { domain: domain.map(Into::into) },
        State::WaitingHook { hook, reason } => Wait::Hook { asked: asked("state.hook", &hook)?, reason },
        State::Waiting { reason } => {
            let found = PLAIN.iter().find(|(_, word)| *word == reason).map(|(wait, _)| wait.clone());
            found.ok_or_else(|| ShapeError::at("state.reason", format!("{reason:?} is unknown")))?
        }
        _ => return Err(ShapeError::at("state", "it is no wait")),
    })
}

/// Reads who is asked.
fn asked(place: &str, text: &str) -> Result<Asked, ShapeError> {
    let found = Asked::ALL.into_iter().find(|asked| asked.as_str() == text);
    found.ok_or_else(|| ShapeError::at(place, format!("{text:?} is no hook")))
}

/// The shape of a pause.
pub(super) fn paused(pause: &Pause) -> State {
    match pause {
        Pause::Person { by, why } => State::PausedByPerson { by: by.to_string(), why: why.clone() },
        Pause::Stopped { freeze, by, why } => {
            State::PausedStopped { freeze: freeze.to_string(), by: by.to_string(), why: why.clone() }
        }
        Pause::MonitorSilent { reason } => State::PausedMonitorSilent { reason: reason.clone() },
        Pause::Bad { reason } => State::PausedBad { reason: reason.clone() },
        Pause::TooManyFailed { failed, tolerated } => {
            State::PausedTooManyFailed { failed: *failed, tolerated: *tolerated }
        }
        Pause::NothingToRollBackTo { failed, tolerated } => {
            State::PausedNothingToRollBackTo { failed: *failed, tolerated: *tolerated }
        }
        Pause::TooManyUnreachable { unreachable, tolerated } => {
            State::PausedTooManyUnreachable { unreachable: *unreachable, tolerated: *tolerated }
        }
    }
}

/// The pause that a shape says.
#[expect(clippy::wildcard_enum_match_arm, reason = "asked only for pauses; any other is an error")]
pub(super) fn pause(from: State) -> Result<Pause, ShapeError> {
    Ok(match from {
        State::PausedByPerson { by, why } => Pause::Person { by: read("state.by", &by)?, why },
        State::PausedStopped { freeze, by, why } => {
            Pause::Stopped { freeze: read("state.freeze", &freeze)?, by: read("state.by", &by)?, why }
        }
        State::PausedMonitorSilent { reason } => Pause::MonitorSilent { reason },
        State::PausedBad { reason } => Pause::Bad { reason },
        State::PausedTooManyFailed { failed, tolerated } => Pause::TooManyFailed { failed, tolerated },
        State::PausedNothingToRollBackTo { failed, tolerated } => {
            Pause::NothingToRollBackTo { failed, tolerated }
        }
        State::PausedTooManyUnreachable { unreachable, tolerated } => {
            Pause::TooManyUnreachable { unreachable, tolerated }
        }
        _ => return Err(ShapeError::at("state", "it is no pause")),
    })
}
