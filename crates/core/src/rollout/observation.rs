//! Observations: what the engine knows about the present state of a target, whoever reported it. Owns the
//! derived stage of a target, which is never stored.

use alloc::string::String;
use alloc::sync::Arc;

use crate::records::hook_answers::MonitorReport;
pub use crate::records::node::PresenceState;
use crate::records::report::{TargetActivity, TargetHealth};
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use crate::words::counter::AssignmentNumber;
use crate::words::label::Labels;
use crate::words::node_data::NodeData;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// The present state of one target, as reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The version it runs, after validation.
    pub running: Option<Version>,
    /// The assignment that the report answers; zero if the target was never assigned a version.
    pub answering: AssignmentNumber,
    /// Its activity on that assignment.
    pub activity: TargetActivity,
    /// Combined state of its checks.
    pub health: TargetHealth,
    /// Start of the present uninterrupted healthy time on `running`, by the server's clock; without checks,
    /// the time it began to run it. `None` while unknown or not healthy.
    pub healthy_since: Option<Timestamp>,
    /// Why its health was lost in the soak of the assignment that it answers, as its agent remembers it.
    pub soak_failure: Option<Arc<str>>,
    /// Whether its agent has started again since it accepted the assignment that it answers.
    pub agent_restarted: bool,
    /// What proves for how long it has been healthy.
    pub proof: HealthProof,
    /// Time of the report, by the server's clock.
    pub reported_at: Timestamp,
    /// Time of the first report that answers its assignment, by the server's clock.
    pub answered_at: Timestamp,
    /// Whether it is reachable.
    pub contact: PresenceState,
    /// Start of the present contact, by the server's clock: time before it counts towards no deadline.
    pub contact_since: Timestamp,
    /// An operator's pause or cordon on the target, with its reason.
    pub held: Option<Arc<str>>,
    /// Why it does not accept its orders although it is in contact: a fact about the machine, and no evidence against a
    /// version. `None` if it accepts them, or is out of contact.
    pub refuses: Option<Arc<str>>,
    /// Whether it is drained: what it serves is not returned to clients, so that it is not functional.
    pub drained: bool,
    /// Labels that selectors match, besides its name.
    pub labels: Labels,
    /// Facts, own params and profiles, which selectors match too.
    pub data: NodeData,
    /// The last answer of the monitoring hook about it.
    pub word: Option<MonitorReport>,
}

/// What proves for how long a target has been healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthProof {
    /// Its agent, of a build that does not measure it, would have reported otherwise: the server's clock counts while it is in
    /// contact.
    Contact,
    /// Its agent observed this healthy time on its assignment, and confirmed it by its checks.
    Confirmed(Span),
    /// Its reports, each about the time until it: nothing counts after the last one.
    Reports,
}

/// Stage of a target, for people; derived, never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetStage {
    /// It has no assignment.
    Idle,
    /// It was assigned a version and has not answered yet.
    Assigned,
    /// It applies the version.
    Applying {
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The check that has not passed yet, with its first complaint.
        waiting_for: Option<Arc<str>>,
    },
    /// It runs the version and is healthy, but not for the soak time yet.
    Soaking {
        /// Start of the healthy time, by the server's clock.
        since: Timestamp,
    },
    /// It runs the version and is not healthy yet.
    Settling,
    /// It waits for something else.
    Blocked {
        /// What it waits for, in one line.
        reason: String,
    },
    /// It runs the version and has soaked.
    Succeeded,
    /// It runs last known good again: its rollout was rolled back.
    RolledBack,
    /// It had succeeded, and runs another version since.
    Drifted {
        /// The version that it runs.
        running: Version,
    },
    /// It failed, and makes no further attempt.
    Failed,
    /// It did not report before its deadline.
    Unreachable,
}

/// The stage of a target.
#[must_use]
pub fn phase(observation: Option<&Observation>, state: Option<&TargetState>) -> TargetStage {
    let Some(state) = state else { return TargetStage::Idle };
    let refuses = || observation.and_then(refusal).map(|reason| TargetStage::Blocked { reason });
    match &state.outcome {
        AssignmentOutcome::Succeeded { .. } => {
            if let Some(running) = observation.and_then(|observation| drifted(observation, state)) {
                return TargetStage::Drifted { running: running.clone() };
            }
            return match state.purpose {
                AssignmentPurpose::Rollback => TargetStage::RolledBack,
                AssignmentPurpose::Update | AssignmentPurpose::Adopted | AssignmentPurpose::KnownGood => {
                    TargetStage::Succeeded
                }
            };
        }
        AssignmentOutcome::Failed { .. } => return TargetStage::Failed,
        AssignmentOutcome::Unreachable { .. } => return refuses().unwrap_or(TargetStage::Unreachable),
        AssignmentOutcome::InFlight => {}
    }
    let Some(observation) = observation else { return TargetStage::Assigned };
    if let Some(reason) = &observation.held {
        return TargetStage::Blocked { reason: String::from(&**reason) };
    }
    if observation.answering != state.assignment {
        return refuses().unwrap_or(TargetStage::Assigned);
    }
    match &observation.activity {
        TargetActivity::Applying { attempt, waiting_for } => {
            TargetStage::Applying { attempt: *attempt, waiting_for: waiting_for.clone() }
        }
        TargetActivity::Waiting { reason } => TargetStage::Blocked { reason: String::from(&**reason) },
        TargetActivity::Failed { attempts, .. } => {
            TargetStage::Applying { attempt: attempts.saturating_add(1), waiting_for: None }
        }
        TargetActivity::Nothing if observation.running.as_ref() != Some(&state.version) => {
            TargetStage::Assigned
        }
        TargetActivity::Nothing => match (&observation.health, observation.healthy_since) {
            (TargetHealth::NoChecks | TargetHealth::Healthy, Some(since)) => {
                TargetStage::Soaking { since: since.max(state.assigned_at) }
            }
            (TargetHealth::NoChecks | TargetHealth::Healthy, None) | (TargetHealth::Failing { .. }, _) => {
                TargetStage::Settling
            }
        },
    }
}

