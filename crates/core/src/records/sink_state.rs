//! How far a sink is. Created and deleted with its sink; written by the server that leads while it sends events, and by the operations that
//! enable a sink or have events sent again.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::words::counter::{Sequence, SinkRevision};
use crate::words::name::SinkName;
use crate::words::time::Timestamp;

/// Most dead letters that are kept of a sink, the newest ones.
pub const MAX_DEAD_LETTERS: usize = 100;

/// Longest answer or reason that is kept, in bytes: one readable line.
pub const MAX_REASON_BYTES: usize = 512;

/// How far a sink is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkState {
    /// The sink.
    pub name: SinkName,
    /// The last event that is done with: delivered, a dead letter, or not for this sink. Those after it are still to be sent.
    pub cursor: Sequence,
    /// Number of deliveries since the sink was created; an event that is delivered twice counts twice.
    pub delivered: u64,
    /// When the last event was delivered.
    pub last_delivery: Option<Timestamp>,
    /// The last attempt.
    pub last_attempt: Option<SinkAttempt>,
    /// The event that is tried again, if the last attempt failed.
    pub retry: Option<SinkRetry>,
    /// Of events that are sent once more after a person changed something: the failed attempts before that, by event.
    pub earlier_attempts: BTreeMap<Sequence, u32>,
    /// The newest dead letters, in the order in which they were given up.
    pub dead_letters: Vec<DeadLetter>,
    /// Number of dead letters since the sink was created.
    pub dead_lettered: u64,
    /// Whether the last event that was done with is a dead letter: of several in a row only the first has an event of its own.
    pub in_dead_letters: bool,
    /// Dead letters that are sent again before the next events, in this order.
    pub resend: Vec<Sequence>,
    /// Why nothing is sent until somebody enables or changes the sink: the receiver said that it is gone.
    pub stopped: Option<SinkStop>,
    /// Why its secrets cannot sign, found before there is an event to send; `None` if nothing is known against them.
    pub defect: Option<SinkDefect>,
}

/// An attempt to deliver an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkAttempt {
    /// The event.
    pub event: Sequence,
    /// When it ended.
    pub at: Timestamp,
    /// Whether it was delivered.
    pub delivered: bool,
    /// What the receiver answered, or why there is no answer, in one line.
    pub answer: String,
}

/// An event that is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkRetry {
    /// The event.
    pub event: Sequence,
    /// Failed attempts since the sink was created, changed or enabled last, or was told to send events again.
    pub attempts: u32,
    /// How many of them were refusals by the receiver, which say something about the event.
    pub refusals: u32,
    /// When the first of them failed.
    pub since: Timestamp,
    /// When the next one is due.
    pub next: Timestamp,
}

/// An event that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The event.
    pub event: Sequence,
    /// When it was given up.
    pub at: Timestamp,
    /// Attempts that were made, whatever was changed in between.
    pub attempts: u32,
    /// Why the last one failed.
    pub reason: String,
}

/// Why a sink sends nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkStop {
    /// The revision of the sink that this is about: a later one sends again.
    pub revision: SinkRevision,
    /// Since when.
    pub at: Timestamp,
    /// Why, in one line.
    pub reason: String,
}

/// Why the secrets of a sink cannot sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkDefect {
    /// The revision of the sink that this is about.
    pub revision: SinkRevision,
    /// Since when it is known.
    pub at: Timestamp,
    /// Why, in one line.
    pub reason: String,
}

impl SinkState {
    /// The state of a new sink, which sends the events after this one.
    #[must_use]
    pub const fn new(name: SinkName, cursor: Sequence) -> Self {
        Self {
            name,
            cursor,
            delivered: 0,
            last_delivery: None,
            last_attempt: None,
            retry: None,
            earlier_attempts: BTreeMap::new(),
            dead_letters: Vec::new(),
            dead_lettered: 0,
            in_dead_letters: false,
            resend: Vec::new(),
            stopped: None,
            defect: None,
        }
    }

    /// Why a sink of this revision sends nothing until somebody enables or changes it.
    #[must_use]
    pub fn stop_at(&self, revision: SinkRevision) -> Option<&SinkStop> {
        self.stopped.as_ref().filter(|stopped| stopped.revision == revision)
    }

    /// Why the secrets of a sink of this revision cannot sign.
    #[must_use]
    pub fn defect_at(&self, revision: SinkRevision) -> Option<&SinkDefect> {
        self.defect.as_ref().filter(|defect| defect.revision == revision)
    }
}
