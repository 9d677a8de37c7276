//! Judges a rollout: from its counts to the judgement of its version, and to its state.

use alloc::format;
use alloc::string::{String, ToString};

use super::draft::RolloutDraft;
use super::monitor::{self, MonitorObjection};
use super::pass::Pass;
use super::reopen;
use super::stage;
use crate::records::policy::OnFailure;
use crate::records::rollout::{
    Direction, HeldTarget, Rollout, RolloutPause, RolloutState, RolloutWait, TargetCounts, VersionJudgement,
};
use crate::rollout::board::Board;
use crate::rollout::board::member::BoardMember;
use crate::rollout::board::phase::{ASSIGNABLE, HELD, MOVED, OPEN, STARTED, TargetPhase};
use crate::rollout::board::tree::walk::WalkFilter;
use crate::rollout::observation::refusal;
use crate::rollout::thresholds::Thresholds;

/// Judges the rollout in progress; returns whether that changed anything.
pub(super) fn judge(pass: &mut Pass<'_>) -> bool {
    pass.going = false;
    if stage::advance(pass) {
        return true;
    }
    let mut draft = pass.draft();
    let Some(rollout) = draft.rollout.clone() else { return false };
    match (&rollout.state, &rollout.direction) {
        (
            RolloutState::InProgress
            | RolloutState::Waiting(_)
            | RolloutState::Paused(
                RolloutPause::TooManyUnreachable { .. }
                | RolloutPause::OnlyFailingBefore { .. }
                | RolloutPause::MonitorSilent { .. },
            ),
            Direction::Forward,
        ) => judge_forward(pass, &mut draft, &rollout),
        (
            RolloutState::Paused(
                RolloutPause::TooManyFailed { .. } | RolloutPause::NothingToRollBackTo { .. },
            ),
            Direction::Forward,
        ) => mended(&mut draft, &pass.board),
        (RolloutState::RollingBack, _) => judge_back(&mut draft, &pass.board),
        (
            RolloutState::InProgress
            | RolloutState::Waiting(_)
            | RolloutState::Paused(_)
            | RolloutState::Succeeded
            | RolloutState::PartiallySucceeded { .. }
            | RolloutState::Failed { .. }
            | RolloutState::RolledBack
            | RolloutState::RollbackFailed { .. }
            | RolloutState::Aborted { .. }
            | RolloutState::Superseded { .. },
            _,
        ) => {}
    }
    pass.take(draft)
}

/// Ends the pause that failures caused, once no more of them are left than are tolerated, since what failed was tried again and succeeded.
/// Without that it is a person's to end.
fn mended(draft: &mut RolloutDraft, board: &Board) {
    let (failed, tolerated) = (board.counts().failed, board.thresholds().tolerated);
    if failed > tolerated || !reopen::has_mended(board) {
        return;
    }
    draft.change_rollout(|rollout| rollout.judgement = VersionJudgement::Open);
    let cause = format!("what failed was tried again and succeeded: {failed} failed, {tolerated} tolerated");
    draft.turn_to(RolloutState::InProgress, cause);
}

/// Assessment of a rollout from its counts, monitor and progress.
enum Assessment {
    /// Too many targets failed.
    Bad,
    /// It is bad for this reason, whatever the counts.
    Wrong(String),
    /// The monitor does not answer.
    Unwatched(String),
    /// Enough targets succeeded.
    Good,
    /// Too many targets are silent: this many.
    Silent(u64),
    /// Every target that was updated failed as it had before: this many.
    NoEvidence(u64),
    /// Nothing is left to do.
    End,
    /// It waits for this condition.
    Wait(RolloutWait),
    /// It continues.
    Go,
}

