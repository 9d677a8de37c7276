//! Where a rollout stands, as it travels and is kept.

mod wait;

use bellwether_core::records::rollout as core;
use bellwether_core::words::counter::RolloutNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// Where a rollout stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RolloutState {
    /// It hands out its version.
    InProgress,
    /// It goes on by itself when the reason is gone.
    Waiting {
        /// `no_targets`, `batch_is_zero`, `only_held`, `only_quiet` or `only_unreachable`.
        reason: String,
    },
    /// No target carries the label of the policy's domain.
    WaitingNoDomain {
        /// The label's key.
        key: String,
    },
    /// A freeze is in force.
    WaitingFrozen {
        /// Its name.
        freeze: String,
        /// Whose it is.
        by: String,
        /// Why.
        reason: String,
        /// When it ends by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// No window is open.
    WaitingWindow {
        /// When the next one opens.
        opens_ms: u64,
    },
    /// The targets that are left are frozen or outside their own window.
    WaitingShut {
        /// When that changes by itself for one of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<u64>,
    },
    /// A person has to approve a stage.
    WaitingApproval {
        /// Which, from 1.
        stage: u32,
    },
    /// A service has to be functional.
    WaitingNeed {
        /// Which, like `2 of db`.
        need: String,
    },
    /// As many are unavailable as may be.
    WaitingUnavailable {
        /// In which domain, if not all together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        domain: Option<String>,
    },
    /// A controller has not answered yet, or not agreed.
    WaitingHook {
        /// `selection`, `approval`, `monitoring`, `removal` or `monitor`.
        hook: String,
        /// What it said, or what happens instead.
        reason: String,
    },
    /// A stop is in force.
    PausedStopped {
        /// Its name.
        freeze: String,
        /// Whose it is.
        by: String,
        /// Why.
        reason: String,
    },
    /// The monitor does not answer.
    PausedMonitorSilent {
        /// What happens instead.
        reason: String,
    },
    /// The version is bad, not by its failures.
    PausedBad {
        /// Why.
        reason: String,
    },
    /// A person paused it.
    PausedByPerson {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// Too many failed, and the policy says to pause.
    PausedTooManyFailed {
        /// Targets that failed.
        failed: u64,
        /// Failures tolerated.
        tolerated: u64,
    },
    /// Too many failed, and there is no last known good.
    PausedNothingToRollBackTo {
        /// Targets that failed.
        failed: u64,
        /// Failures tolerated.
        tolerated: u64,
    },
    /// Too many targets are silent.
    PausedTooManyUnreachable {
        /// Silent targets.
        unreachable: u64,
        /// Silent targets tolerated.
        tolerated: u64,
    },
    /// It takes its targets back.
    RollingBack,
    /// Done; none failed.
    Succeeded,
    /// Done; some failed.
    PartiallySucceeded {
        /// Targets that failed.
        failed: u64,
    },
    /// Every moved target is back.
    RolledBack,
    /// Some targets failed on the way back.
    RollbackFailed {
        /// Targets that failed.
        failed: u64,
    },
    /// A person ended it.
    Aborted {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// A newer one took its place.
    Superseded {
        /// The newer one.
        rollout: u64,
    },
}

/// Which way a rollout goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "direction", rename_all = "snake_case")]
pub enum Direction {
    /// To its version.
    Forward,
    /// Back: the version is bad.
    RollbackFromBad,
    /// Back: a person said so.
    RollbackByUndo {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
}

/// What is held of a rollout's version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "judgement", rename_all = "snake_case")]
pub enum VersionJudgement {
    /// Nothing yet.
    Open,
    /// It became last known good.
    Good {
        /// When.
        at_ms: u64,
    },
    /// It became last known bad.
    Bad {
        /// When.
        at_ms: u64,
        /// Why, in one line.
        reason: String,
    },
}

impl From<&core::RolloutState> for RolloutState {
    fn from(from: &core::RolloutState) -> Self {
        match from {
            core::RolloutState::InProgress => Self::InProgress,
            core::RolloutState::Waiting(wait) => wait::waiting(wait),
            core::RolloutState::Paused(pause) => wait::paused(pause),
            core::RolloutState::RollingBack => Self::RollingBack,
            core::RolloutState::Succeeded => Self::Succeeded,
            core::RolloutState::PartiallySucceeded { failed } => Self::PartiallySucceeded { failed: *failed },
            core::RolloutState::RolledBack => Self::RolledBack,
            core::RolloutState::RollbackFailed { failed } => Self::RollbackFailed { failed: *failed },
            core::RolloutState::Aborted { by, reason } => {
                Self::Aborted { by: by.to_string(), reason: reason.clone() }
            }
            core::RolloutState::Superseded { by } => Self::Superseded { rollout: by.get() },
        }
    }
}

impl TryFrom<RolloutState> for core::RolloutState {
    type Error = ShapeError;
    fn try_from(from: RolloutState) -> Result<Self, ShapeError> {
        Ok(match from {
            RolloutState::InProgress => Self::InProgress,
            waiting @ (RolloutState::Waiting { .. }
            | RolloutState::WaitingNoDomain { .. }
            | RolloutState::WaitingFrozen { .. }
            | RolloutState::WaitingWindow { .. }
            | RolloutState::WaitingShut { .. }
            | RolloutState::WaitingApproval { .. }
            | RolloutState::WaitingNeed { .. }
            | RolloutState::WaitingUnavailable { .. }
            | RolloutState::WaitingHook { .. }) => Self::Waiting(wait::wait(waiting)?),
            paused @ (RolloutState::PausedByPerson { .. }
            | RolloutState::PausedStopped { .. }
            | RolloutState::PausedMonitorSilent { .. }
            | RolloutState::PausedBad { .. }
            | RolloutState::PausedTooManyFailed { .. }
            | RolloutState::PausedNothingToRollBackTo { .. }
            | RolloutState::PausedTooManyUnreachable { .. }) => Self::Paused(wait::pause(paused)?),
            RolloutState::RollingBack => Self::RollingBack,
            RolloutState::Succeeded => Self::Succeeded,
            RolloutState::PartiallySucceeded { failed } => Self::PartiallySucceeded { failed },
            RolloutState::RolledBack => Self::RolledBack,
            RolloutState::RollbackFailed { failed } => Self::RollbackFailed { failed },
            RolloutState::Aborted { by, reason } => Self::Aborted { by: read("state.by", &by)?, reason },
            RolloutState::Superseded { rollout } => Self::Superseded { by: RolloutNumber::new(rollout) },
        })
    }
}

impl From<&core::Direction> for Direction {
    fn from(from: &core::Direction) -> Self {
        match from {
            core::Direction::Forward => Self::Forward,
            core::Direction::RollbackFromBad => Self::RollbackFromBad,
            core::Direction::RollbackByUndo { by, reason } => {
                Self::RollbackByUndo { by: by.to_string(), reason: reason.clone() }
            }
        }
    }
}

impl TryFrom<Direction> for core::Direction {
    type Error = ShapeError;
    fn try_from(from: Direction) -> Result<Self, ShapeError> {
        Ok(match from {
            Direction::Forward => Self::Forward,
            Direction::RollbackFromBad => Self::RollbackFromBad,
            Direction::RollbackByUndo { by, reason } => {
                Self::RollbackByUndo { by: read("direction.by", &by)?, reason }
            }
        })
    }
}

impl From<&core::VersionJudgement> for VersionJudgement {
    fn from(from: &core::VersionJudgement) -> Self {
        match from {
            core::VersionJudgement::Open => Self::Open,
            core::VersionJudgement::Good { at } => Self::Good { at_ms: at.as_millis() },
            core::VersionJudgement::Bad { at, reason } => {
                Self::Bad { at_ms: at.as_millis(), reason: reason.clone() }
            }
        }
    }
}

impl From<VersionJudgement> for core::VersionJudgement {
    fn from(from: VersionJudgement) -> Self {
        match from {
            VersionJudgement::Open => Self::Open,
            VersionJudgement::Good { at_ms } => Self::Good { at: Timestamp::from_millis(at_ms) },
            VersionJudgement::Bad { at_ms, reason } => {
                Self::Bad { at: Timestamp::from_millis(at_ms), reason }
            }
        }
    }
}
