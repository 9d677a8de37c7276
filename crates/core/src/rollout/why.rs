//! The texts of target phases, and why a target or rollout is in its present state: one line for people.

mod ended;
mod settled;
pub mod targets;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::board::Board;
use super::board::frame::BoardMode;
use super::board::member::BoardMember;
use super::board::phase::{ASSIGNABLE, PhaseSet, TargetPhase};
use super::environment::Watch;
use super::observation::{Observation, PresenceState, TargetStage, drifted, is_unproved, phase, refusal};
use crate::records::entity::TargetSource;
use crate::records::progress::RolloutActivity;
use crate::records::report::TargetHealth;
use crate::records::rollout::{Direction, Rollout, RolloutState, RolloutWait};
use crate::records::target::{AssignmentOutcome, DeadlineClock, TargetState};
use crate::words::name::TargetName;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// The time of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WhyTime {
    /// The present time.
    pub now: Timestamp,
    /// Since when the control plane could hear every target.
    pub watch: Watch,
}

/// Why a target is in its present state.
#[must_use]
pub fn why(board: &Board, target: &TargetName, time: WhyTime) -> String {
    let entity = &board.entity().name;
    let line = match board.member(target) {
        None => {
            format!("not a target of {entity}: the selector does not match it, and no controller reported it")
        }
        Some(member) => why_member(board, member, time),
    };
    format!("{target}: {line}")
}

fn why_member(board: &Board, member: &BoardMember, time: WhyTime) -> String {
    let held = || held_text(member.observation.as_ref());
    match member.place.phase {
        TargetPhase::Gone => "no longer a target".into(),
        TargetPhase::Departed => "no longer a target; its failure counts until the rollout ends".into(),
        TargetPhase::Rest
        | TargetPhase::Succeeded
        | TargetPhase::Adopted
        | TargetPhase::Failed
        | TargetPhase::FailedAsBefore
        | TargetPhase::Lost => why_assigned(board, member, time.now),
        TargetPhase::InFlight
        | TargetPhase::HeldFlight
        | TargetPhase::Settling
        | TargetPhase::CarriedOver => why_in_flight(board, member, time),
        TargetPhase::Adopting => {
            format!("runs {} without an assignment; succeeds after the soak", rolling(board))
        }
        TargetPhase::Ready | TargetPhase::Unhealthy => why_waiting(board, "waiting to be updated"),
        TargetPhase::Returning => why_waiting(board, "in contact again, waiting for room in the batch"),
        TargetPhase::Arrived => why_waiting(board, &format!("joined on {}", rolling(board))),
        TargetPhase::Passing if board.frame().is_left => {
            "the rollout ended before it began: withdrawn".into()
        }
        TargetPhase::Passing => why_waiting(board, "waiting for the newer version"),
        TargetPhase::Newcomer => {
            why_waiting(board, &format!("waiting to be updated to {} first", known_good(board)))
        }
        TargetPhase::Moved
        | TargetPhase::MovedUnhealthy
        | TargetPhase::MovedFlight
        | TargetPhase::MovedSilent => {
            why_waiting(board, &format!("waiting to be rolled back to {}", known_good(board)))
        }
        TargetPhase::Quiet => "skipped: stopped reporting; updated when it reports again".into(),
        TargetPhase::Silent => "skipped: unreachable; updated when it reports again".into(),
        TargetPhase::Held | TargetPhase::HeldReturning => format!("skipped: {}", held()),
    }
}

