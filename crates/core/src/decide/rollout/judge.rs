//! Judging: from the figures of a rollout to what is held of its version, and to its state.

use alloc::format;
use alloc::string::{String, ToString};

use super::head::Head;
use super::pass::Pass;
use crate::records::policy::OnFailure;
use crate::records::rollout::{Figures, Heading, Judgement, Pause, Rollout, State, Wait};
use crate::rollout::board::Board;
use crate::rollout::board::lane::{Lane, MOVED, OPEN, TELLABLE};
use crate::rollout::thresholds::Thresholds;

/// Judges the rollout under way; says whether that changed anything.
pub(super) fn judge(pass: &mut Pass) -> bool {
    let mut head = pass.head();
    let Some(rollout) = head.rollout.clone() else { return false };
    match (&rollout.state, &rollout.heading) {
        (
            State::Running | State::Waiting(_) | State::Paused(Pause::TooManyUnreachable { .. }),
            Heading::Forward,
        ) => judge_forward(&mut head, &pass.board, &rollout),
        (State::RollingBack, _) => judge_back(&mut head, &pass.board),
        (
            State::Running
            | State::Waiting(_)
            | State::Paused(_)
            | State::Succeeded
            | State::SucceededPartly { .. }
            | State::RolledBack
            | State::RollbackFailed { .. }
            | State::Aborted { .. }
            | State::Superseded { .. },
            _,
        ) => {}
    }
    pass.take(head)
}

/// What the figures say.
enum Call {
    /// Too many failed.
    Bad,
    /// Enough succeeded.
    Good,
    /// Too many are silent.
    Silent(u64),
    /// Nothing is left to do.
    End,
    /// It goes on, in this state.
    Stay(State),
}

fn judge_forward(head: &mut Head, board: &Board, rollout: &Rollout) {
    let (figures, thresholds) = (board.figures(), board.thresholds());
    match call(board, rollout, &figures, &thresholds) {
        Call::Bad => {
            head.call_bad(why_bad(rollout, &figures, &thresholds));
            turn_from_bad(head, board, &figures, &thresholds);
        }
        Call::Good => {
            let Figures { targets, succeeded, .. } = figures;
            head.call_good(format!("{succeeded} of {targets} succeeded, {} needed", thresholds.needed));
        }
        Call::Silent(unreachable) => {
            let tolerated = thresholds.unreachable;
            let pause = Pause::TooManyUnreachable { unreachable, tolerated };
            if !matches!(rollout.state, State::Paused(_)) {
                head.turn_to(State::Paused(pause.clone()), format!("paused {pause}"));
            }
        }
        Call::End => end_forward(head, rollout, &figures, &thresholds),
        Call::Stay(state) => {
            let cause = state.to_string();
            head.turn_to(state, cause);
        }
    }
}

fn call(board: &Board, rollout: &Rollout, figures: &Figures, thresholds: &Thresholds) -> Call {
    let tally = board.tree().tally();
    let good = matches!(rollout.judgement, Judgement::Good { .. });
    let too_many = figures.failed > thresholds.tolerated;
    let stops = board.entity().policy.on_failure() != OnFailure::Continue;
    let lost = tally.of(Lane::Lost);
    if figures.targets == 0 && !good {
        Call::Stay(State::Waiting(Wait::NoTargets))
    } else if too_many && stops && !good {
        Call::Bad
    } else if figures.succeeded >= thresholds.needed && !too_many && !good {
        Call::Good
    } else if tally.count(OPEN) == 0 {
        call_without_work(board, good, figures, thresholds)
    } else if lost > thresholds.unreachable && !good {
        Call::Silent(lost)
    } else if tally.count(TELLABLE) > 0 && thresholds.batch == 0 {
        Call::Stay(State::Waiting(Wait::BatchIsZero))
    } else {
        Call::Stay(State::Running)
    }
}

