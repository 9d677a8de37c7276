//! Targets and their assignments: answers and stored records.

use std::sync::Arc;

use bellwether_core::records::target as core;
use bellwether_core::words::counter::{AssignmentNumber, RolloutNumber};
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::node::PresenceState;
use crate::shape::{ShapeError, read};
use crate::word::words;

words! {
    /// The reason for an assignment.
    AssignmentPurpose = core::AssignmentPurpose {
        /// A rollout updates the target.
        Update = "update",
        /// The target already ran the version of the rollout when the rollout reached it.
        Adopted = "adopted",
        /// The target is rolled back with its rollout.
        Rollback = "rollback",
        /// The target joined, or was unreachable before, and is assigned the last known good version.
        KnownGood = "known_good",
    }
}

words! {
    /// The phase of a target's update.
    TargetPhase {
        /// No version is assigned, and nothing is being done.
        Idle = "idle",
        /// A version is assigned; the target has not started to apply it.
        Assigned = "assigned",
        /// The target applies the version.
        Applying = "applying",
        /// The target runs the version and is healthy; the soak time is running.
        Soaking = "soaking",
        /// The target runs the version and is not healthy yet.
        Settling = "settling",
        /// The target cannot start: it waits for a service, or for something on the machine.
        Blocked = "blocked",
        /// The target was healthy for the whole soak time.
        Succeeded = "succeeded",
        /// The target runs the last known good version again: its rollout was rolled back.
        RolledBack = "rolled_back",
        /// The target had succeeded, and runs another version since.
        Drifted = "drifted",
        /// The update failed; `evidence` shows how.
        Failed = "failed",
        /// The deadline passed while the target was unreachable.
        Unreachable = "unreachable",
    }
}

/// Stored record of a target: its last assignment and the outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetState {
    /// The version that it is assigned.
    pub version: String,
    /// Number of the rollout that assigned it.
    pub rollout: u64,
    /// The reason for the assignment.
    pub purpose: AssignmentPurpose,
    /// Number of the assignment; it grows with each assignment of the target.
    pub assignment: u64,
    /// Time of the assignment, in milliseconds since the Unix epoch.
    pub assigned_at_ms: u64,
    /// Time for which it must be healthy to succeed, in milliseconds.
    pub soak_ms: u64,
    /// The clock of its deadline.
    pub clock: DeadlineClock,
    /// The last known good version, if the target was failing on it when it was assigned: failing again is no evidence
    /// against the assigned version. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_before: Option<String>,
    /// The outcome of the assignment.
    pub outcome: AssignmentOutcome,
}

/// The clock of a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DeadlineClock {
    /// The clock runs.
    Running {
        /// Time from which it counts, in milliseconds on the entity's pause clock.
        from_ms: u64,
        /// Time at which it was started, in milliseconds since the Unix epoch.
        set_at_ms: u64,
    },
    /// The clock stands still.
    Stopped {
        /// Time that it has counted so far, in milliseconds.
        spent_ms: u64,
    },
    /// The target is out of contact.
    Silent {
        /// Start of the silence, in milliseconds on the entity's pause clock.
        since_ms: u64,
        /// Time that was counted before, in milliseconds.
        spent_ms: u64,
    },
    /// The deadline has passed. For a node, contact that lasts decides; for an external target, its next report.
    Overdue {
        /// Time at which that was noticed, in milliseconds since the Unix epoch.
        at_ms: u64,
        /// Time at which contact that lasts decides, in milliseconds since the Unix epoch; absent if only a report
        /// does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
}

impl From<core::DeadlineClock> for DeadlineClock {
    fn from(from: core::DeadlineClock) -> Self {
        match from {
            core::DeadlineClock::Running { from, set_at } => {
                Self::Running { from_ms: from.as_millis(), set_at_ms: set_at.as_millis() }
            }
            core::DeadlineClock::Stopped { spent } => Self::Stopped { spent_ms: spent.as_millis() },
            core::DeadlineClock::Silent { since, spent } => {
                Self::Silent { since_ms: since.as_millis(), spent_ms: spent.as_millis() }
            }
            core::DeadlineClock::Overdue { at, until } => {
                Self::Overdue { at_ms: at.as_millis(), until_ms: until.map(Timestamp::as_millis) }
            }
        }
    }
}

impl From<DeadlineClock> for core::DeadlineClock {
    fn from(from: DeadlineClock) -> Self {
        let time = Timestamp::from_millis;
        match from {
            DeadlineClock::Running { from_ms, set_at_ms } => {
                Self::Running { from: time(from_ms), set_at: time(set_at_ms) }
            }
            DeadlineClock::Stopped { spent_ms } => Self::Stopped { spent: Span::from_millis(spent_ms) },
            DeadlineClock::Silent { since_ms, spent_ms } => {
                Self::Silent { since: time(since_ms), spent: Span::from_millis(spent_ms) }
            }
            DeadlineClock::Overdue { at_ms, until_ms } => {
                Self::Overdue { at: time(at_ms), until: until_ms.map(time) }
            }
        }
    }
}

