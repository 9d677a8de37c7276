//! Questions to the policy's hooks at the end of a pass, besides those that dispatch asks.

use alloc::vec::Vec;

use super::pass::Pass;
use crate::records::rollout::{Direction, VersionJudgement};
use crate::rollout::board::member::{soaked, stands_still};
use crate::rollout::board::phase::{PhaseSet, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::rollout::hook_question::{HookQuestion, MAX_NAMES};
use crate::rollout::observation::is_well;

/// Adds the questions about soaked targets that need a judgement, and about the rollout as a whole.
pub(super) fn ask(pass: &mut Pass<'_>) {
    let Some(rollout) = pass.board.rollout() else { return };
    if rollout.direction != Direction::Forward || rollout.is_over() {
        return;
    }
    let open = matches!(rollout.judgement, VersionJudgement::Open);
    let monitored = pass.board.entity().policy.monitor.is_some();
    if pass.board.frame().monitored {
        let mut targets = Vec::new();
        let mut next = None;
        let (frame, now) = (pass.board.frame(), pass.now);
        pass.board.tree().walk(&WalkFilter::all(PhaseSet::of(&[TargetPhase::InFlight])), &mut |member| {
            if let (Some(observation), Some(state)) = (&member.observation, &member.state)
                && is_well(observation, &state.version)
                && stands_still(frame, observation, state)
                && let Some(soaked) = soaked(observation, state)
            {
                if soaked <= now {
                    targets.push((member.name.clone(), state.assignment));
                } else {
                    next = [next, Some(soaked)].into_iter().flatten().min();
                }
            }
            targets.len() < MAX_NAMES
        });
        pass.look_again(next);
        if !targets.is_empty() {
            pass.questions.push(HookQuestion::Monitoring { targets });
        }
    }
    if monitored && open {
        pass.questions.push(HookQuestion::Monitor { counts: pass.board.counts() });
    }
}
