//! Why something waits, is skipped, stands still or is refused: one line for a person.

use alloc::format;
use alloc::string::{String, ToString};

use super::board::frame::Stage;
use super::board::lane::{Lane, LaneSet, TELLABLE};
use super::board::member::Member;
use super::board::{Board, tally};
use super::sighting::{Phase, Sighting, phase};
use crate::records::progress::Course;
use crate::records::rollout::{Rollout, State};
use crate::records::target::{Outcome, TargetState};
use crate::words::name::TargetName;
use crate::words::time::{Span, Timestamp};

/// Why a target is where it is.
#[must_use]
pub fn why(board: &Board, target: &TargetName, now: Timestamp) -> String {
    let entity = &board.entity().name;
    let line = match board.member(target) {
        None => {
            format!("it is no target of {entity}: nothing reported it, and the selector does not pick it")
        }
        Some(member) => why_member(board, member, now),
    };
    format!("{target}: {line}")
}

fn why_member(board: &Board, member: &Member, now: Timestamp) -> String {
    let held = || held_text(member.sighting.as_ref());
    match member.place.lane {
        Lane::Gone => "it is no target any more".into(),
        Lane::Departed => "it is no target any more; its failure counts until the rollout ends".into(),
        Lane::Rest | Lane::Succeeded | Lane::Adopted | Lane::Failed | Lane::Lost => why_told(member, now),
        Lane::InFlight | Lane::HeldFlight | Lane::Settling | Lane::Carried => why_flying(board, member, now),
        Lane::Adopting => format!("runs {} without being told; counts after the soak", rolling(board)),
        Lane::Ready | Lane::Sick => why_waiting(board, "waits for its turn"),
        Lane::Passing => why_waiting(board, "waits to be told the newer version"),
        Lane::Newcomer => why_waiting(board, &format!("waits to be brought to {}", known_good(board))),
        Lane::Moved | Lane::MovedFlight | Lane::MovedAway => {
            why_waiting(board, &format!("waits to go back to {}", known_good(board)))
        }
        Lane::Quiet => "skipped while it is quiet; takes its turn when it is heard from".into(),
        Lane::Away => "skipped while it is not heard from; takes its turn when it is back".into(),
        Lane::Held => format!("skipped while it is held: {}", held()),
    }
}

fn why_told(member: &Member, now: Timestamp) -> String {
    let Some(state) = &member.state else {
        return "told nothing, so it stays as it is: there is no last known good version yet".into();
    };
    let version = &state.version;
    match &state.outcome {
        Outcome::InFlight => format!("told {version}"),
        Outcome::Succeeded { failed_later: None, .. } => format!("on {version}, nothing to do"),
        Outcome::Succeeded { failed_later: Some(at), .. } => {
            format!(
                "on {version}, but failing since {} ago; not rolled back, it had succeeded",
                now.since(*at)
            )
        }
        Outcome::Failed { evidence, .. } => format!("failed on {version}: {}", evidence.summary),
        Outcome::Unreachable { at } => {
            format!(
                "told {version}, not heard from in time {} ago; looked at when it is back",
                now.since(*at)
            )
        }
    }
}

fn why_flying(board: &Board, member: &Member, now: Timestamp) -> String {
    let Some(state) = &member.state else { return "told nothing".into() };
    let version = &state.version;
    let doing = match phase(member.sighting.as_ref(), Some(state)) {
        Phase::Idle | Phase::Assigned => format!("told {version}, no answer yet"),
        Phase::Applying { attempt } => format!("applying {version}, attempt {attempt}"),
        Phase::Soaking { since } => {
            let soak = board.entity().policy.soak;
            format!("on {version}, healthy for {} of {soak}", now.since(since))
        }
        Phase::Settling => format!("on {version}, not healthy yet"),
        Phase::Blocked { reason } => format!("told {version}, blocked: {reason}"),
        Phase::Succeeded | Phase::Failed | Phase::Unreachable => format!("told {version}"),
    };
    match deadline_left(board, member, state, now) {
        Some(left) => format!("{doing}; {left} to its deadline"),
        None => format!("{doing}; its deadline stands still"),
    }
}

