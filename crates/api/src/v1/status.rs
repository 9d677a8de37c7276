//! Node statuses, as they travel.

use bellwether_core::records::status as core;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// A node's one state in a category.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// `success`, `failed`, `running` or `pending`; in answers also `unknown`: it was not refreshed within its lifetime.
    pub state: String,
    /// Since when, in milliseconds since the Unix epoch, by the server's clock. Ignored in requests.
    #[serde(default)]
    pub since_ms: u64,
    /// One line for a person, at most 512 bytes.
    #[serde(default)]
    pub reason: String,
    /// What it was when it was last said, of one that is unknown now. Ignored in requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
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

impl From<&core::Status> for Status {
    fn from(from: &core::Status) -> Self {
        Self {
            state: from.shown().to_owned(),
            since_ms: from.since.as_millis(),
            reason: from.reason.clone(),
            said: from.silent.then(|| from.state.as_str().to_owned()),
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
        let silent = from.state == core::UNKNOWN && from.said.is_some();
        let word = from.said.filter(|_| silent).unwrap_or(from.state);
        let state = core::StatusState::parse(&word).ok_or_else(|| {
            ShapeError::at("state", format!("{word:?} is not success, failed, running or pending"))
        })?;
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
