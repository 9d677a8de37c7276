//! What the policy's controllers would be asked at the end of a pass, beside what handing out asks them.

use alloc::vec::Vec;

use super::pass::Pass;
use crate::records::rollout::{Heading, Judgement};
use crate::rollout::board::lane::{Lane, LaneSet};
use crate::rollout::board::member::{is_well, stands_still};
use crate::rollout::board::tree::Wanted;
use crate::rollout::question::{MAX_NAMES, Question};

/// Adds the questions about targets that have soaked and are to be judged, and about the rollout as a whole.
pub(super) fn ask(pass: &mut Pass<'_>) {
    let Some(rollout) = pass.board.rollout() else { return };
    if rollout.heading != Heading::Forward || rollout.is_over() {
        return;
    }
    let open = matches!(rollout.judgement, Judgement::Open);
    let monitored = pass.board.entity().policy.monitor.is_some();
    if pass.board.frame().monitored {
        let mut targets = Vec::new();
        let mut next = None;
        let (frame, now) = (pass.board.frame(), pass.now);
        pass.board.tree().walk(&Wanted::all(LaneSet::of(&[Lane::InFlight])), &mut |member| {
            if let (Some(sighting), Some(state)) = (&member.sighting, &member.state)
                && is_well(sighting, &state.version)
                && stands_still(frame, sighting, state)
                && let Some(since) = sighting.healthy_since
            {
                let soaked = since.max(state.assigned_at).plus(frame.soak);
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
            pass.questions.push(Question::Monitoring { targets });
        }
    }
    if monitored && open {
        pass.questions.push(Question::Monitor { figures: pass.board.figures() });
    }
}
