//! An entity's progress, as it travels and is kept.

use bellwether_core::records::progress as core;
use bellwether_core::words::counter::{RequestNumber, RolloutNumber};
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, read_some};

/// Where an entity stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Progress {
    /// The version that was requested last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// The version being handed out now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling: Option<String>,
    /// The version that last met the success threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good: Option<String>,
    /// Versions that met the failure threshold, oldest first; the last is the last known bad.
    #[serde(default)]
    pub bad: Vec<BadVersion>,
    /// What is going on.
    #[serde(default)]
    pub activity: RolloutActivity,
    /// The newest rollout; zero before the first.
    #[serde(default)]
    pub last_rollout: u64,
    /// The newest request that was acted on.
    #[serde(default)]
    pub handled_request: u64,
    /// How many resumes were acted on.
    #[serde(default)]
    pub resumes: u64,
    /// How long pauses lasted together, in milliseconds.
    #[serde(default)]
    pub paused_ms: u64,
    /// When the present pause began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_since_ms: Option<u64>,
}

/// What is going on with an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RolloutActivity {
    /// No rollout; members belong on last known good.
    #[default]
    Settled,
    /// No rollout; targets were left as they are.
    Abandoned,
    /// A rollout hands out its version.
    RollingForward {
        /// Which.
        rollout: u64,
    },
    /// A rollout takes its targets back.
    RollingBack {
        /// Which.
        rollout: u64,
    },
}

/// A version that met the failure threshold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BadVersion {
    /// The version.
    pub version: String,
    /// When it was found bad.
    pub at_ms: u64,
    /// The rollout that found it.
    pub rollout: u64,
    /// Why, in one line.
    pub reason: String,
}

impl From<&core::Progress> for Progress {
    fn from(from: &core::Progress) -> Self {
        Self {
            requested: from.target.as_ref().map(ToString::to_string),
            rolling: from.rolling.as_ref().map(ToString::to_string),
            last_known_good: from.last_known_good.as_ref().map(ToString::to_string),
            bad: from.bad.iter().map(BadVersion::from).collect(),
            activity: match from.activity {
                core::RolloutActivity::Settled => RolloutActivity::Settled,
                core::RolloutActivity::Abandoned => RolloutActivity::Abandoned,
                core::RolloutActivity::RollingForward(number) => {
                    RolloutActivity::RollingForward { rollout: number.get() }
                }
                core::RolloutActivity::RollingBack(number) => {
                    RolloutActivity::RollingBack { rollout: number.get() }
                }
            },
            last_rollout: from.last.get(),
            handled_request: from.handled.get(),
            resumes: from.resumes,
            paused_ms: from.clock.stopped.as_millis(),
            paused_since_ms: from.clock.since.map(Timestamp::as_millis),
        }
    }
}

impl TryFrom<Progress> for core::Progress {
    type Error = ShapeError;
    fn try_from(from: Progress) -> Result<Self, ShapeError> {
        Ok(Self {
            target: read_some("requested", from.requested.as_deref())?,
            rolling: read_some("rolling", from.rolling.as_deref())?,
            last_known_good: read_some("last_known_good", from.last_known_good.as_deref())?,
            bad: from.bad.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
            activity: match from.activity {
                RolloutActivity::Settled => core::RolloutActivity::Settled,
                RolloutActivity::Abandoned => core::RolloutActivity::Abandoned,
                RolloutActivity::RollingForward { rollout } => {
                    core::RolloutActivity::RollingForward(RolloutNumber::new(rollout))
                }
                RolloutActivity::RollingBack { rollout } => {
                    core::RolloutActivity::RollingBack(RolloutNumber::new(rollout))
                }
            },
            last: RolloutNumber::new(from.last_rollout),
            handled: RequestNumber::new(from.handled_request),
            resumes: from.resumes,
            clock: core::PauseClock {
                stopped: Span::from_millis(from.paused_ms),
                since: from.paused_since_ms.map(Timestamp::from_millis),
            },
        })
    }
}

impl From<&core::BadVersion> for BadVersion {
    fn from(from: &core::BadVersion) -> Self {
        Self {
            version: from.version.to_string(),
            at_ms: from.at.as_millis(),
            rollout: from.rollout.get(),
            reason: from.reason.clone(),
        }
    }
}

impl TryFrom<BadVersion> for core::BadVersion {
    type Error = ShapeError;
    fn try_from(from: BadVersion) -> Result<Self, ShapeError> {
        Ok(Self {
            version: read("bad.version", &from.version)?,
            at: Timestamp::from_millis(from.at_ms),
            rollout: RolloutNumber::new(from.rollout),
            reason: from.reason,
        })
    }
}
