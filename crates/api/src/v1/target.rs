//! Target states, as they travel and are kept.

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
        /// The target joined, or was unreachable before, and is brought to the last known good version.
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
        /// The update failed; `evidence` shows how.
        Failed = "failed",
        /// The deadline passed while the target was unreachable.
        Unreachable = "unreachable",
    }
}

/// What one target was told, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetState {
    /// The version it was told.
    pub version: String,
    /// The rollout that told it.
    pub rollout: u64,
    /// The reason for the assignment.
    pub purpose: AssignmentPurpose,
    /// How often it was told something.
    pub assignment: u64,
    /// When it was told.
    pub assigned_at_ms: u64,
    /// Counts towards its deadline.
    pub clock: DeadlineClock,
    /// What came of it.
    pub outcome: AssignmentOutcome,
}

/// Counts towards a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DeadlineClock {
    /// Counting.
    Running {
        /// Since then, on the entity's pause clock.
        from_ms: u64,
    },
    /// Standing still.
    Stopped {
        /// With so much counted.
        spent_ms: u64,
    },
}

/// What came of an assignment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AssignmentOutcome {
    /// No verdict yet.
    InFlight,
    /// Healthy for the soak.
    Succeeded {
        /// When.
        at_ms: u64,
        /// When it was first seen failing afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_later_ms: Option<u64>,
    },
    /// Failed.
    Failed {
        /// When.
        at_ms: u64,
        /// What it looked like.
        evidence: Evidence,
    },
    /// Its deadline passed while it was silent.
    Unreachable {
        /// When.
        at_ms: u64,
    },
}

/// One target as listed: what it was told, what it runs, where it stands and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetView {
    /// Its name.
    pub name: String,
    /// The phase of its update.
    pub phase: TargetPhase,
    /// Since when, in milliseconds since the Unix epoch, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// What it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned: Option<String>,
    /// When it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_at_ms: Option<u64>,
    /// What it runs, validated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// The rollout that told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    /// Whether it can be reached.
    pub presence: PresenceState,
    /// One line: why it is where it is.
    pub message: String,
    /// What a failure looked like.
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
            clock: match from.clock {
                core::DeadlineClock::Running { from } => DeadlineClock::Running { from_ms: from.as_millis() },
                core::DeadlineClock::Stopped { spent } => {
                    DeadlineClock::Stopped { spent_ms: spent.as_millis() }
                }
            },
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
            clock: match from.clock {
                DeadlineClock::Running { from_ms } => {
                    core::DeadlineClock::Running { from: Timestamp::from_millis(from_ms) }
                }
                DeadlineClock::Stopped { spent_ms } => {
                    core::DeadlineClock::Stopped { spent: Span::from_millis(spent_ms) }
                }
            },
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
            core::AssignmentOutcome::Unreachable { at } => Self::Unreachable { at_ms: at.as_millis() },
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
            AssignmentOutcome::Unreachable { at_ms } => {
                Self::Unreachable { at: Timestamp::from_millis(at_ms) }
            }
        }
    }
}