/// That a target in contact does not accept its orders, and why; `None` if it accepts them, or is out of contact.
pub(crate) fn refusal(observation: &Observation) -> Option<String> {
    observation.refuses.as_ref().map(|reason| alloc::format!("does not accept orders: {reason}"))
}

/// The version that a target runs now, if it is on another one than its assignment, without an error.
pub(crate) fn drifted<'a>(observation: &'a Observation, state: &TargetState) -> Option<&'a Version> {
    let settled =
        observation.activity == TargetActivity::Nothing && observation.answering == state.assignment;
    observation.running.as_ref().filter(|running| settled && **running != state.version)
}

/// Whether it is not functional: it is silent, runs nothing, failed or fails its checks.
pub(crate) fn is_broken(observation: &Observation) -> bool {
    let away = match observation.contact {
        PresenceState::Unreachable | PresenceState::Never => true,
        PresenceState::Up | PresenceState::Suspect => false,
    };
    away || observation.running.is_none()
        || matches!(observation.health, TargetHealth::Failing { .. })
        || matches!(observation.activity, TargetActivity::Failed { .. })
}

/// Whether it is in contact and reports an error or a failing check on its assigned version.
pub(crate) fn is_failing(observation: &Observation, state: &TargetState) -> bool {
    let error = match (&observation.activity, &observation.health) {
        (TargetActivity::Failed { .. }, _) => true,
        (TargetActivity::Nothing, TargetHealth::Failing { .. }) => {
            observation.running.as_ref() == Some(&state.version)
        }
        (
            TargetActivity::Nothing | TargetActivity::Applying { .. } | TargetActivity::Waiting { .. },
            TargetHealth::NoChecks | TargetHealth::Healthy | TargetHealth::Failing { .. },
        ) => false,
    };
    error && observation.contact == PresenceState::Up && observation.answering == state.assignment
}

/// Whether it is functional: in order, not drained, and not being updated, unless its own checks passed after the update.
pub(crate) fn is_functional(observation: &Observation, in_flight: Option<&TargetState>) -> bool {
    let proved = |state: &TargetState| {
        observation.answering == state.assignment
            && observation.health == TargetHealth::Healthy
            && is_well(observation, &state.version)
    };
    !is_broken(observation) && !observation.drained && in_flight.is_none_or(proved)
}

/// Whether nothing is known against the version, and its agent, which started again meanwhile, may have seen too little of it, or
/// begun to apply it anew.
pub(crate) fn is_half_seen(observation: &Observation, state: &TargetState) -> bool {
    let may_be_good = match &observation.activity {
        TargetActivity::Nothing => {
            observation.running.as_ref() == Some(&state.version)
                && !matches!(observation.health, TargetHealth::Failing { .. })
        }
        // A check that has not passed yet is something against it.
        TargetActivity::Applying { waiting_for, .. } => waiting_for.is_none(),
        TargetActivity::Waiting { .. } | TargetActivity::Failed { .. } => false,
    };
    may_be_good
        && observation.agent_restarted
        && observation.answering == state.assignment
        && observation.soak_failure.is_none()
}

/// Whether it has been healthy for its soak by the server's clock, and no report says that it was.
pub(crate) fn is_unproved(observation: &Observation, state: &TargetState, now: Timestamp) -> bool {
    let soaked = observation.healthy_since.map(|since| since.max(state.assigned_at).plus(state.soak));
    let proved = |soaked: Timestamp| match observation.proof {
        HealthProof::Contact => true,
        HealthProof::Confirmed(healthy) => healthy >= state.soak,
        HealthProof::Reports => observation.reported_at >= soaked,
    };
    observation.answering == state.assignment
        && is_well(observation, &state.version)
        && soaked.is_some_and(|soaked| now >= soaked && !proved(soaked))
}

/// Whether it reports, runs the version, has nothing left to do and is healthy.
pub(crate) fn is_well(observation: &Observation, version: &Version) -> bool {
    let healthy = match observation.health {
        TargetHealth::NoChecks | TargetHealth::Healthy => observation.healthy_since.is_some(),
        TargetHealth::Failing { .. } => false,
    };
    healthy
        && observation.contact == PresenceState::Up
        && observation.activity == TargetActivity::Nothing
        && observation.running.as_ref() == Some(version)
}
