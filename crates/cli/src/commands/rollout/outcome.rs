//! What the state of a rollout means for a script.

use bellwether_api::v1::rollout::status::RolloutWait;
use bellwether_api::v1::rollout::{RolloutState, RolloutStatus, RolloutView};

use crate::exit::Exit;

/// The exit code for a rollout's state.
pub(super) const fn exit(view: &RolloutView) -> Exit {
    let Some(rollout) = &view.rollout else { return Exit::No };
    match rollout.status.state {
        RolloutState::Waiting if needs_approval(&rollout.status) => Exit::NeedsPerson,
        RolloutState::InProgress | RolloutState::Waiting | RolloutState::Succeeded => Exit::Yes,
        RolloutState::Paused => Exit::NeedsPerson,
        RolloutState::PartiallySucceeded => Exit::Partial,
        RolloutState::RollingBack
        | RolloutState::RolledBack
        | RolloutState::RollbackFailed
        | RolloutState::Aborted
        | RolloutState::Superseded => Exit::No,
    }
}

/// Whether a stage waits for a person's approval.
const fn needs_approval(status: &RolloutStatus) -> bool {
    matches!(status.waiting, Some(RolloutWait::Approval { .. }))
}
