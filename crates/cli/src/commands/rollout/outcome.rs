//! What the state of a rollout means for a script.

use bellwether_api::v1::rollout::{RolloutState, RolloutView};

use crate::exit::Exit;

/// The exit code for a rollout's state.
pub(super) const fn exit(view: &RolloutView) -> Exit {
    let Some(rollout) = &view.rollout else { return Exit::No };
    match rollout.state {
        RolloutState::InProgress
        | RolloutState::Waiting { .. }
        | RolloutState::WaitingNoDomain { .. }
        | RolloutState::WaitingFrozen { .. }
        | RolloutState::WaitingWindow { .. }
        | RolloutState::WaitingShut { .. }
        | RolloutState::WaitingNeed { .. }
        | RolloutState::WaitingUnavailable { .. }
        | RolloutState::WaitingHook { .. }
        | RolloutState::Succeeded => Exit::Yes,
        RolloutState::PausedByPerson { .. }
        | RolloutState::PausedTooManyFailed { .. }
        | RolloutState::PausedNothingToRollBackTo { .. }
        | RolloutState::PausedTooManyUnreachable { .. }
        | RolloutState::PausedStopped { .. }
        | RolloutState::PausedMonitorSilent { .. }
        | RolloutState::PausedBad { .. }
        | RolloutState::WaitingApproval { .. } => Exit::NeedsPerson,
        RolloutState::PartiallySucceeded { .. } => Exit::Partial,
        RolloutState::RollingBack
        | RolloutState::RolledBack
        | RolloutState::RollbackFailed { .. }
        | RolloutState::Aborted { .. }
        | RolloutState::Superseded { .. } => Exit::No,
    }
}
