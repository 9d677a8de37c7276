//! The progress of an entity: answers and stored records.

use bellwether_core::records::progress as core;
use bellwether_core::words::counter::{RequestNumber, RolloutNumber};
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, read_some};

/// The progress of an entity's versions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Progress {
    /// The version that was requested last; absent before the first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// The version that is being rolled out; absent if no rollout is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling: Option<String>,
    /// The last known good version; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good: Option<String>,
    /// Known bad versions, oldest first; the last is the last known bad version.
    #[serde(default)]
    pub bad: Vec<BadVersion>,
    /// What the entity's newest rollout is doing.
    #[serde(default)]
    pub activity: RolloutActivity,
    /// Number of the newest rollout; 0 before the first.
    #[serde(default)]
    pub last_rollout: u64,
    /// Number of the newest request that was processed; 0 before the first.
    #[serde(default)]
    pub handled_request: u64,
    /// Number of resumes that were processed.
    #[serde(default)]
    pub resumes: u64,
    /// Total duration of all finished pauses, in milliseconds.
    #[serde(default)]
    pub paused_ms: u64,
    /// Time at which the present pause began, in milliseconds since the Unix epoch; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_since_ms: Option<u64>,
    /// Time from which deadlines count at the earliest, in milliseconds on the entity's pause clock.
    #[serde(default)]
    pub floor_ms: u64,
    /// Start of the watch over the targets that set `floor_ms`, in milliseconds since the Unix epoch.
    #[serde(default)]
    pub watched_since_ms: u64,
}

/// What an entity's newest rollout is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RolloutActivity {
    /// No rollout is in progress; targets are kept at the last known good version.
    #[default]
    Settled,
    /// No rollout is in progress; targets are left at the version that they run.
    Abandoned,
    /// No rollout is in progress; the last one continued in spite of its failures, and targets are kept at its version.
    Continued,
    /// A rollout assigns its version to targets.
    RollingForward {
        /// Number of the rollout.
        rollout: u64,
    },
    /// A rollout rolls its targets back.
    RollingBack {
        /// Number of the rollout.
        rollout: u64,
    },
}

/// A known bad version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BadVersion {
    /// The version.
    pub version: String,
    /// Time of the verdict, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Number of the rollout in which the version became bad.
    pub rollout: u64,
    /// The reason, one line.
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
                core::RolloutActivity::Continued => RolloutActivity::Continued,
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
            floor_ms: from.clock.floor.as_millis(),
            watched_since_ms: from.clock.watched_since.as_millis(),
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
                RolloutActivity::Continued => core::RolloutActivity::Continued,
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
                floor: Timestamp::from_millis(from.floor_ms),
                watched_since: Timestamp::from_millis(from.watched_since_ms),
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