fn why_assigned(board: &Board, member: &BoardMember, now: Timestamp) -> String {
    let Some(state) = &member.state else {
        return "no version assigned yet".into();
    };
    let version = &state.version;
    match &state.outcome {
        AssignmentOutcome::InFlight => format!("assigned {version}"),
        AssignmentOutcome::Succeeded { failed_later: None, .. } => {
            settled::why_succeeded(board, member, state, now)
        }
        AssignmentOutcome::Succeeded { failed_later: Some(at), .. } => {
            let seen = member.observation.as_ref().and_then(|observation| drifted(observation, state));
            let what = match seen {
                Some(running) => format!("back on {running} without an error, assigned {version}"),
                None => format!("on {version}, failing for {}", now.since(*at).brief()),
            };
            format!("{what}; not rolled back, because it had succeeded")
        }
        AssignmentOutcome::Failed { evidence, .. } => {
            settled::why_failed(member.observation.as_ref(), state, &evidence.line(), now)
        }
        AssignmentOutcome::Unreachable { at, reason } => {
            why_given_up(version, member.observation.as_ref(), (*at, reason), now)
        }
    }
}

/// The reason of a target that was given up at `at`, and what brings it back.
fn why_given_up(
    version: &Version,
    observation: Option<&Observation>,
    (at, reason): (Timestamp, &str),
    now: Timestamp,
) -> String {
    let since = now.since(at).brief();
    match observation.and_then(refusal) {
        Some(refusal) => format!(
            "assigned {version}, {refusal}; given up {since} ago, judged when it accepts orders again"
        ),
        None => format!("assigned {version}, given up {since} ago: {reason}; judged when it reports again"),
    }
}

fn why_in_flight(board: &Board, member: &BoardMember, time: WhyTime) -> String {
    let Some(state) = &member.state else { return "no version assigned".into() };
    let version = &state.version;
    let activity = match phase(member.observation.as_ref(), Some(state)) {
        TargetStage::Idle | TargetStage::Assigned => format!("assigned {version}, no answer yet"),
        TargetStage::Applying { attempt, waiting_for: None } => {
            format!("applying {version}, attempt {attempt}")
        }
        TargetStage::Applying { attempt, waiting_for: Some(check) } => {
            format!("applying {version}, attempt {attempt}: {check}")
        }
        TargetStage::Soaking { since } => soaking(board, member.observation.as_ref(), state, (since, time)),
        TargetStage::Settling => format!("on {version}, not healthy yet"),
        TargetStage::Blocked { reason } => format!("assigned {version}, blocked: {reason}"),
        TargetStage::Succeeded
        | TargetStage::RolledBack
        | TargetStage::Drifted { .. }
        | TargetStage::Failed
        | TargetStage::Unreachable => format!("assigned {version}"),
    };
    format!("{activity}; {}", why_clock(board, member.observation.as_ref(), state, time.now))
}

/// For how long a target is known to have been healthy, and what it waits for once that is the soak.
fn soaking(
    board: &Board,
    observation: Option<&Observation>,
    state: &TargetState,
    (since, time): (Timestamp, WhyTime),
) -> String {
    let (version, soak) = (&state.version, state.soak);
    let lost = observation.and_then(|observation| contact_lost(board, observation, state, time.now));
    let healthy = lost.unwrap_or(time.now).since(since);
    let covered = observation.is_none_or(|observation| time.watch.covers(observation, time.now));
    match lost {
        Some(_) => {
            format!("on {version}, healthy for {} of {} at its last contact", healthy.brief(), soak.brief())
        }
        None if healthy < soak => {
            format!("on {version}, healthy for {} of {}", healthy.brief(), soak.brief())
        }
        None if covered
            && observation.is_some_and(|observation| is_unproved(observation, state, time.now)) =>
        {
            let healthy = healthy.min(soak).brief();
            format!("on {version}, healthy for {healthy}; {}", confirmation(board, observation))
        }
        None if covered => format!("on {version}, healthy for its soak of {}", soak.brief()),
        None => format!(
            "on {version}, healthy for its soak of {}; waits for its report after the outage, at most {}",
            soak.brief(),
            time.watch.settled().since(time.now).brief()
        ),
    }
}

