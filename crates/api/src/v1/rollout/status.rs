//! The status of a rollout, in answers and stored records: its state, and the object that belongs to that
//! state.

mod wait;

use bellwether_core::records::rollout as core;
use bellwether_core::words::counter::RolloutNumber;
use serde::{Deserialize, Serialize};

pub use self::wait::{RolloutPause, RolloutWait};
use super::direction::PersonAction;
use crate::shape::{ShapeError, read};
use crate::word::words;

words! {
    /// The state of a rollout.
    RolloutState {
        /// It assigns its version to targets.
        InProgress = "in_progress",
        /// It continues by itself once the reason in `waiting` is gone.
        Waiting = "waiting",
        /// It continues when a person decides, or when the reason in `paused` is gone.
        Paused = "paused",
        /// It rolls its targets back to the last known good version.
        RollingBack = "rolling_back",
        /// It ended: no target failed.
        Succeeded = "succeeded",
        /// It ended: the version is good, and `failed` targets failed.
        PartiallySucceeded = "partially_succeeded",
        /// It ended in spite of its failures: the version is bad, and `failed` targets failed.
        Failed = "failed",
        /// It ended: every target that was updated is rolled back.
        RolledBack = "rolled_back",
        /// It ended: `failed` targets failed while they were rolled back.
        RollbackFailed = "rollback_failed",
        /// It ended: a person aborted it; its targets stay as they are.
        Aborted = "aborted",
        /// It ended: rollout `superseded_by` replaced it.
        Superseded = "superseded",
    }
}

/// The status of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RolloutStatus {
    /// The state.
    pub state: RolloutState,
    /// With state `waiting`: what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<RolloutWait>,
    /// With state `paused`: why it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<RolloutPause>,
    /// With states `partially_succeeded`, `failed` and `rollback_failed`: the number of targets that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// With state `aborted`: who aborted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted: Option<PersonAction>,
    /// With state `superseded`: the number of the rollout that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<u64>,
}

impl From<RolloutState> for RolloutStatus {
    /// A status without details.
    fn from(state: RolloutState) -> Self {
        Self { state, waiting: None, paused: None, failed: None, aborted: None, superseded_by: None }
    }
}

impl From<&core::RolloutState> for RolloutStatus {
    fn from(from: &core::RolloutState) -> Self {
        let plain = Self::from;
        match from {
            core::RolloutState::InProgress => plain(RolloutState::InProgress),
            core::RolloutState::Waiting(wait) => {
                Self { waiting: Some(wait.into()), ..plain(RolloutState::Waiting) }
            }
            core::RolloutState::Paused(pause) => {
                Self { paused: Some(pause.into()), ..plain(RolloutState::Paused) }
            }
            core::RolloutState::RollingBack => plain(RolloutState::RollingBack),
            core::RolloutState::Succeeded => plain(RolloutState::Succeeded),
            core::RolloutState::PartiallySucceeded { failed } => {
                Self { failed: Some(*failed), ..plain(RolloutState::PartiallySucceeded) }
            }
            core::RolloutState::Failed { failed } => {
                Self { failed: Some(*failed), ..plain(RolloutState::Failed) }
            }
            core::RolloutState::RolledBack => plain(RolloutState::RolledBack),
            core::RolloutState::RollbackFailed { failed } => {
                Self { failed: Some(*failed), ..plain(RolloutState::RollbackFailed) }
            }
            core::RolloutState::Aborted { by, reason } => {
                let aborted = Some(PersonAction { by: by.to_string(), reason: reason.clone() });
                Self { aborted, ..plain(RolloutState::Aborted) }
            }
            core::RolloutState::Superseded { by } => {
                Self { superseded_by: Some(by.get()), ..plain(RolloutState::Superseded) }
            }
        }
    }
}

impl TryFrom<RolloutStatus> for core::RolloutState {
    type Error = ShapeError;
    fn try_from(from: RolloutStatus) -> Result<Self, ShapeError> {
        Ok(match from.state {
            RolloutState::InProgress => Self::InProgress,
            RolloutState::Waiting => Self::Waiting(detail("waiting", from.waiting)?.try_into()?),
            RolloutState::Paused => Self::Paused(detail("paused", from.paused)?.try_into()?),
            RolloutState::RollingBack => Self::RollingBack,
            RolloutState::Succeeded => Self::Succeeded,
            RolloutState::PartiallySucceeded => {
                Self::PartiallySucceeded { failed: detail("failed", from.failed)? }
            }
            RolloutState::Failed => Self::Failed { failed: detail("failed", from.failed)? },
            RolloutState::RolledBack => Self::RolledBack,
            RolloutState::RollbackFailed => Self::RollbackFailed { failed: detail("failed", from.failed)? },
            RolloutState::Aborted => {
                let PersonAction { by, reason } = detail("aborted", from.aborted)?;
                Self::Aborted { by: read("status.aborted.by", &by)?, reason }
            }
            RolloutState::Superseded => {
                let by = RolloutNumber::new(detail("superseded_by", from.superseded_by)?);
                Self::Superseded { by }
            }
        })
    }
}

/// The object that belongs to a state.
fn detail<T>(name: &str, detail: Option<T>) -> Result<T, ShapeError> {
    detail.ok_or_else(|| ShapeError::at(&format!("status.{name}"), "missing"))
}
