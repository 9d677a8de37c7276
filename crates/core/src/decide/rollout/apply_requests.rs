//! Applies requests of people, each once, in the order abort, version, resume, pause.

use alloc::collections::BTreeMap;
use alloc::format;

use super::draft::RolloutDraft;
use super::pass::Pass;
use crate::records::entity::{Entity, RequestKind, VersionRequest};
use crate::records::freeze::Freeze;
use crate::records::rollout::{Direction, Rollout, RolloutPause, RolloutState, VersionJudgement};
use crate::rollout::board::Board;
use crate::rollout::board::phase::TargetPhase;
use crate::rollout::request_effect::{RequestEffect, effect};
use crate::words::version::Version;

/// Applies what people requested; returns whether that changed anything.
pub(super) fn apply_requests(pass: &mut Pass<'_>) -> bool {
    let mut draft = pass.draft();
    let entity = pass.board.entity();
    apply_abort(&mut draft, entity);
    apply_request(&mut draft, entity, &pass.board);
    apply_approval(&mut draft, entity);
    let tally = pass.board.tree().tally();
    apply_resume(&mut draft, entity, tally.of(TargetPhase::Lost) + tally.of(TargetPhase::Silent));
    apply_pause(&mut draft, entity, pass.environment.stop(&entity.name, pass.now));
    let stop_ends = pass.environment.stop(&entity.name, pass.now).and_then(|stop| stop.until);
    pass.look_again(stop_ends);
    pass.take(draft)
}

fn apply_abort(draft: &mut RolloutDraft, entity: &Entity) {
    let Some(abort) = &entity.abort else { return };
    if draft.rollout.as_ref().is_some_and(|rollout| rollout.request <= abort.request) {
        let state = RolloutState::Aborted {
            by: abort.annotation.by.clone(),
            reason: abort.annotation.reason.clone(),
        };
        draft.turn_to(state, abort.annotation.describe("aborted"));
    }
    if let Some(wanted) = entity.wanted.as_ref().filter(|wanted| wanted.request <= abort.request) {
        draft.change_progress(|progress| {
            progress.target = Some(wanted.version.clone());
            progress.handled = progress.handled.max(wanted.request);
        });
    }
}

fn apply_request(draft: &mut RolloutDraft, entity: &Entity, board: &Board) {
    let Some(wanted) = &entity.wanted else { return };
    if wanted.request <= draft.progress.handled {
        return;
    }
    draft.change_progress(|progress| progress.target = Some(wanted.version.clone()));
    let Some(rollout) = draft.rollout.clone() else {
        begin(draft, wanted, board);
        return;
    };
    match effect(&draft.progress, wanted, entity.policy.supersede, &rollout) {
        RequestEffect::AlreadyDone => done(draft, wanted),
        RequestEffect::Deferred => {}
        RequestEffect::RollBack => {
            done(draft, wanted);
            let direction = Direction::RollbackByUndo {
                by: wanted.annotation.by.clone(),
                reason: wanted.annotation.reason.clone(),
            };
            draft.change_rollout(|rollout| rollout.direction = direction);
            draft.turn_to(RolloutState::RollingBack, wanted.annotation.describe("undone"));
        }
        RequestEffect::Replace => {
            let by = draft.progress.last.next();
            let cause = wanted.annotation.describe(&format!("{} requested", wanted.version));
            draft.turn_to(RolloutState::Superseded { by }, cause);
            begin(draft, wanted, board);
        }
    }
}

fn begin(draft: &mut RolloutDraft, wanted: &VersionRequest, board: &Board) {
    if let Some(bad) = draft.progress.bad(&wanted.version).filter(|_| wanted.how != RequestKind::Retry) {
        let cause =
            format!("{} became known bad in the meantime: {}; use 'rollout retry'", bad.version, bad.reason);
        draft.tell_refused(wanted, cause);
        done(draft, wanted);
    } else {
        let good = draft.progress.last_known_good.clone();
        let from = match wanted.how {
            RequestKind::Undo => left_on(board, good.as_ref()).or(good),
            RequestKind::Start | RequestKind::Retry => good,
        };
        draft.start(wanted, board.entity().policy.clone(), from);
    }
}

/// The version, other than last known good, that most targets are assigned: what an undo rolls back from.
fn left_on(board: &Board, good: Option<&Version>) -> Option<Version> {
    let mut targets: BTreeMap<&Version, u64> = BTreeMap::new();
    for member in board.tree().iter().filter(|member| member.observation.is_some()) {
        if let Some(state) = member.state.as_ref().filter(|state| Some(&state.version) != good) {
            *targets.entry(&state.version).or_default() += 1;
        }
    }
    targets.into_iter().max_by_key(|(_, count)| *count).map(|(version, _)| version.clone())
}

