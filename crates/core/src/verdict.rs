//! Verdicts of deciders: writes with their events, in a safe order, and when to decide again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::{Key, Record};
use crate::words::time::Timestamp;

/// What a decider writes, and when it must run again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// In order; each is committed whole, and every prefix of them is safe alone.
    pub changesets: Vec<Changeset>,
    /// Time to decide again even if nothing changes.
    pub wake: Option<Timestamp>,
}

/// Writes with the events that describe them: one transaction, committed whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changeset {
    /// Changes of records.
    pub writes: Vec<Write>,
    /// Events of these changes.
    pub events: Vec<EventDraft>,
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Creates or replaces the record.
    Put(Box<Record>),
    /// Deletes the record.
    Delete(Key),
}

impl Write {
    /// A write that creates or replaces the record.
    #[must_use]
    pub fn put(record: Record) -> Self {
        Self::Put(Box::new(record))
    }

    /// Key of the record that it changes.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Put(record) => record.key(),
            Self::Delete(key) => key.clone(),
        }
    }
}

impl Verdict {
    /// Both verdicts: the changesets of this one first, and the earlier wake.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.changesets.extend(other.changesets);
        self.wake = [self.wake, other.wake].into_iter().flatten().min();
        self
    }
}
