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
pub enum State {
    /// It hands out its version.
    Running,
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
        why: String,
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
        why: String,
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
        why: String,
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
    SucceededPartly {
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
        why: String,
    },
    /// A newer one took its place.
    Superseded {
        /// The newer one.
        rollout: u64,
    },
}

/// Which way a rollout goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "heading", rename_all = "snake_case")]
pub enum Heading {
    /// To its version.
    Forward,
    /// Back: the version is bad.
    BackFromBad,
    /// Back: a person said so.
    BackByUndo {
        /// Who.
        by: String,
        /// Why.
        why: String,
    },
}

/// What is held of a rollout's version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "judgement", rename_all = "snake_case")]
pub enum Judgement {
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

impl From<&core::State> for State {
    fn from(from: &core::State) -> Self {
        match from {
            core::State::Running => Self::Running,
            core::State::Waiting(wait) => wait::waiting(wait),
            core::State::Paused(pause) => wait::paused(pause),
            core::State::RollingBack => Self::RollingBack,
            core::State::Succeeded => Self::Succeeded,
            core::State::SucceededPartly { failed } => Self::SucceededPartly { failed: *failed },
            core::State::RolledBack => Self::RolledBack,
            core::State::RollbackFailed { failed } => Self::RollbackFailed { failed: *failed },
            core::State::Aborted { by, why } => Self::Aborted { by: by.to_string(), why: why.clone() },
            core::State::Superseded { by } => Self::Superseded { rollout: by.get() },
        }
    }
}

impl TryFrom<State> for core::State {
    type Error = ShapeError;
    fn try_from(from: State) -> Result<Self, ShapeError> {
        Ok(match from {
            State::Running => Self::Running,
            waiting @ (State::Waiting { .. }
            | State::WaitingNoDomain { .. }
            | State::WaitingFrozen { .. }
            | State::WaitingWindow { .. }
            | State::WaitingShut { .. }
            | State::WaitingApproval { .. }
            | State::WaitingNeed { .. }
            | State::WaitingUnavailable { .. }
            | State::WaitingHook { .. }) => Self::Waiting(wait::wait(waiting)?),
            paused @ (State::PausedByPerson { .. }
            | State::PausedStopped { .. }
            | State::PausedMonitorSilent { .. }
            | State::PausedBad { .. }
            | State::PausedTooManyFailed { .. }
            | State::PausedNothingToRollBackTo { .. }
            | State::PausedTooManyUnreachable { .. }) => Self::Paused(wait::pause(paused)?),
            State::RollingBack => Self::RollingBack,
            State::Succeeded => Self::Succeeded,
            State::SucceededPartly { failed } => Self::SucceededPartly { failed },
            State::RolledBack => Self::RolledBack,
            State::RollbackFailed { failed } => Self::RollbackFailed { failed },
            State::Aborted { by, why } => Self::Aborted { by: read("state.by", &by)?, why },
            State::Superseded { rollout } => Self::Superseded { by: RolloutNumber::new(rollout) },
        })
    }
}

impl From<&core::Heading> for Heading {
    fn from(from: &core::Heading) -> Self {
        match from {
            core::Heading::Forward => Self::Forward,
            core::Heading::BackFromBad => Self::BackFromBad,
            core::Heading::BackByUndo { by, why } => {
                Self::BackByUndo { by: by.to_string(), why: why.clone() }
            }
        }
    }
}

impl TryFrom<Heading> for core::Heading {
    type Error = ShapeError;
    fn try_from(from: Heading) -> Result<Self, ShapeError> {
        Ok(match from {
            Heading::Forward => Self::Forward,
            Heading::BackFromBad => Self::BackFromBad,
            Heading::BackByUndo { by, why } => Self::BackByUndo { by: read("heading.by", &by)?, why },
        })
    }
}

impl From<&core::Judgement> for Judgement {
    fn from(from: &core::Judgement) -> Self {
        match from {
            core::Judgement::Open => Self::Open,
            core::Judgement::Good { at } => Self::Good { at_ms: at.as_millis() },
            core::Judgement::Bad { at, reason } => {
                Self::Bad { at_ms: at.as_millis(), reason: reason.clone() }
            }
        }
    }
}

impl From<Judgement> for core::Judgement {
    fn from(from: Judgement) -> Self {
        match from {
            Judgement::Open => Self::Open,
            Judgement::Good { at_ms } => Self::Good { at: Timestamp::from_millis(at_ms) },
            Judgement::Bad { at_ms, reason } => Self::Bad { at: Timestamp::from_millis(at_ms), reason },
        }
    }
}