/// The successes, and who else was not waited for.
fn why_good(counts: &TargetCounts, thresholds: &Thresholds, lost: u64) -> String {
    let TargetCounts { targets, succeeded, .. } = counts;
    let (needed, tolerated) = (thresholds.needed, thresholds.unreachable);
    match *succeeded < needed && lost > 0 {
        true => format!("{succeeded} of {targets} succeeded, {lost} unreachable, {tolerated} tolerated"),
        false => format!("{succeeded} of {targets} succeeded, {needed} needed"),
    }
}

fn judge_forward(pass: &mut Pass<'_>, draft: &mut RolloutDraft, rollout: &Rollout) {
    let (counts, thresholds) = (pass.board.counts(), pass.board.thresholds());
    monitor::count_gain(pass, draft, rollout, &counts);
    if counts.targets > rollout.enrolled {
        draft.change_rollout(|rollout| rollout.enrolled = counts.targets);
    }
    let call = call(pass, rollout, &counts, &thresholds);
    let board = &pass.board;
    match call {
        Assessment::Bad => {
            draft.call_bad(why_bad(rollout, &counts, &thresholds));
            turn_from_bad(draft, board, &counts, &thresholds);
        }
        Assessment::Good => {
            draft.call_good(why_good(&counts, &thresholds, board.tree().tally().of(TargetPhase::Lost)));
        }
        Assessment::Silent(unreachable) => {
            let tolerated = thresholds.unreachable;
            if !matches!(rollout.state, RolloutState::Paused(_)) {
                let refusing = refusing(board);
                let pause = RolloutPause::TooManyUnreachable { unreachable, refusing, tolerated };
                draft.turn_to(RolloutState::Paused(pause.clone()), format!("paused {pause}"));
            }
        }
        Assessment::NoEvidence(failing) => {
            let pause = RolloutPause::OnlyFailingBefore { failing };
            if !matches!(rollout.state, RolloutState::Paused(_)) {
                draft.turn_to(RolloutState::Paused(pause.clone()), format!("paused {pause}"));
            }
        }
        Assessment::End => end_forward(draft, rollout, &counts, &thresholds),
        Assessment::Wrong(reason) => {
            draft.call_bad(reason.clone());
            turn_from_wrong(draft, board, reason);
        }
        Assessment::Unwatched(reason) => {
            if !matches!(rollout.state, RolloutState::Paused(_)) {
                let pause = RolloutPause::MonitorSilent { reason };
                let cause = format!("paused {pause}");
                draft.turn_to(RolloutState::Paused(pause), cause);
            }
        }
        Assessment::Wait(wait) => {
            let state = RolloutState::Waiting(wait);
            let cause = state.to_string();
            draft.turn_to(state, cause);
        }
        Assessment::Go if matches!(rollout.state, RolloutState::Paused(_)) => {
            draft.turn_to(RolloutState::InProgress, "the reason of the pause is gone".into());
        }
        Assessment::Go => pass.going = true,
    }
}

fn call(
    pass: &mut Pass<'_>,
    rollout: &Rollout,
    counts: &TargetCounts,
    thresholds: &Thresholds,
) -> Assessment {
    let watched = monitor::watch(pass, rollout);
    let board = &pass.board;
    let tally = board.tree().tally();
    let good = matches!(rollout.judgement, VersionJudgement::Good { .. });
    let too_many = counts.failed > thresholds.tolerated;
    let stops = board.entity().policy.on_failure != OnFailure::Continue;
    let lost = tally.of(TargetPhase::Lost);
    if counts.targets == 0 && !good {
        Assessment::Wait(RolloutWait::NoTargets)
    } else if too_many && stops && !good {
        Assessment::Bad
    } else if let Some(MonitorObjection::Wrong(reason)) = watched {
        Assessment::Wrong(reason)
    } else if let Some(MonitorObjection::Silent(reason)) = watched {
        Assessment::Unwatched(reason)
    } else if counts.succeeded >= thresholds.needed && !too_many && !good && watched.is_none() {
        Assessment::Good
    } else if tally.count(OPEN) == 0 {
        match (call_without_work(board, good, counts, thresholds), watched) {
            (Assessment::Good, Some(MonitorObjection::Unheard(wait))) => Assessment::Wait(wait),
            (call, _) => call,
        }
    } else if lost > thresholds.unreachable && !good {
        Assessment::Silent(lost)
    } else if tally.count(ASSIGNABLE) > 0 && thresholds.batch == 0 {
        Assessment::Wait(RolloutWait::BatchIsZero)
    } else {
        Assessment::Go
    }
}

