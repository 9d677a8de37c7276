//! Assigns a run again to a node on which it failed, because a person asked for it.

use super::outcome::event;
use super::pass::Pass;
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use crate::rollout::board::Board;
use crate::rollout::board::frame::BoardMode;
use crate::rollout::board::member::BoardMember;
use crate::words::counter::AssignmentNumber;
use crate::words::name::TargetName;

/// Assigns the rolling version again to the targets whose failed assignment is to be tried again; returns whether there were any.
/// Costs time in proportion to the targets that were ever retried.
pub(super) fn reopen(pass: &mut Pass<'_>) -> bool {
    let is_forward = match pass.board.frame().stage {
        BoardMode::Judging | BoardMode::Finishing => true,
        BoardMode::Settled | BoardMode::Abandoned | BoardMode::RollingBack => false,
    };
    if !is_forward || pass.board.entity().retries.is_empty() {
        return false;
    }
    let entity = pass.board.shared_entity();
    let mut changed = false;
    for (name, number) in &entity.retries {
        let Some((member, state)) = pass.board.member(name).and_then(|member| failed(member, *number)) else {
            continue;
        };
        let assigned = pass.assignment(&member, state.version.clone(), AssignmentPurpose::Update);
        let event = event(pass, "target.retried", name, &state.version, "a person asked for it".into());
        pass.forget_failure(name);
        pass.put(name, Some(assigned), Some(event));
        changed = true;
    }
    changed
}

/// Whether a target that was tried again has succeeded since the rollout is paused, and none that was is in flight. Costs time in
/// proportion to the targets that were ever retried.
pub(super) fn has_mended(board: &Board) -> bool {
    let Some(paused) = board.progress().clock.since else { return false };
    let again = |(name, number): (&TargetName, &AssignmentNumber)| {
        board.member(name)?.state.clone().filter(|state| state.assignment > *number)
    };
    let mut succeeded = false;
    for state in board.entity().retries.iter().filter_map(again) {
        if state.is_in_flight() {
            return false;
        }
        succeeded |= matches!(state.outcome, AssignmentOutcome::Succeeded { at, .. } if at >= paused);
    }
    succeeded
}

/// The target, if its assignment of this number failed.
fn failed(member: &BoardMember, number: AssignmentNumber) -> Option<(BoardMember, TargetState)> {
    member.observation.as_ref()?;
    let state = member.state.as_ref().filter(|state| state.assignment == number)?;
    match state.outcome {
        AssignmentOutcome::Failed { .. } => Some((member.clone(), state.clone())),
        AssignmentOutcome::InFlight
        | AssignmentOutcome::Succeeded { .. }
        | AssignmentOutcome::Unreachable { .. } => None,
    }
}

#[cfg(test)]
mod tests;