fn done(draft: &mut RolloutDraft, wanted: &VersionRequest) {
    draft.change_progress(|progress| progress.handled = wanted.request);
}

/// A resume ends a pause that the engine made, and accepts what caused it.
fn apply_resume(draft: &mut RolloutDraft, entity: &Entity, silent: u64) {
    if entity.resumes == draft.progress.resumes {
        return;
    }
    draft.change_progress(|progress| progress.resumes = entity.resumes);
    let Some(rollout) = draft.rollout.clone() else { return };
    let RolloutState::Paused(pause) = &rollout.state else { return };
    let clock = draft.progress.clock.at(draft.now);
    match pause {
        RolloutPause::Person { .. } | RolloutPause::Stopped { .. } => return,
        RolloutPause::Bad { .. } | RolloutPause::MonitorSilent { .. } => draft.change_rollout(|rollout| {
            rollout.waived.monitor = true;
            rollout.judgement = VersionJudgement::Open;
            if let Some(peak) = &mut rollout.peak {
                peak.at = clock;
            }
        }),
        RolloutPause::OnlyFailingBefore { failing: failed }
        | RolloutPause::TooManyFailed { failed, .. }
        | RolloutPause::NothingToRollBackTo { failed, .. } => {
            let failed = *failed;
            draft.change_rollout(|rollout| {
                rollout.waived.failed = rollout.waived.failed.max(failed);
                rollout.judgement = VersionJudgement::Open;
            });
        }
        RolloutPause::TooManyUnreachable { .. } => {
            draft.change_rollout(|rollout| {
                rollout.waived.unreachable = rollout.waived.unreachable.max(silent);
            });
        }
    }
    draft.turn_to(moving(&rollout), format!("pause waived: paused {pause}"));
}

/// Applies a person's approval of a stage.
fn apply_approval(draft: &mut RolloutDraft, entity: &Entity) {
    let Some(approval) = &entity.approval else { return };
    let lacks = draft
        .rollout
        .as_ref()
        .is_some_and(|rollout| rollout.number == approval.rollout && rollout.stage.approved < approval.stage);
    if lacks {
        let what = format!("stage {} approved", approval.stage);
        draft.tell("rollout.approved", approval.annotation.describe(&what));
        draft.change_rollout(|rollout| rollout.stage.approved = approval.stage);
    }
}

/// A stop takes precedence over a person's pause; both end with their cause.
fn apply_pause(draft: &mut RolloutDraft, entity: &Entity, stop: Option<&Freeze>) {
    let Some(rollout) = draft.rollout.clone() else { return };
    if let Some(Freeze { name, annotation, .. }) = stop {
        let pause = RolloutPause::Stopped {
            freeze: name.clone(),
            by: annotation.by.clone(),
            reason: annotation.reason.clone(),
        };
        draft.turn_to(RolloutState::Paused(pause), annotation.describe(&format!("stopped by {name},")));
        return;
    }
    match (&entity.hold, &rollout.state) {
        (Some(hold), _) => {
            let pause = RolloutPause::Person { by: hold.by.clone(), reason: hold.reason.clone() };
            draft.turn_to(RolloutState::Paused(pause), hold.describe("paused"));
        }
        (
            None,
            RolloutState::Paused(pause @ (RolloutPause::Person { .. } | RolloutPause::Stopped { .. })),
        ) => {
            draft.turn_to(moving(&rollout), format!("no longer paused {pause}"));
        }
        (
            None,
            RolloutState::InProgress
            | RolloutState::Waiting(_)
            | RolloutState::Paused(_)
            | RolloutState::RollingBack
            | RolloutState::Succeeded
            | RolloutState::PartiallySucceeded { .. }
            | RolloutState::Failed { .. }
            | RolloutState::RolledBack
            | RolloutState::RollbackFailed { .. }
            | RolloutState::Aborted { .. }
            | RolloutState::Superseded { .. },
        ) => {}
    }
}

/// The state of a rollout that is neither paused nor waiting.
const fn moving(rollout: &Rollout) -> RolloutState {
    match rollout.direction {
        Direction::Forward => RolloutState::InProgress,
        Direction::RollbackFromBad | Direction::RollbackByUndo { .. } => RolloutState::RollingBack,
    }
}
