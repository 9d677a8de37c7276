//! Events, as they travel and are kept.

use bellwether_core::records::event as core;
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// Something that became true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Event {
    /// Its place in the namespace's order: 1, 2, 3 … without gaps.
    pub seq: u64,
    /// When, in milliseconds since the Unix epoch, by the server's clock.
    pub time_ms: u64,
    /// Who caused it.
    pub actor: String,
    /// `noun.change`, like `rollout.started`.
    pub kind: String,
    /// `kind/name`, like `node/web-1`.
    pub subject: String,
    /// What held before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Why, in one line.
    pub cause: String,
}

impl From<&core::Event> for Event {
    fn from(from: &core::Event) -> Self {
        Self {
            seq: from.sequence.get(),
            time_ms: from.time.as_millis(),
            actor: from.actor.to_string(),
            kind: from.kind.clone(),
            subject: from.subject.clone(),
            before: from.before.clone(),
            after: from.after.clone(),
            cause: from.cause.clone(),
        }
    }
}

impl TryFrom<Event> for core::Event {
    type Error = ShapeError;
    fn try_from(from: Event) -> Result<Self, ShapeError> {
        Ok(Self {
            sequence: Sequence::new(from.seq),
            time: Timestamp::from_millis(from.time_ms),
            actor: read("actor", &from.actor)?,
            kind: from.kind,
            subject: from.subject,
            before: from.before,
            after: from.after,
            cause: from.cause,
        })
    }
}
