//! Dispatch with hooks: selection chooses targets, approval agrees, removal removes the rest. Never more than
//! the capacity, and no target while an answer is missing.

use alloc::string::String;
use alloc::vec::Vec;

use super::capacity::{self, DispatchCapacity};
use super::dispatch_gate::DispatchGate;
use super::pass::Pass;
use crate::decide::rollout::dispatch_block::DispatchBlock;
use crate::records::hook_answers::{HookAnswers, HookPurpose};
use crate::records::rollout::RolloutWait;
use crate::rollout::board::phase::{PhaseSet, QUEUED, STARTED, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::rollout::hook_question::{HookQuestion, MAX_NAMES};
use crate::words::name::TargetName;
use crate::words::plural::Plural;

/// The hook answers about the rollout in progress.
pub(super) fn answers<'a>(pass: &Pass<'a>) -> Option<&'a HookAnswers> {
    let number = pass.board.rollout()?.number;
    Some(&*pass.environment.answers).filter(|answers| answers.rollout == number)
}

/// The next queued targets, or those that the selection hook chose among them.
pub(super) fn next(
    pass: &mut Pass<'_>,
    room: &DispatchCapacity,
    gate: &DispatchGate<'_>,
) -> Result<Vec<TargetName>, DispatchBlock> {
    let names = capacity::next(pass, room, gate);
    if pass.board.entity().policy.hooks.selection.is_none() || names.is_empty() {
        return Ok(names);
    }
    let turned = pass.board.tree().tally().count(STARTED);
    let answer = answers(pass).and_then(|answers| answers.selection.as_ref());
    let answer = answer.filter(|answer| answer.turned == turned);
    let chosen = answer.map(|answer| capacity::fitting(pass, room, gate, &answer.targets));
    if let Some(chosen) = chosen.as_ref().filter(|chosen| !chosen.is_empty()) {
        return Ok(chosen.clone());
    }
    let turns = u64::try_from(names.len()).unwrap_or(u64::MAX);
    // It chooses among all queued targets, though the capacity may be smaller.
    let most = u64::try_from(MAX_NAMES).unwrap_or(u64::MAX);
    let everyone = DispatchCapacity { turns: most, spare: most, ..room.clone() };
    let candidates = capacity::next(pass, &everyone, gate);
    pass.questions.push(HookQuestion::Selection { turned, room: turns, candidates });
    Err(waits_for(pass, HookPurpose::Selection, chosen.map(|_| "chose no target that can be updated".into())))
}

/// Those of the targets that the approval hook approved.
pub(super) fn approved(
    pass: &mut Pass<'_>,
    mut names: Vec<TargetName>,
) -> Result<Vec<TargetName>, DispatchBlock> {
    if pass.board.entity().policy.hooks.approval.is_none() || names.is_empty() {
        return Ok(names);
    }
    let turned = pass.board.tree().tally().count(STARTED);
    let answer = answers(pass).and_then(|answers| answers.approval.as_ref());
    let answer = answer.filter(|answer| answer.turned == turned);
    let agreed =
        |name: &TargetName| answer.is_some_and(|answer| answer.approved && answer.targets.contains(name));
    if names.iter().any(agreed) {
        names.retain(agreed);
        return Ok(names);
    }
    let refused = answer.filter(|answer| !answer.approved).map(|answer| answer.reason.clone());
    let reason = refused.map(|reason| if reason.is_empty() { "not yet".into() } else { reason });
    pass.questions.push(HookQuestion::Approval { turned, targets: names });
    Err(waits_for(pass, HookPurpose::Approval, reason))
}

/// Once the version is good, the removal hook removes the targets that do not run it; no further target is
/// assigned a version.
pub(super) fn removal(pass: &mut Pass<'_>) -> DispatchBlock {
    let old =
        PhaseSet::of(&[TargetPhase::Ready, TargetPhase::Unhealthy, TargetPhase::Silent, TargetPhase::Quiet]);
    let targets =
        pass.board.tree().names(&WalkFilter::all(old), u64::try_from(MAX_NAMES).unwrap_or(u64::MAX));
    let left = pass.board.tree().tally().count(QUEUED);
    pass.questions.push(HookQuestion::Removal { targets });
    waits_for(
        pass,
        HookPurpose::Removal,
        Some(alloc::format!("{} still to be removed", Plural(left, "target"))),
    )
}

/// A wait for a hook, with its answer, or with what happens instead of one.
pub(super) fn waits_for(pass: &Pass<'_>, asked: HookPurpose, said: Option<String>) -> DispatchBlock {
    let trouble = answers(pass).and_then(|answers| answers.troubles.get(&asked));
    let reason = trouble.map(|trouble| trouble.reason.clone()).or(said).unwrap_or_default();
    DispatchBlock::of(RolloutWait::Hook { asked, reason })
}
