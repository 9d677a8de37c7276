//! Node statuses, as they travel.

use bellwether_core::records::status as core;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};
use crate::word::words;

words! {
    /// The state of a node in one category.
    StatusState {
        /// It finished and succeeded.
        Success = "success",
        /// It finished and failed.
        Failed = "failed",
        /// It is in progress.
        Running = "running",
        /// It waits for something outside of the machine.
        Pending = "pending",
        /// It was not refreshed within its lifetime. Only in answers.
        Unknown = "unknown",
    }
}

/// A node's one state in a category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The state; `unknown` only in answers.
    pub state: StatusState,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock. Ignored in requests.
    #[serde(default)]
    pub since_ms: u64,
    /// One line for a person, at most 512 bytes.
    #[serde(default)]
    pub reason: String,
    /// What it was when it was last said, of one that is unknown now. Ignored in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<StatusState>,
    /// Which attempt it is about, from 1; zero where nothing is attempted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u64,
    /// Where the log of the failing run is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogRef>,
    /// For how long it holds without being refreshed, in milliseconds, from a second to a year; for ever if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_ms: Option<u64>,
    /// In requests: how long ago it was said, in milliseconds, measured on the machine; now if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// When it was last said, by the server's clock, of one with a lifetime. Ignored in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refreshed_ms: Option<u64>,
    /// Which saying of the machine this is; one that is repeated is no news. Zero for what is not numbered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub update: u64,
}

/// A kept log, of the status's own category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogRef {
    /// Of which entity.
    pub entity: String,
    /// Which run: the kept log may be of a later one.
    pub run: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Reads a lifetime.
///
/// # Errors
/// [`ShapeError`] at `lifetime_ms` when it is not from a second to a year.
pub fn lifetime(millis: u64) -> Result<Span, ShapeError> {
    let span = Span::from_millis(millis);
    if (core::SHORTEST_LIFETIME..=core::LONGEST_LIFETIME).contains(&span) {
        return Ok(span);
    }
    Err(ShapeError::at("lifetime_ms", format!("{span} is not from a second to a year")))
}

impl From<StatusState> for Status {
    /// A status with this state and nothing else.
    fn from(state: StatusState) -> Self {
        Self {
            state,
            since_ms: 0,
            reason: String::new(),
            last_state: None,
            attempt: 0,
            log: None,
            lifetime_ms: None,
            age_ms: None,
            refreshed_ms: None,
            update: 0,
        }
    }
}

impl From<core::StatusState> for StatusState {
    fn from(from: core::StatusState) -> Self {
        match from {
            core::StatusState::Success => Self::Success,
            core::StatusState::Failed => Self::Failed,
            core::StatusState::Running => Self::Running,
            core::StatusState::Pending => Self::Pending,
        }
    }
}

impl TryFrom<StatusState> for core::StatusState {
    type Error = ShapeError;
    fn try_from(from: StatusState) -> Result<Self, ShapeError> {
        match from {
            StatusState::Success => Ok(Self::Success),
            StatusState::Failed => Ok(Self::Failed),
            StatusState::Running => Ok(Self::Running),
            StatusState::Pending => Ok(Self::Pending),
            StatusState::Unknown => {
                let reason = "\"unknown\" is only in answers; set success, failed, running or pending";
                Err(ShapeError::at("state", reason))
            }
        }
    }
}

impl From<&core::Status> for Status {
    fn from(from: &core::Status) -> Self {
        Self {
            state: if from.silent { StatusState::Unknown } else { from.state.into() },
            since_ms: from.since.as_millis(),
            reason: from.reason.clone(),
            last_state: from.silent.then(|| from.state.into()),
            attempt: from.attempt.into(),
            log: from.log.as_ref().map(|log| LogRef { entity: log.entity.to_string(), run: log.run.clone() }),
            lifetime_ms: from.lifetime.map(|lifetime| lifetime.lasts.as_millis()),
            age_ms: None,
            refreshed_ms: from.lifetime.map(|lifetime| lifetime.refreshed.as_millis()),
            update: from.update,
        }
    }
}

impl TryFrom<Status> for core::Status {
    type Error = ShapeError;
    fn try_from(from: Status) -> Result<Self, ShapeError> {
        let silent = from.state == StatusState::Unknown && from.last_state.is_some();
        let state = from.last_state.filter(|_| silent).unwrap_or(from.state).try_into()?;
        if from.reason.len() > core::MAX_REASON_BYTES {
            return Err(ShapeError::at("reason", "it is longer than 512 bytes"));
        }
        let log = from.log.map(|log| {
            let run = super::log::run(&log.run)?;
            Ok(core::LogRef { entity: read("entity", &log.entity)?, run })
        });
        let lifetime = from.lifetime_ms.map(|millis| {
            let refreshed = Timestamp::from_millis(from.refreshed_ms.unwrap_or(from.since_ms));
            Ok::<_, ShapeError>(core::Lifetime { lasts: lifetime(millis)?, refreshed })
        });
        Ok(Self {
            state,
            silent,
            since: Timestamp::from_millis(from.since_ms),
            reason: from.reason,
            attempt: u32::try_from(from.attempt).unwrap_or(u32::MAX),
            log: log.transpose().map_err(|error: ShapeError| error.within("log"))?,
            lifetime: lifetime.transpose()?,
            update: from.update,
        })
    }
}