fn deadline_left(board: &Board, member: &Member, state: &TargetState, now: Timestamp) -> Option<Span> {
    let clock = board.progress().clock;
    let counts = clock.since.is_none() && member.place.clock_from != tally::NEVER && state.is_in_flight();
    counts.then(|| member.place.clock_from.plus(board.entity().policy.deadline).since(clock.at(now)))
}

/// Why a target that could be told something is not.
fn why_waiting(board: &Board, what: &str) -> String {
    if let Some(hold) = &board.entity().hold {
        return format!("{what}: paused by {}", hold.by);
    }
    if let Some(Rollout { number, state: state @ State::Paused(_), .. }) = board.rollout() {
        return format!("{what}: rollout {number} is {state}");
    }
    if let Some(Rollout { number, state: State::Waiting(wait), .. }) = board.rollout() {
        return format!("{what}: rollout {number} waits: {wait}");
    }
    let tally = board.tree().tally();
    let flying = tally.flying;
    let back = board.frame().stage == Stage::Back;
    let thresholds = board.thresholds();
    match if back { thresholds.rollback } else { thresholds.batch } {
        0 => format!("{what}: the policy's batch is 0, which holds"),
        batch => match thresholds.max_unavailable {
            Some(most) if !back && u64::from(tally.unavailable) >= most => {
                format!("{what}: {} are unavailable, which is as many as may be", tally.unavailable)
            }
            Some(_) | None => format!("{what}: {flying} in flight, {batch} at once"),
        },
    }
}

/// Why an entity's rollout stands where it stands.
#[must_use]
pub fn why_rollout(board: &Board) -> String {
    let (entity, progress) = (board.entity(), board.progress());
    if let Some(rollout) = board.rollout() {
        return why_under_way(board, rollout);
    }
    let asked = entity.wanted.as_ref().filter(|wanted| wanted.request > progress.handled);
    match (asked, progress.course, &progress.last_known_good) {
        (Some(wanted), _, _) => format!("{} was asked for and is not acted on yet", wanted.version),
        (None, _, None) if progress.target.is_none() => {
            "no version was ever asked for; use 'rollout start'".into()
        }
        (None, Course::Left, _) => {
            "no rollout is under way; the last one left targets as they are: 'rollout start' or 'rollout undo'"
                .into()
        }
        (None, _, Some(good)) => format!("no rollout is under way; {good} is last known good"),
        (None, _, None) => "no rollout is under way, and no version is known to be good".into(),
    }
}

fn why_under_way(board: &Board, rollout: &Rollout) -> String {
    let figures = board.figures();
    let Rollout { number, version, state, .. } = rollout;
    if matches!(rollout.state, State::RollingBack) {
        let left = board.tree().tally().count(super::board::lane::MOVED);
        return format!(
            "rollout {number} from {version} back to {}: {} back, {} in flight, {left} to go, {} failed",
            known_good(board),
            figures.returned,
            figures.in_flight,
            figures.failed_return
        );
    }
    let can = board.tree().tally().count(TELLABLE);
    let skipped = board.tree().tally().count(LaneSet::of(&[Lane::Quiet, Lane::Away, Lane::Held, Lane::Lost]));
    let next = match &board.entity().wanted {
        Some(wanted) if wanted.request > board.progress().handled => {
            format!("; {} starts when it has ended", wanted.version)
        }
        Some(_) | None => String::new(),
    };
    format!(
        "rollout {number} to {version} is {state}: {} of {} succeeded, {} in flight, {can} waiting, {skipped} skipped, \
         {} failed with {} tolerated{next}",
        figures.succeeded,
        figures.targets,
        figures.in_flight,
        figures.failed,
        board.thresholds().tolerated
    )
}

fn held_text(sighting: Option<&Sighting>) -> &str {
    sighting.and_then(|sighting| sighting.held.as_deref()).unwrap_or("no reason given")
}

fn rolling(board: &Board) -> String {
    board.frame().rolling.as_ref().map_or_else(|| "the version".into(), ToString::to_string)
}

fn known_good(board: &Board) -> String {
    board.frame().good.as_ref().map_or_else(|| "last known good".into(), ToString::to_string)
}
