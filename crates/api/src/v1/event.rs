//! Events: answers and stored records.

use bellwether_core::records::event as core;
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// One change, recorded in the same transaction as the change itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Event {
    /// Number of the event in its namespace: 1, 2, 3 and so on, without gaps.
    pub seq: u64,
    /// Time of the event, in milliseconds since the Unix epoch, by the server's clock.
    pub time_ms: u64,
    /// Who caused it: a token name, `node/NAME`, or `bellwether` for a decision of the control plane.
    pub actor: String,
    /// Kind of the event as `noun.change`, such as `rollout.started`.
    pub kind: String,
    /// Object that changed, as `kind/name`, such as `node/web-1`.
    pub subject: String,
    /// Value before the change; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Value after the change; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Cause of the change, one line.
    pub cause: String,
    /// Number of the event that led to it; absent if none did, or none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<u64>,
}

/// An event with those that led to it and those that it led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EventChain {
    /// The events in order: from the first that led to it, over the event itself, to what it led to. Those that the caller may not read
    /// are left out.
    pub items: Vec<Event>,
    /// Number of the last event that was read to find what it led to.
    pub read_to: u64,
    /// Whether all events up to the newest were read.
    pub complete: bool,
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
            caused_by: from.caused_by.map(Sequence::get),
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
            caused_by: from.caused_by.map(Sequence::new),
        })
    }
}