/// What confirms a soak that has passed by the server's clock.
fn confirmation(board: &Board, observation: Option<&Observation>) -> &'static str {
    match (&board.entity().source, observation.map(|observation| &observation.health)) {
        (TargetSource::External(_), _) => "the next report of its controller confirms it",
        (TargetSource::Nodes(_) | TargetSource::Listed(_), Some(TargetHealth::NoChecks)) => {
            "its agent has not confirmed it yet"
        }
        (TargetSource::Nodes(_) | TargetSource::Listed(_), _) => {
            "its agent asks every check again to confirm it"
        }
    }
}

/// When contact with a target was lost, if it is: at the end of its last session, or when its deadline clock stopped for it.
fn contact_lost(
    board: &Board,
    observation: &Observation,
    state: &TargetState,
    now: Timestamp,
) -> Option<Timestamp> {
    if observation.contact == PresenceState::Up {
        return None;
    }
    let stopped = match state.clock {
        DeadlineClock::Silent { since, .. } => now.minus(board.progress().clock.at(now).since(since)),
        DeadlineClock::Running { .. } | DeadlineClock::Stopped { .. } | DeadlineClock::Overdue { .. } => now,
    };
    Some(stopped.min(observation.contact_since))
}

/// What a target's deadline clock does, and why.
fn why_clock(
    board: &Board,
    observation: Option<&Observation>,
    state: &TargetState,
    now: Timestamp,
) -> String {
    let (clock, deadline) = (board.progress().clock, board.entity().policy.deadline);
    match state.clock {
        DeadlineClock::Running { from, .. } if clock.since.is_none() => {
            let left = from.max(clock.floor).plus(deadline).since(clock.at(now));
            format!("{} until its deadline", left.brief())
        }
        DeadlineClock::Running { .. } | DeadlineClock::Stopped { .. } => "its deadline is paused".into(),
        DeadlineClock::Silent { .. } if observation.and_then(refusal).is_some() => {
            "its deadline is paused until it accepts orders".into()
        }
        DeadlineClock::Silent { .. } => {
            let lost = observation.and_then(|observation| contact_lost(board, observation, state, now));
            let since =
                lost.or_else(|| observation.map(|observation| observation.contact_since)).unwrap_or(now);
            format!("its deadline is paused: not in contact for {}", now.since(since).brief())
        }
        DeadlineClock::Overdue { until: Some(until), .. } => {
            format!("past its deadline; judged in {}, unless it is out of contact", until.since(now).brief())
        }
        DeadlineClock::Overdue { until: None, .. } => "past its deadline: its next report decides".into(),
    }
}

/// Why a target that could be assigned a version now is not.
fn why_waiting(board: &Board, what: &str) -> String {
    if let Some(hold) = &board.entity().hold {
        return format!("{what}: paused by {}", hold.by);
    }
    match board.rollout() {
        Some(Rollout { state: RolloutState::Waiting(wait), .. }) => return format!("{what}: {wait}"),
        Some(Rollout { number, state: RolloutState::Paused(pause), .. }) => {
            return format!("{what}: rollout {number} is paused {pause}");
        }
        Some(_) | None => {}
    }
    let tally = board.tree().tally();
    let in_flight = tally.in_flight;
    let back = board.frame().stage == BoardMode::RollingBack;
    let thresholds = board.thresholds();
    match if back { thresholds.rollback } else { thresholds.batch } {
        0 => format!("{what}: {}", RolloutWait::BatchIsZero),
        batch => match thresholds.max_unavailable {
            Some(most) if u64::from(tally.unavailable) >= most => {
                let limit = RolloutWait::Unavailable { domain: None };
                format!("{what}: {limit}, {} of {most}", tally.unavailable)
            }
            Some(_) | None if board.rollout().is_none() && u64::from(in_flight) < batch => {
                format!("{what}; no rollout is in progress")
            }
            Some(_) | None => format!("{what}: {in_flight} in flight, at most {batch} at once"),
        },
    }
}

