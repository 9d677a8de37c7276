//! Which targets are not as desired while no rollout is in progress, and the failures for which the last one was rolled
//! back.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::records::entity::EntityKind;
use crate::records::report::TargetHealth;
use crate::records::rollout::{Direction, Rollout};
use crate::records::target::{AssignmentOutcome, TargetState};
use crate::rollout::board::Board;
use crate::rollout::board::frame::BoardMode;
use crate::rollout::board::member::BoardMember;
use crate::rollout::observation::{Observation, PresenceState, drifted, is_broken, is_well, refusal};
use crate::words::name::EntityName;
use crate::words::plural::Plural;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// Most failures of a rolled back rollout that are named.
const FAILURES: usize = 3;

/// What keeps a target from being as desired, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deviation {
    /// It failed on its version, or fails on it since.
    Failed,
    /// It is in contact and does not accept its orders.
    Refusing,
    /// It runs another version than the assigned one, without an error.
    Drifted,
    /// It does not report.
    Unreachable,
    /// Its assignment has no outcome yet.
    InFlight,
    /// It was left on another version than the requested one.
    Left,
    /// It has not succeeded on the version that it belongs on.
    Waiting,
}

impl Deviation {
    /// How targets with this deviation are counted.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Refusing => "not accepting orders",
            Self::Drifted => "drifted",
            Self::Unreachable => "unreachable",
            Self::InFlight => "in flight",
            Self::Left => "on another version",
            Self::Waiting => "waiting",
        }
    }

    /// The deviation of a target from the desired version; `None` if it is as desired, or a former target.
    pub(super) fn of(member: &BoardMember, desired: &Version) -> Option<Self> {
        let observation = member.observation.as_ref()?;
        let known = match &member.state {
            Some(state) => Self::of_assigned(observation, state, desired),
            None => None,
        };
        match known {
            Some(Self::Failed) => Some(Self::Failed),
            // What is recorded of it, and what it reported before, may be of another history.
            _ if observation.refuses.is_some() => Some(Self::Refusing),
            Some(known) => Some(known),
            None if is_well(observation, desired) => None,
            None if is_away(observation) => Some(Self::Unreachable),
            None if is_broken(observation) && member.state.is_some() => Some(Self::Failed),
            None => Some(Self::Waiting),
        }
    }

    fn of_assigned(observation: &Observation, state: &TargetState, desired: &Version) -> Option<Self> {
        match &state.outcome {
            AssignmentOutcome::Failed { .. } if !is_mended(observation, state) => Some(Self::Failed),
            AssignmentOutcome::Failed { .. } if state.version != *desired => Some(Self::Left),
            AssignmentOutcome::Failed { .. } => None,
            AssignmentOutcome::Unreachable { .. } => Some(Self::Unreachable),
            AssignmentOutcome::InFlight => Some(Self::InFlight),
            AssignmentOutcome::Succeeded { .. } if drifted(observation, state).is_some() => {
                Some(Self::Drifted)
            }
            AssignmentOutcome::Succeeded { failed_later: Some(_), .. } => Some(Self::Failed),
            AssignmentOutcome::Succeeded { .. } if is_away(observation) => Some(Self::Unreachable),
            AssignmentOutcome::Succeeded { .. } if state.version != *desired => Some(Self::Left),
            AssignmentOutcome::Succeeded { .. } => None,
        }
    }
}

const fn is_away(observation: &Observation) -> bool {
    match observation.contact {
        PresenceState::Unreachable | PresenceState::Never | PresenceState::Suspect => true,
        PresenceState::Up => false,
    }
}

/// The version that all targets are to run while no rollout is in progress; `None` while one is, or is about to start,
/// or before the first request.
pub(super) fn desired(board: &Board) -> Option<&Version> {
    let wanted = board.entity().wanted.as_ref()?;
    let is_idle = board.progress().active().is_none() && wanted.request <= board.progress().handled;
    board.desired().filter(|_| is_idle)
}

