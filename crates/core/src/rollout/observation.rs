//! A sighting: all that the engine sees of one target, whoever reported it. Owns the derived phase of a target; never
//! stored.

use alloc::string::String;
use alloc::sync::Arc;

use crate::records::hook_answers::MonitorReport;
pub use crate::records::node::PresenceState;
use crate::records::report::{TargetActivity, TargetHealth};
use crate::records::target::{AssignmentOutcome, TargetState};
use crate::words::counter::AssignmentNumber;
use crate::words::label::Labels;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// All that the engine sees of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The version it runs, once it has made sure of it.
    pub running: Option<Version>,
    /// The assignment that the report answers; zero when it was never told anything.
    pub answering: AssignmentNumber,
    /// What it is doing about that assignment.
    pub activity: TargetActivity,
    /// What its checks say.
    pub health: TargetHealth,
    /// Since when it runs `running` and is healthy without a break, by the server's clock; without checks, since when it
    /// runs it. `None` while that is not known or not so.
    pub healthy_since: Option<Timestamp>,
    /// When the report came in, by the server's clock.
    pub reported_at: Timestamp,
    /// Whether it is heard from.
    pub contact: PresenceState,
    /// An operator's pause or cordon on the target, with its reason.
    pub held: Option<Arc<str>>,
    /// What selectors see of it besides its name.
    pub labels: Labels,
    /// What the monitoring hook last said of it, if there is one.
    pub word: Option<MonitorReport>,
}

/// Where a target is in its life, for people; derived, never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetStage {
    /// It was told nothing.
    Idle,
    /// It was told a version and has not answered yet.
    Assigned,
    /// It moves to the version.
    Applying {
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// It runs the version and is healthy, not long enough yet.
    Soaking {
        /// Since when, by the server's clock.
        since: Timestamp,
    },
    /// It runs the version and is not healthy yet.
    Settling,
    /// It cannot go on by itself.
    Blocked {
        /// One line: what for.
        reason: String,
    },
    /// It is on the version.
    Succeeded,
    /// It is not, and will not try again by itself.
    Failed,
    /// Nothing was heard from it in time.
    Unreachable,
}

/// Where a target is in its life.
#[must_use]
pub fn phase(observation: Option<&Observation>, state: Option<&TargetState>) -> TargetStage {
    let Some(state) = state else { return TargetStage::Idle };
    match &state.outcome {
        AssignmentOutcome::Succeeded { .. } => return TargetStage::Succeeded,
        AssignmentOutcome::Failed { .. } => return TargetStage::Failed,
        AssignmentOutcome::Unreachable { .. } => return TargetStage::Unreachable,
        AssignmentOutcome::InFlight => {}
    }
    let Some(observation) = observation else { return TargetStage::Assigned };
    if let Some(reason) = &observation.held {
        return TargetStage::Blocked { reason: alloc::format!("held: {reason}") };
    }
    if observation.answering != state.assignment {
        return TargetStage::Assigned;
    }
    match &observation.activity {
        TargetActivity::Applying { attempt } => TargetStage::Applying { attempt: *attempt },
        TargetActivity::Waiting { reason } => TargetStage::Blocked { reason: String::from(&**reason) },
        TargetActivity::Failed { attempts, .. } => {
            TargetStage::Applying { attempt: attempts.saturating_add(1) }
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

/// Whether it does not serve: it is not heard from, runs nothing, failed or fails its checks.
pub(crate) fn is_broken(observation: &Observation) -> bool {
    let away = match observation.contact {
        PresenceState::Unreachable | PresenceState::Never => true,
        PresenceState::Up | PresenceState::Suspect => false,
    };
    away || observation.running.is_none()
        || matches!(observation.health, TargetHealth::Failing { .. })
        || matches!(observation.activity, TargetActivity::Failed { .. })
}

/// Whether it is heard from, runs the version, has nothing left to do and is healthy.
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