/// Why an entity's rollout is in its present state. `last` is the record of its newest rollout, whose outcome is told
/// until the next one starts.
#[must_use]
pub fn why_rollout(board: &Board, last: Option<&Rollout>) -> String {
    let (entity, progress) = (board.entity(), board.progress());
    if let Some(rollout) = board.rollout() {
        return why_under_way(board, rollout);
    }
    if let Some(wanted) = entity.wanted.as_ref().filter(|wanted| wanted.request > progress.handled) {
        return format!("{} requested, not started yet", wanted.version);
    }
    if progress.target.is_none() && progress.last_known_good.is_none() {
        return "no version was requested yet; use 'rollout start'".into();
    }
    let good = progress.last_known_good.as_ref();
    let outcome = last.and_then(|last| ended::outcome(last, good));
    let outcome = outcome.unwrap_or_else(|| "no rollout is in progress".into());
    match (progress.activity, good) {
        (RolloutActivity::Abandoned | RolloutActivity::Continued, Some(good)) => {
            format!("{outcome}; {good} is last known good; use 'rollout start' or 'rollout undo'")
        }
        (_, None) => format!("{outcome}; no version is last known good yet"),
        (_, Some(good)) => format!("{outcome}; {good} is last known good"),
    }
}

fn why_under_way(board: &Board, rollout: &Rollout) -> String {
    let counts = board.counts();
    let Rollout { number, version, state, .. } = rollout;
    if rollout.direction != Direction::Forward {
        let left = board.tree().tally().count(super::board::phase::MOVED);
        let good = known_good(board);
        // An undo after an abort is a rollout of last known good itself.
        let way = if version.as_str() == good { String::new() } else { format!(" from {version}") };
        let state = if *state == RolloutState::RollingBack {
            format!("is rolling back{way} to {good}")
        } else {
            format!("is {state}, while rolling back{way} to {good}")
        };
        let parts = [
            (counts.returned, "rolled back"),
            (counts.in_flight, "in flight"),
            (left, "left"),
            (counts.failed_return, "failed"),
            (counts.missed_return, "unreachable"),
        ];
        let parts =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let parts: Vec<String> = parts.collect();
        let separator = if parts.is_empty() { "" } else { ": " };
        return format!("rollout {number} {state}{separator}{}", parts.join(", "));
    }
    let can = board.tree().tally().count(ASSIGNABLE);
    let skipped = board.tree().tally().count(PhaseSet::of(&[
        TargetPhase::Quiet,
        TargetPhase::Silent,
        TargetPhase::Held,
        TargetPhase::HeldReturning,
        TargetPhase::Lost,
    ]));
    let next = match &board.entity().wanted {
        Some(wanted) if wanted.request > board.progress().handled => {
            format!("; {} starts when it ends", wanted.version)
        }
        Some(_) | None => String::new(),
    };
    let some = [(counts.in_flight, "in flight"), (can, "waiting"), (skipped, "skipped")];
    let some = some.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
    let mut tally = format!(
        "{} of {} succeeded{}, {} failed, {} tolerated",
        counts.succeeded,
        counts.targets,
        some.collect::<String>(),
        counts.failed,
        board.thresholds().tolerated
    );
    if counts.failing_before > 0 {
        tally.push_str(&format!(", {} failed as before the rollout", counts.failing_before));
    }
    match state.details() {
        Some(_) => format!("rollout {number} to {version} is {state} ({tally}){next}"),
        None => format!("rollout {number} to {version} is {state}: {tally}{next}"),
    }
}

fn held_text(observation: Option<&Observation>) -> &str {
    observation.and_then(|observation| observation.held.as_deref()).unwrap_or("no reason given")
}

fn rolling(board: &Board) -> String {
    board.frame().rolling.as_ref().map_or_else(|| "the version".into(), ToString::to_string)
}

fn known_good(board: &Board) -> String {
    board.frame().base.as_ref().map_or_else(|| "last known good".into(), ToString::to_string)
}