/// One of the targets that are held, and why.
fn held(board: &Board) -> Option<HeldTarget> {
    let tally = board.tree().tally();
    let all = tally.count(HELD);
    let first = board.tree().first(&WalkFilter::all(HELD))?;
    let reason = first.observation.as_ref()?.held.clone()?;
    Some(HeldTarget { target: first.name.clone(), reason, others: all.saturating_sub(1) })
}

/// No target can be assigned anything and none is in flight: the rest are recently silent, held or
/// unreachable.
fn call_without_work(
    board: &Board,
    good: bool,
    counts: &TargetCounts,
    thresholds: &Thresholds,
) -> Assessment {
    let tally = board.tree().tally();
    let silent = tally.of(TargetPhase::Silent) + tally.of(TargetPhase::Lost);
    let waived = board.rollout().map_or(0, |rollout| rollout.waived.failed);
    if tally.of(TargetPhase::Quiet) > 0 {
        Assessment::Wait(RolloutWait::OnlyQuiet)
    } else if good {
        Assessment::End
    } else if tally.count(HELD) > 0 {
        Assessment::Wait(RolloutWait::OnlyHeld { held: held(board) })
    } else if tally.count(STARTED) + counts.succeeded == 0 {
        Assessment::Wait(RolloutWait::OnlyUnreachable)
    } else if silent > thresholds.unreachable {
        Assessment::Silent(silent)
    } else if counts.succeeded + counts.failed == 0 && counts.failing_before > waived {
        Assessment::NoEvidence(counts.failing_before)
    } else if counts.succeeded + counts.failed + counts.failing_before == 0 {
        Assessment::Wait(RolloutWait::OnlyUnreachable)
    } else if counts.failed > thresholds.tolerated || counts.succeeded == 0 {
        Assessment::End
    } else {
        Assessment::Good
    }
}

/// How many targets that were given up are in contact, but do not accept their orders. Costs time in proportion to all targets.
fn refusing(board: &Board) -> u64 {
    let refuses = |member: &&BoardMember| {
        member.place.phase == TargetPhase::Lost && member.observation.as_ref().and_then(refusal).is_some()
    };
    u64::try_from(board.tree().iter().filter(refuses).count()).unwrap_or(u64::MAX)
}

fn why_bad(rollout: &Rollout, counts: &TargetCounts, thresholds: &Thresholds) -> String {
    let TargetCounts { failed, targets, failing_before, .. } = counts;
    if *failed == 0 && *failing_before > 0 {
        return format!("none succeeded, and {failing_before} of {targets} failed as before the rollout");
    }
    let first = match rollout.failures.first() {
        Some(failure) => format!("; {}: {}", failure.target, failure.evidence.summary),
        None => String::new(),
    };
    format!("{failed} of {targets} failed, {} tolerated{first}", thresholds.tolerated)
}

/// What follows when a run is bad: its part of a rollback is to end, whatever its nodes do.
const UNDONE: &str = "another run undoes it";