/// The outcome of an assignment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AssignmentOutcome {
    /// Not decided yet.
    InFlight,
    /// The target was healthy for the whole soak time.
    Succeeded {
        /// Time of the success, in milliseconds since the Unix epoch.
        at_ms: u64,
        /// Time of the first failure after the success, in milliseconds since the Unix epoch; absent if there
        /// was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_later_ms: Option<u64>,
    },
    /// The update failed.
    Failed {
        /// Time of the failure, in milliseconds since the Unix epoch.
        at_ms: u64,
        /// Evidence of the failure.
        evidence: Evidence,
    },
    /// The target was given up without evidence against the version: it was out of contact, or nobody saw enough of it.
    Unreachable {
        /// Time at which it was given up, in milliseconds since the Unix epoch.
        at_ms: u64,
        /// Why, in one line.
        #[serde(default)]
        reason: String,
    },
}

/// A target in a list: its versions, its phase and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetView {
    /// Target name.
    pub name: String,
    /// The phase of its update.
    pub phase: TargetPhase,
    /// Time since which it is in that phase, in milliseconds since the Unix epoch; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// The version that it is assigned; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned: Option<String>,
    /// Time of the assignment, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_at_ms: Option<u64>,
    /// Number of the assignment, to be sent with reports of an external target; it grows with each assignment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<u64>,
    /// The version that it runs: the last one whose validation passed; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// Number of the rollout that made the assignment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    /// The connection state of the target.
    pub presence: PresenceState,
    /// The reason for its phase, one line.
    pub reason: String,
    /// Evidence of the failure; absent if it has not failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl From<&core::TargetState> for TargetState {
    fn from(from: &core::TargetState) -> Self {
        Self {
            version: from.version.to_string(),
            rollout: from.rollout.get(),
            purpose: from.purpose.into(),
            assignment: from.assignment.get(),
            assigned_at_ms: from.assigned_at.as_millis(),
            soak_ms: from.soak.as_millis(),
            clock: from.clock.into(),
            failing_before: from.failing_before.as_ref().map(ToString::to_string),
            outcome: (&from.outcome).into(),
        }
    }
}

impl TryFrom<TargetState> for core::TargetState {
    type Error = ShapeError;
    fn try_from(from: TargetState) -> Result<Self, ShapeError> {
        Ok(Self {
            version: read("version", &from.version)?,
            rollout: RolloutNumber::new(from.rollout),
            purpose: from.purpose.into(),
            assignment: AssignmentNumber::new(from.assignment),
            assigned_at: Timestamp::from_millis(from.assigned_at_ms),
            soak: Span::from_millis(from.soak_ms),
            clock: from.clock.into(),
            failing_before: from
                .failing_before
                .as_deref()
                .map(|text| read("failing_before", text))
                .transpose()?,
            outcome: from.outcome.into(),
        })
    }
}

impl From<&core::AssignmentOutcome> for AssignmentOutcome {
    fn from(from: &core::AssignmentOutcome) -> Self {
        match from {
            core::AssignmentOutcome::InFlight => Self::InFlight,
            core::AssignmentOutcome::Succeeded { at, failed_later } => Self::Succeeded {
                at_ms: at.as_millis(),
                failed_later_ms: failed_later.map(Timestamp::as_millis),
            },
            core::AssignmentOutcome::Failed { at, evidence } => {
                Self::Failed { at_ms: at.as_millis(), evidence: (&**evidence).into() }
            }
            core::AssignmentOutcome::Unreachable { at, reason } => {
                Self::Unreachable { at_ms: at.as_millis(), reason: reason.as_ref().to_owned() }
            }
        }
    }
}

impl From<AssignmentOutcome> for core::AssignmentOutcome {
    fn from(from: AssignmentOutcome) -> Self {
        match from {
            AssignmentOutcome::InFlight => Self::InFlight,
            AssignmentOutcome::Succeeded { at_ms, failed_later_ms } => Self::Succeeded {
                at: Timestamp::from_millis(at_ms),
                failed_later: failed_later_ms.map(Timestamp::from_millis),
            },
            AssignmentOutcome::Failed { at_ms, evidence } => {
                Self::Failed { at: Timestamp::from_millis(at_ms), evidence: Arc::new(evidence.into()) }
            }
            AssignmentOutcome::Unreachable { at_ms, reason } => {
                Self::Unreachable { at: Timestamp::from_millis(at_ms), reason: reason.into() }
            }
        }
    }
}
