//! How far a sink is: answers and stored records.

use std::collections::BTreeMap;

use bellwether_core::records::sink_state as core;
use bellwether_core::words::counter::{Sequence, SinkRevision};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// How far a sink is, and what keeps it from sending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkStatus {
    /// What is recorded, at most about a second old while it sends.
    pub state: SinkState,
    /// Number of events that are still to be sent, at most 1,000.
    pub undelivered: u64,
    /// Time of the oldest of them, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_undelivered_ms: Option<u64>,
    /// Why it does not send; absent while nothing keeps it from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

/// How far a sink is, as it is sent and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkState {
    /// The sink.
    pub name: String,
    /// Number of the last event that is done with: delivered, a dead letter, or not for this sink.
    pub delivered_to: u64,
    /// Number of deliveries since the sink was created.
    pub delivered: u64,
    /// When the last event was delivered, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_delivery_ms: Option<u64>,
    /// The last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt: Option<SinkAttempt>,
    /// The event that is tried again, if the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<SinkRetry>,
    /// By number of an event that is sent once more after the sink was changed or enabled, or was told to send events again: the failed
    /// attempts before that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub earlier_attempts: BTreeMap<u64, u32>,
    /// The newest dead letters, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead_letters: Vec<DeadLetter>,
    /// Number of dead letters since the sink was created.
    pub dead_lettered: u64,
    /// Whether the last event that was done with is a dead letter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_dead_letters: bool,
    /// Numbers of dead letters that are sent again next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resend: Vec<u64>,
    /// Why it sends nothing until somebody enables or changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<SinkStop>,
    /// Why its secrets cannot sign, found before there is an event to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defect: Option<SinkDefect>,
}

/// An attempt to deliver an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkAttempt {
    /// Number of the event.
    pub event: u64,
    /// When it ended, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Whether it was delivered.
    pub delivered: bool,
    /// What the receiver answered, or why there is no answer.
    pub answer: String,
}

/// An event that is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkRetry {
    /// Number of the event.
    pub event: u64,
    /// Failed attempts since the sink was created, changed or enabled last, or was told to send events again.
    pub attempts: u32,
    /// How many of them were refusals by the receiver.
    pub refusals: u32,
    /// When the first of them failed, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// When the next one is due, in milliseconds since the Unix epoch.
    pub next_ms: u64,
}

/// An event that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DeadLetter {
    /// Number of the event.
    pub event: u64,
    /// When it was given up, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Attempts that were made, whatever was changed in between.
    pub attempts: u32,
    /// Why the last one failed.
    pub reason: String,
}

/// Why a sink sends nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkStop {
    /// The revision of the sink that this is about.
    pub revision: u64,
    /// Since when, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Why.
    pub reason: String,
}

/// Why the secrets of a sink cannot sign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkDefect {
    /// The revision of the sink that this is about.
    pub revision: u64,
    /// Since when it is known, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Why.
    pub reason: String,
}

impl From<&core::SinkState> for SinkState {
    fn from(from: &core::SinkState) -> Self {
        let attempt = from.last_attempt.as_ref().map(|last| SinkAttempt {
            event: last.event.get(),
            at_ms: last.at.as_millis(),
            delivered: last.delivered,
            answer: last.answer.clone(),
        });
        let retry = from.retry.as_ref().map(|retry| SinkRetry {
            event: retry.event.get(),
            attempts: retry.attempts,
            refusals: retry.refusals,
            since_ms: retry.since.as_millis(),
            next_ms: retry.next.as_millis(),
        });
        let letters = from.dead_letters.iter().map(|letter| DeadLetter {
            event: letter.event.get(),
            at_ms: letter.at.as_millis(),
            attempts: letter.attempts,
            reason: letter.reason.clone(),
        });
        let stopped = from.stopped.as_ref().map(|stopped| SinkStop {
            revision: stopped.revision.get(),
            at_ms: stopped.at.as_millis(),
            reason: stopped.reason.clone(),
        });
        let defect = from.defect.as_ref().map(|defect| SinkDefect {
            revision: defect.revision.get(),
            at_ms: defect.at.as_millis(),
            reason: defect.reason.clone(),
        });
        Self {
            name: from.name.to_string(),
            delivered_to: from.cursor.get(),
            delivered: from.delivered,
            last_delivery_ms: from.last_delivery.map(Timestamp::as_millis),
            last_attempt: attempt,
            retry,
            earlier_attempts: from
                .earlier_attempts
                .iter()
                .map(|(event, count)| (event.get(), *count))
                .collect(),
            dead_letters: letters.collect(),
            dead_lettered: from.dead_lettered,
            in_dead_letters: from.in_dead_letters,
            resend: from.resend.iter().map(|event| event.get()).collect(),
            stopped,
            defect,
        }
    }
}

impl TryFrom<SinkState> for core::SinkState {
    type Error = ShapeError;
    fn try_from(from: SinkState) -> Result<Self, ShapeError> {
        let at = Timestamp::from_millis;
        let attempt = from.last_attempt.map(|last| core::SinkAttempt {
            event: Sequence::new(last.event),
            at: at(last.at_ms),
            delivered: last.delivered,
            answer: last.answer,
        });
        let retry = from.retry.map(|retry| core::SinkRetry {
            event: Sequence::new(retry.event),
            attempts: retry.attempts,
            refusals: retry.refusals,
            since: at(retry.since_ms),
            next: at(retry.next_ms),
        });
        let letters = from.dead_letters.into_iter().map(|letter| core::DeadLetter {
            event: Sequence::new(letter.event),
            at: at(letter.at_ms),
            attempts: letter.attempts,
            reason: letter.reason,
        });
        let stopped = from.stopped.map(|stopped| core::SinkStop {
            revision: SinkRevision::new(stopped.revision),
            at: at(stopped.at_ms),
            reason: stopped.reason,
        });
        let defect = from.defect.map(|defect| core::SinkDefect {
            revision: SinkRevision::new(defect.revision),
            at: at(defect.at_ms),
            reason: defect.reason,
        });
        Ok(Self {
            name: read("name", &from.name)?,
            cursor: Sequence::new(from.delivered_to),
            delivered: from.delivered,
            last_delivery: from.last_delivery_ms.map(at),
            last_attempt: attempt,
            retry,
            earlier_attempts: from
                .earlier_attempts
                .into_iter()
                .map(|(event, count)| (Sequence::new(event), count))
                .collect(),
            dead_letters: letters.collect(),
            dead_lettered: from.dead_lettered,
            in_dead_letters: from.in_dead_letters,
            resend: from.resend.into_iter().map(Sequence::new).collect(),
            stopped,
            defect,
        })
    }
}