/// Nobody can be told anything and no verdict is outstanding: what is left are the quiet, the held and the silent.
fn call_without_work(board: &Board, good: bool, figures: &Figures, thresholds: &Thresholds) -> Call {
    let tally = board.tree().tally();
    let silent = tally.of(Lane::Away) + tally.of(Lane::Lost);
    if tally.of(Lane::Quiet) > 0 {
        Call::Stay(State::Waiting(Wait::OnlyQuiet))
    } else if good {
        Call::End
    } else if tally.of(Lane::Held) + tally.of(Lane::HeldFlight) > 0 {
        Call::Stay(State::Waiting(Wait::OnlyHeld))
    } else if silent > thresholds.unreachable {
        Call::Silent(silent)
    } else if figures.succeeded + figures.failed == 0 {
        Call::Stay(State::Waiting(Wait::OnlyUnreachable))
    } else if figures.failed > thresholds.tolerated || figures.succeeded == 0 {
        Call::End
    } else {
        Call::Good
    }
}

fn why_bad(rollout: &Rollout, figures: &Figures, thresholds: &Thresholds) -> String {
    let Figures { failed, targets, .. } = figures;
    let first = match rollout.failures.first() {
        Some(failure) => format!("; {}: {}", failure.target, failure.evidence.summary),
        None => String::new(),
    };
    format!("{failed} of {targets} failed, {} tolerated{first}", thresholds.tolerated)
}

fn turn_from_bad(head: &mut Head, board: &Board, figures: &Figures, thresholds: &Thresholds) {
    let (failed, tolerated) = (figures.failed, thresholds.tolerated);
    let known_good = head.progress.last_known_good.clone();
    let pause = match (board.entity().policy.on_failure(), known_good) {
        (OnFailure::Rollback, Some(good)) => {
            head.change_rollout(|rollout| rollout.heading = Heading::BackFromBad);
            let cause = format!("{failed} failed, {tolerated} tolerated; back to {good}");
            head.turn_to(State::RollingBack, cause);
            return;
        }
        (OnFailure::Rollback, None) => Pause::NothingToRollBackTo { failed, tolerated },
        (OnFailure::Pause | OnFailure::Continue, _) => Pause::TooManyFailed { failed, tolerated },
    };
    let cause = format!("paused {pause}");
    head.turn_to(State::Paused(pause), cause);
}

/// Ends a rollout that went all the way. Whoever went on in spite of too many failures has no good version.
fn end_forward(head: &mut Head, rollout: &Rollout, figures: &Figures, thresholds: &Thresholds) {
    let good = matches!(rollout.judgement, Judgement::Good { .. });
    if !good && !matches!(rollout.judgement, Judgement::Bad { .. }) {
        head.call_bad(why_bad(rollout, figures, thresholds));
    }
    let Figures { targets, succeeded, failed, unreachable, held, .. } = *figures;
    let mut cause = format!("{succeeded} of {targets} succeeded");
    for (count, what) in [(failed, "failed"), (unreachable, "not reached"), (held, "held")] {
        if count > 0 {
            cause.push_str(&format!(", {count} {what}"));
        }
    }
    let state = if good && failed == 0 { State::Succeeded } else { State::SucceededPartly { failed } };
    head.turn_to(state, cause);
}

/// A rollback ends when everyone was told and nobody's verdict is outstanding; whom an operator holds is not waited for.
fn judge_back(head: &mut Head, board: &Board) {
    let tally = board.tree().tally();
    if tally.count(MOVED) + tally.of(Lane::InFlight) > 0 {
        return;
    }
    let failed = tally.of(Lane::Failed);
    let (back, silent) = (tally.of(Lane::Succeeded), tally.of(Lane::Lost));
    let mut cause = format!("{back} back on last known good");
    for (count, what) in [(failed, "failed"), (silent, "not reached"), (tally.of(Lane::HeldFlight), "held")] {
        if count > 0 {
            cause.push_str(&format!(", {count} {what}"));
        }
    }
    let state = if failed == 0 { State::RolledBack } else { State::RollbackFailed { failed } };
    head.turn_to(state, cause);
}
