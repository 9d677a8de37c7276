//! Resting: what a rollout that goes on says of itself once nobody can be told anything more: that it runs, or what it
//! waits for.

use alloc::string::ToString;

use super::pass::Pass;
use crate::records::rollout::{Heading, State};
use crate::rollout::board::lane::{FLYING, Lane};

/// Says whether the rollout runs or waits; says whether that changed.
pub(super) fn rest(pass: &mut Pass<'_>) -> bool {
    let forward = |rollout: &crate::records::rollout::Rollout| {
        rollout.heading == Heading::Forward && matches!(rollout.state, State::Running | State::Waiting(_))
    };
    if !pass.going || !pass.board.rollout().is_some_and(forward) {
        return false;
    }
    let until = pass.shut.as_ref().and_then(|gate| gate.until);
    pass.look_again(until);
    let tally = pass.board.tree().tally();
    let moving = tally.count(FLYING) + tally.of(Lane::Settling);
    let state = match &pass.shut {
        Some(gate) if moving == 0 => State::Waiting(gate.wait.clone()),
        Some(_) | None => State::Running,
    };
    let mut head = pass.head();
    let clock = head.progress.clock.at(pass.now);
    let waited = head.rollout.as_ref().is_some_and(|rollout| matches!(rollout.state, State::Waiting(_)));
    if waited && state == State::Running {
        // What it waited for does not count against its progress: that is counted anew.
        head.change_rollout(|rollout| {
            if let Some(gain) = &mut rollout.gain {
                gain.at = clock;
            }
        });
    }
    let cause = state.to_string();
    head.turn_to(state, cause);
    pass.take(head)
}