/// That every target is as desired; `None` without targets.
pub(super) fn all_run(board: &Board, version: &Version) -> Option<String> {
    let runs = match board.entity().kind {
        // They carried it out, and something may have undone it since.
        EntityKind::Workflow(_) => return None,
        EntityKind::Action(_) => ["ran", "ran"],
        EntityKind::Version | EntityKind::Profile(_) => ["runs", "run"],
    };
    match (u64::from(board.tree().tally().members), runs) {
        (0, _) => None,
        (1, [runs, _]) => Some(format!("its only target {runs} {version}")),
        (members, [_, run]) => Some(format!("all {} {run} {version}", Plural(members, "target"))),
    }
}

/// The reason of a target that succeeded on its version and did not fail since.
pub(super) fn why_succeeded(
    board: &Board,
    member: &BoardMember,
    state: &TargetState,
    now: Timestamp,
) -> String {
    let version = &state.version;
    let Some(observation) = &member.observation else { return format!("on {version}, nothing to do") };
    if let Some(refusal) = refusal(observation) {
        return match observation.running.as_ref().filter(|running| *running != version) {
            Some(running) => format!("runs {running}, assigned {version}, {refusal}"),
            None => format!("on {version}, {refusal}"),
        };
    }
    if let Some(running) = drifted(observation, state) {
        return format!("runs {running} without an error, assigned {version}");
    }
    match (observation.contact, &observation.health) {
        (PresenceState::Never, _) => return format!("assigned {version}, has not connected yet"),
        (PresenceState::Unreachable | PresenceState::Suspect, _) => {
            let (contact, since) = (observation.contact.as_str(), now.since(observation.contact_since));
            return format!("on {version}, {contact} for {}", since.brief());
        }
        (PresenceState::Up, TargetHealth::Failing { evidence }) => {
            return format!("on {version}, not healthy: {}", evidence.summary);
        }
        (PresenceState::Up, TargetHealth::NoChecks | TargetHealth::Healthy) => {}
    }
    let left = board.desired().filter(|desired| *desired != version);
    match left.filter(|_| board.frame().stage == BoardMode::Abandoned) {
        Some(desired) => {
            format!("on {version}, left there: the rollout of {desired} ended before its update")
        }
        None => format!("on {version}, nothing to do"),
    }
}

/// Whether a target that had failed is healthy on its version.
fn is_mended(observation: &Observation, state: &TargetState) -> bool {
    observation.answering == state.assignment && is_well(observation, &state.version)
}

/// The reason of a target that failed on its version: the failure, unless it is over.
pub(super) fn why_failed(
    observation: Option<&Observation>,
    state: &TargetState,
    failure: &str,
    now: Timestamp,
) -> String {
    let version = &state.version;
    let mended = observation.filter(|observation| is_mended(observation, state));
    match mended.and_then(|observation| observation.healthy_since) {
        Some(since) => {
            let healthy = now.since(since.max(state.assigned_at)).brief();
            format!("on {version}, healthy for {healthy} after it had failed: {failure}")
        }
        None => {
            let before = state.failing_before.as_ref().filter(|before| *before != version);
            let before = before.map(|before| format!("; it was failing on {before} before"));
            format!("failed on {version}: {failure}{}", before.unwrap_or_default())
        }
    }
}

/// The first failures of a rollout that is or was rolled back, with their evidence and the command that shows more.
pub(super) fn failures(entity: &EntityName, last: Option<&Rollout>, now: Timestamp) -> Vec<String> {
    let rolled_back = last.filter(|rollout| rollout.direction != Direction::Forward);
    let Some(rollout) = rolled_back.filter(|rollout| !rollout.failures.is_empty()) else { return Vec::new() };
    let named = rollout.failures.iter().take(FAILURES).map(|failure| {
        let (version, since) = (&rollout.version, now.since(failure.at).brief());
        format!("{}: failed on {version} {since} ago: {}", failure.target, failure.evidence.line())
    });
    let more =
        format!("every failure with its output: bellwether rollout get {entity} --number {}", rollout.number);
    named.chain(core::iter::once(more)).collect()
}
