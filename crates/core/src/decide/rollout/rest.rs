//! The final state of a pass: once no further target can be dispatched, the rollout is in progress, or waits
//! for a condition.

use alloc::string::ToString;

use super::pass::Pass;
use crate::records::rollout::{Direction, RolloutState};
use crate::rollout::board::phase::{IN_FLIGHT_PHASES, TargetPhase};

/// Sets whether the rollout is in progress or waits; returns whether that changed.
pub(super) fn rest(pass: &mut Pass<'_>) -> bool {
    let forward = |rollout: &crate::records::rollout::Rollout| {
        rollout.direction == Direction::Forward
            && matches!(rollout.state, RolloutState::InProgress | RolloutState::Waiting(_))
    };
    if !pass.going || !pass.board.rollout().is_some_and(forward) {
        return false;
    }
    let until = pass.shut.as_ref().and_then(|block| block.until);
    pass.look_again(until);
    let tally = pass.board.tree().tally();
    let moving = tally.count(IN_FLIGHT_PHASES) + tally.of(TargetPhase::Settling);
    let state = match &pass.shut {
        Some(block) if moving == 0 => RolloutState::Waiting(block.wait.clone()),
        Some(_) | None => RolloutState::InProgress,
    };
    let mut draft = pass.draft();
    let clock = draft.progress.clock.at(pass.now);
    let waited =
        draft.rollout.as_ref().is_some_and(|rollout| matches!(rollout.state, RolloutState::Waiting(_)));
    if waited && state == RolloutState::InProgress {
        // Waiting does not count against its progress limit: that time starts anew.
        draft.change_rollout(|rollout| {
            if let Some(peak) = &mut rollout.peak {
                peak.at = clock;
            }
        });
    }
    let cause = state.to_string();
    draft.turn_to(state, cause);
    pass.take(draft)
}
