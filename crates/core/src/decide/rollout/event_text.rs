//! Names and texts of events about rollouts and targets.

use alloc::format;
use alloc::string::String;

use crate::records::event::EventDraft;
use crate::records::rollout::{RolloutState, RolloutWait};
use crate::words::counter::RolloutNumber;
use crate::words::name::{EntityName, TargetName};
use crate::words::plural::plural;
use crate::words::version::Version;

/// The subject of an event about an entity.
pub(super) fn entity(entity: &EntityName) -> String {
    format!("entity/{entity}")
}

/// The subject of an event about a rollout.
pub(super) fn rollout(entity: &EntityName, number: RolloutNumber) -> String {
    format!("rollout/{entity}/{number}")
}

/// An event about a target and a version.
pub(super) fn target(
    kind: &'static str,
    entity: &EntityName,
    target: &TargetName,
    version: &Version,
    cause: String,
) -> EventDraft {
    let subject = format!("target/{entity}/{target}");
    EventDraft { kind, subject, before: None, after: Some(format!("{version}")), cause }
}

/// Names of the first targets of a batch, so that an event of a large one stays one line.
pub(super) fn names(names: &[TargetName]) -> String {
    match names {
        [] => String::new(),
        [only] => format!("{only}"),
        [first, second] => format!("{first} and {second}"),
        [first, .., last] => format!("{}, {first} to {last}", plural(names.len(), "target")),
    }
}

/// The kind of event for a change of state; `None` when the rollout only continues after a short wait,
/// the same freeze keeps another number of targets, another number of needed instances is functional, or it waits for other data stores.
pub(super) fn kind_of_turn(before: &RolloutState, after: &RolloutState) -> Option<&'static str> {
    match (before, after) {
        (
            RolloutState::Waiting(RolloutWait::Shut { frozen: Some(before), .. }),
            RolloutState::Waiting(RolloutWait::Shut { frozen: Some(after), .. }),
        ) if before.freeze == after.freeze => None,
        (
            RolloutState::Waiting(RolloutWait::Need { need: before, .. }),
            RolloutState::Waiting(RolloutWait::Need { need: after, .. }),
        ) if before == after => None,
        (
            RolloutState::Waiting(RolloutWait::Stores { .. }),
            RolloutState::Waiting(RolloutWait::Stores { .. }),
        ) => None,
        (RolloutState::Paused(_), RolloutState::InProgress) => Some("rollout.resumed"),
        (_, RolloutState::InProgress) => None,
        (_, RolloutState::Waiting(_)) => Some("rollout.waiting"),
        (_, RolloutState::Paused(_)) => Some("rollout.paused"),
        (_, RolloutState::RollingBack) => Some("rollout.rolling_back"),
        (_, RolloutState::Succeeded) => Some("rollout.succeeded"),
        (_, RolloutState::PartiallySucceeded { .. }) => Some("rollout.partially_succeeded"),
        (_, RolloutState::Failed { .. }) => Some("rollout.failed"),
        (_, RolloutState::RolledBack) => Some("rollout.rolled_back"),
        (_, RolloutState::RollbackFailed { .. }) => Some("rollout.rollback_failed"),
        (_, RolloutState::Aborted { .. }) => Some("rollout.aborted"),
        (_, RolloutState::Superseded { .. }) => Some("rollout.superseded"),
    }
}
