//! Statuses of nodes: requests, answers and stored records.

use bellwether_core::records::status as core;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, is_zero, read};
use crate::word::words;

words! {
    /// The state of a node in one category.
    StatusState {
        /// The work finished and succeeded.
        Success = "success",
        /// The work finished and failed.
        Failed = "failed",
        /// The work is in progress.
        Running = "running",
        /// The work waits for something outside the machine.
        Pending = "pending",
        /// The status was not refreshed within its lifetime. Only in answers.
        Unknown = "unknown",
    }
}

/// The status of a node in one category. A node has at most 64 categories: the 4 that only its agent sets
/// (`provision`, `configure`, `validate`, `files`, `orders`), and 59 others, whose names are DNS labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The state; `unknown` is only in answers.
    pub state: StatusState,
    /// Time of the last change of the state, in milliseconds since the Unix epoch, by the server's clock.
    /// Ignored in requests.
    #[serde(default)]
    pub since_ms: u64,
    /// The reason for the state, one line of at most 512 bytes.
    #[serde(default)]
    pub reason: String,
    /// The last state that was set; only if the state is `unknown`. Ignored in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<StatusState>,
    /// Number of the attempt, from 1; 0 if the category has no attempts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u64,
    /// Reference to the log of the failed run; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogRef>,
    /// How long the status is valid without being refreshed, in milliseconds, from one second to a year; it
    /// does not expire if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_ms: Option<u64>,
    /// In requests: time since the status was set, in milliseconds, measured on the machine; 0 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Time of the last refresh, in milliseconds since the Unix epoch, by the server's clock; only with a
    /// lifetime. Ignored in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refreshed_ms: Option<u64>,
    /// Number of the update on the machine; an update that is sent again is not a refresh. 0 if updates are
    /// not numbered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub update: u64,
}

/// Reference to the log of a failed run in the status's own category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogRef {
    /// Entity that the run belongs to.
    pub entity: String,
    /// The agent's name of the run; the stored log may be that of a later run.
    pub run: String,
}

/// Reads a lifetime in milliseconds.
///
/// # Errors
/// [`ShapeError`] at `lifetime_ms` when it is not from a second to a year.
pub fn lifetime(millis: u64) -> Result<Span, ShapeError> {
    let span = Span::from_millis(millis);
    if (core::SHORTEST_LIFETIME..=core::LONGEST_LIFETIME).contains(&span) {
        return Ok(span);
    }
    Err(ShapeError::at("lifetime_ms", format!("{span} is not between 1s and 1 year")))
}

impl From<StatusState> for Status {
    /// A status that contains this state only.
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
                let reason = "\"unknown\" cannot be set; use success, failed, running or pending";
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

/// A reason as it stands in a line: one with several would pass for lines of whoever shows it.
fn in_one_line(reason: String) -> String {
    if reason.contains(char::is_control) { reason.replace(char::is_control, " ") } else { reason }
}

impl TryFrom<Status> for core::Status {
    type Error = ShapeError;
    fn try_from(from: Status) -> Result<Self, ShapeError> {
        let silent = from.state == StatusState::Unknown && from.last_state.is_some();
        let state = from.last_state.filter(|_| silent).unwrap_or(from.state).try_into()?;
        if from.reason.len() > core::MAX_REASON_BYTES {
            return Err(ShapeError::at("reason", "longer than 512 bytes"));
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
            reason: in_one_line(from.reason),
            attempt: u32::try_from(from.attempt).unwrap_or(u32::MAX),
            log: log.transpose().map_err(|error: ShapeError| error.within("log"))?,
            lifetime: lifetime.transpose()?,
            update: from.update,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_several_lines_is_one_line() {
        let sent = serde_json::json!({"state": "failed", "reason": "x\nnext: run: evil\u{1b}[2K"});
        let status: Status = serde_json::from_value(sent).unwrap();
        let read = core::Status::try_from(status).unwrap();
        assert_eq!(read.reason, "x next: run: evil [2K");
    }
}