fn turn_from_bad(draft: &mut RolloutDraft, board: &Board, counts: &TargetCounts, thresholds: &Thresholds) {
    let (failed, tolerated) = (counts.failed, thresholds.tolerated);
    let known_good = draft.progress.last_known_good.clone();
    let pause = match (board.entity().policy.on_failure, known_good) {
        (OnFailure::Rollback, _) if board.entity().kind.is_run() => {
            let cause = format!("{failed} failed, {tolerated} tolerated; {UNDONE}");
            return draft.turn_to(RolloutState::RolledBack, cause);
        }
        (OnFailure::Rollback, Some(good)) => {
            draft.change_rollout(|rollout| rollout.direction = Direction::RollbackFromBad);
            let cause = format!("{failed} failed, {tolerated} tolerated; back to {good}");
            draft.turn_to(RolloutState::RollingBack, cause);
            return;
        }
        (OnFailure::Rollback, None) => RolloutPause::NothingToRollBackTo { failed, tolerated },
        (OnFailure::Pause | OnFailure::Continue, _) => RolloutPause::TooManyFailed { failed, tolerated },
    };
    let cause = format!("paused {pause}");
    draft.turn_to(RolloutState::Paused(pause), cause);
}

/// What follows when a version is bad for another reason than failed targets.
fn turn_from_wrong(draft: &mut RolloutDraft, board: &Board, reason: String) {
    match (board.entity().policy.on_failure, draft.progress.last_known_good.clone()) {
        (OnFailure::Rollback, _) if board.entity().kind.is_run() => {
            draft.turn_to(RolloutState::RolledBack, format!("{reason}; {UNDONE}"));
        }
        (OnFailure::Rollback, Some(good)) => {
            draft.change_rollout(|rollout| rollout.direction = Direction::RollbackFromBad);
            draft.turn_to(RolloutState::RollingBack, format!("{reason}; back to {good}"));
        }
        (OnFailure::Rollback | OnFailure::Pause | OnFailure::Continue, _) => {
            let pause = RolloutPause::Bad { reason };
            let cause = format!("paused {pause}");
            draft.turn_to(RolloutState::Paused(pause), cause);
        }
    }
}

/// Ends a rollout that is complete. One that continued in spite of too many failures has no good version.
fn end_forward(draft: &mut RolloutDraft, rollout: &Rollout, counts: &TargetCounts, thresholds: &Thresholds) {
    let good = matches!(rollout.judgement, VersionJudgement::Good { .. });
    if !good && !matches!(rollout.judgement, VersionJudgement::Bad { .. }) {
        draft.call_bad(why_bad(rollout, counts, thresholds));
    }
    let TargetCounts { targets, succeeded, failed, failing_before, unreachable, held, .. } = *counts;
    let mut cause = format!("{succeeded} of {targets} succeeded");
    let others = [
        (failed, "failed"),
        (failing_before, "failed as before the rollout"),
        (unreachable, "unreachable"),
        (held, "held"),
    ];
    let failed = failed + failing_before;
    for (count, what) in others {
        if count > 0 {
            cause.push_str(&format!(", {count} {what}"));
        }
    }
    let state = if good && failed == 0 {
        RolloutState::Succeeded
    } else if good {
        RolloutState::PartiallySucceeded { failed }
    } else {
        RolloutState::Failed { failed }
    };
    draft.turn_to(state, cause);
}

/// A rollback ends when every target was reassigned and none is in flight; targets held by an operator are
/// not waited for.
fn judge_back(draft: &mut RolloutDraft, board: &Board) {
    let tally = board.tree().tally();
    if tally.count(MOVED) + tally.of(TargetPhase::InFlight) > 0 {
        return;
    }
    let failed = tally.of(TargetPhase::Failed);
    let (back, silent) = (tally.of(TargetPhase::Succeeded), tally.of(TargetPhase::Lost));
    let mut cause = format!("{back} rolled back");
    let others = [
        (failed, "failed"),
        (tally.of(TargetPhase::FailedAsBefore), "failed as before the rollout"),
        (silent, "unreachable"),
        (tally.of(TargetPhase::HeldFlight), "held"),
    ];
    for (count, what) in others {
        if count > 0 {
            cause.push_str(&format!(", {count} {what}"));
        }
    }
    let state = if failed == 0 { RolloutState::RolledBack } else { RolloutState::RollbackFailed { failed } };
    draft.turn_to(state, cause);
}
