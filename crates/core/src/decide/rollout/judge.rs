//! Judging: from the figures of a rollout to what is held of its version, and to its state.

use alloc::format;
use alloc::string::{String, ToString};

use super::head::Head;
use super::pass::Pass;
use super::stage;
use super::watch::{self, Watched};
use crate::records::policy::OnFailure;
use crate::records::rollout::{Figures, Heading, Judgement, Pause, Rollout, State, Wait};
use crate::rollout::board::Board;
use crate::rollout::board::lane::{Lane, MOVED, OPEN, TELLABLE, TURNED};
use crate::rollout::thresholds::Thresholds;

/// Judges the rollout under way; says whether that changed anything.
pub(super) fn judge(pass: &mut Pass<'_>) -> bool {
    pass.going = false;
    if stage::advance(pass) {
        return true;
    }
    let mut head = pass.head();
    let Some(rollout) = head.rollout.clone() else { return false };
    match (&rollout.state, &rollout.heading) {
        (
            State::Running
            | State::Waiting(_)
            | State::Paused(Pause::TooManyUnreachable { .. } | Pause::MonitorSilent { .. }),
            Heading::Forward,
        ) => judge_forward(pass, &mut head, &rollout),
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
    /// It is bad for this reason, whatever the figures say.
    Wrong(String),
    /// The monitor does not answer.
    Unwatched(String),
    /// Enough succeeded.
    Good,
    /// Too many are silent.
    Silent(u64),
    /// Nothing is left to do.
    End,
    /// It waits for this.
    Wait(Wait),
    /// It goes on.
    Go,
}

fn judge_forward(pass: &mut Pass<'_>, head: &mut Head, rollout: &Rollout) {
    let (figures, thresholds) = (pass.board.figures(), pass.board.thresholds());
    watch::count_gain(pass, head, rollout, &figures);
    let call = call(pass, rollout, &figures, &thresholds);
    let board = &pass.board;
    match call {
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
        Call::Wrong(reason) => {
            head.call_bad(reason.clone());
            turn_from_wrong(head, board, reason);
        }
        Call::Unwatched(reason) => {
            if !matches!(rollout.state, State::Paused(_)) {
                let pause = Pause::MonitorSilent { reason };
                let cause = format!("paused {pause}");
                head.turn_to(State::Paused(pause), cause);
            }
        }
        Call::Wait(wait) => {
            let state = State::Waiting(wait);
            let cause = state.to_string();
            head.turn_to(state, cause);
        }
        Call::Go if matches!(rollout.state, State::Paused(_)) => {
            head.turn_to(State::Running, State::Running.to_string());
        }
        Call::Go => pass.going = true,
    }
}

fn call(pass: &mut Pass<'_>, rollout: &Rollout, figures: &Figures, thresholds: &Thresholds) -> Call {
    let watched = watch::watch(pass, rollout);
    let board = &pass.board;
    let tally = board.tree().tally();
    let good = matches!(rollout.judgement, Judgement::Good { .. });
    let too_many = figures.failed > thresholds.tolerated;
    let stops = board.entity().policy.on_failure != OnFailure::Continue;
    let lost = tally.of(Lane::Lost);
    if figures.targets == 0 && !good {
        Call::Wait(Wait::NoTargets)
    } else if too_many && stops && !good {
        Call::Bad
    } else if let Some(Watched::Wrong(reason)) = watched {
        Call::Wrong(reason)
    } else if let Some(Watched::Silent(reason)) = watched {
        Call::Unwatched(reason)
    } else if figures.succeeded >= thresholds.needed && !too_many && !good && watched.is_none() {
        Call::Good
    } else if tally.count(OPEN) == 0 {
        match (call_without_work(board, good, figures, thresholds), watched) {
            (Call::Good, Some(Watched::Unheard(wait))) => Call::Wait(wait),
            (call, _) => call,
        }
    } else if lost > thresholds.unreachable && !good {
        Call::Silent(lost)
    } else if tally.count(TELLABLE) > 0 && thresholds.batch == 0 {
        Call::Wait(Wait::BatchIsZero)
    } else {
        Call::Go
    }
}

/// Nobody can be told anything and no verdict is outstanding: what is left are the quiet, the held and the silent.
fn call_without_work(board: &Board, good: bool, figures: &Figures, thresholds: &Thresholds) -> Call {
    let tally = board.tree().tally();
    let silent = tally.of(Lane::Away) + tally.of(Lane::Lost);
    if tally.of(Lane::Quiet) > 0 {
        Call::Wait(Wait::OnlyQuiet)
    } else if good {
        Call::End
    } else if tally.of(Lane::Held) + tally.of(Lane::HeldFlight) > 0 {
        Call::Wait(Wait::OnlyHeld)
    } else if tally.count(TURNED) + figures.succeeded == 0 {
        Call::Wait(Wait::OnlyUnreachable)
    } else if silent > thresholds.unreachable {
        Call::Silent(silent)
    } else if figures.succeeded + figures.failed == 0 {
        Call::Wait(Wait::OnlyUnreachable)
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
    let pause = match (board.entity().policy.on_failure, known_good) {
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

/// What follows when a version is bad for another reason than its failures.
fn turn_from_wrong(head: &mut Head, board: &Board, reason: String) {
    match (board.entity().policy.on_failure, head.progress.last_known_good.clone()) {
        (OnFailure::Rollback, Some(good)) => {
            head.change_rollout(|rollout| rollout.heading = Heading::BackFromBad);
            head.turn_to(State::RollingBack, format!("{reason}; back to {good}"));
        }
        (OnFailure::Rollback | OnFailure::Pause | OnFailure::Continue, _) => {
            let pause = Pause::Bad { reason };
            let cause = format!("paused {pause}");
            head.turn_to(State::Paused(pause), cause);
        }
    }
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
