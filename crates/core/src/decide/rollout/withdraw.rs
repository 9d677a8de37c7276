//! Withdraws what a rollout that was ended before its end has assigned. The nodes of a run end the jobs that run, and begin no other;
//! targets of a rollout of versions go on with what they have begun, and what they have not is withdrawn.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;

use super::outcome::event;
use super::pass::Pass;
use crate::records::target::AssignmentPurpose;
use crate::rollout::board::phase::{PhaseSet, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::words::name::TargetName;

/// Most targets at once; the others follow in the next round.
const AT_ONCE: u64 = 1_024;

/// Withdraws what was assigned; returns whether there was any.
pub(super) fn withdraw(pass: &mut Pass<'_>) -> bool {
    withdraw_run(pass) || withdraw_unbegun(pass)
}

/// Assigns what it runs to every target that has not begun what it was assigned; one that runs nothing is assigned nothing.
fn withdraw_unbegun(pass: &mut Pass<'_>) -> bool {
    if !pass.board.frame().is_left || pass.board.entity().hold.is_some() {
        return false;
    }
    let waiting = WalkFilter::all(PhaseSet::of(&[TargetPhase::Passing]));
    let names: Vec<TargetName> = pass.board.tree().names(&waiting, AT_ONCE);
    for name in &names {
        let Some(member) = pass.board.member(name).cloned() else { continue };
        let Some(state) = member.state.as_ref() else { continue };
        let running = member.observation.as_ref().and_then(|observation| observation.running.clone());
        let cause = match &running {
            Some(running) => format!("the rollout ended before it began: it keeps {running}"),
            None => "the rollout ended before it began".to_owned(),
        };
        let event = event(pass, "target.withdrawn", name, &state.version, cause);
        let back = running.map(|running| pass.assignment(&member, running, AssignmentPurpose::Rollback));
        pass.put(name, back, Some(event));
    }
    !names.is_empty()
}

/// Removes the assignments of an aborted run that its nodes may still work on; returns whether there were any.
fn withdraw_run(pass: &mut Pass<'_>) -> bool {
    if !pass.board.frame().withdraws {
        return false;
    }
    let open = WalkFilter::all(PhaseSet::of(&[TargetPhase::Settling]));
    let names: Vec<TargetName> = pass.board.tree().names(&open, AT_ONCE);
    for name in &names {
        pass.put(name, None, None);
    }
    !names.is_empty()
}

#[cfg(test)]
mod tests;
