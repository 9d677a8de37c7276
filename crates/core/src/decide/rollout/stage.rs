//! Stages: how far a rollout may go before the next stage begins, and the approval that takes.

use alloc::format;

use super::pass::Pass;
use crate::decide::rollout::dispatch_block::DispatchBlock;
use crate::records::policy::ordering::PolicyStage;
use crate::records::rollout::{Rollout, RolloutWait};
use crate::rollout::board::Board;
use crate::rollout::board::phase::{IN_FLIGHT_PHASES, STARTED, TargetPhase};

/// Number of targets that have started, or needed no update.
fn reached(board: &Board) -> u64 {
    let tally = board.tree().tally();
    tally.count(STARTED) + tally.of(TargetPhase::Adopted)
}

/// The present stage of a rollout, and its index; `None` when the policy has none.
fn present<'a>(board: &'a Board, rollout: &Rollout) -> Option<(u32, &'a PolicyStage)> {
    let stages = &board.entity().policy.stages;
    let last = u32::try_from(stages.len()).unwrap_or(u32::MAX).checked_sub(1)?;
    let at = rollout.stage.at.min(last);
    Some((at, stages.get(usize::try_from(at).ok()?)?))
}

/// Number of targets that may still start in the present stage.
pub(super) fn room(board: &Board) -> u64 {
    let Some((_, stage)) = board.rollout().and_then(|rollout| present(board, rollout)) else {
        return u64::MAX;
    };
    stage.upto.of_at_least_one(u64::from(board.tree().tally().members)).saturating_sub(reached(board))
}

/// The approval that the present stage waits for.
pub(super) fn lacks_approval(board: &Board) -> Option<DispatchBlock> {
    let rollout = board.rollout()?;
    let (at, stage) = present(board, rollout)?;
    let lacks = stage.approve && rollout.stage.approved <= at;
    lacks.then(|| DispatchBlock::of(RolloutWait::Approval { stage: at + 1 }))
}

/// Moves to the next stage once every target of the present one has an outcome; returns whether it did.
pub(super) fn advance(pass: &mut Pass<'_>) -> bool {
    let board = &pass.board;
    let Some((at, stage)) = board.rollout().and_then(|rollout| present(board, rollout)) else { return false };
    let last = usize::try_from(at).is_ok_and(|at| at + 1 >= board.entity().policy.stages.len());
    if last || room(board) > 0 || board.tree().tally().count(IN_FLIGHT_PHASES) > 0 {
        return false;
    }
    let cause = format!(
        "stage {} of {}, up to {}, is complete: {} updated",
        at + 1,
        board.entity().policy.stages.len(),
        stage.upto,
        reached(board)
    );
    let mut draft = pass.draft();
    draft.tell("rollout.stage", cause);
    draft.change_rollout(|rollout| rollout.stage.at = at + 1);
    pass.take(draft)
}
