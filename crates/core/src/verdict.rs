//! What a decider wants: writes with their events, in safe order, and when to look again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::{Key, Record};
use crate::words::time::Timestamp;

/// What a decider wants done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// In order; each is committed whole, and every prefix of them is safe alone.
    pub changesets: Vec<Changeset>,
    /// When to look again even if nothing changes.
    pub wake: Option<Timestamp>,
}

/// Writes and the events that tell of them: one commit, or none of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changeset {
    /// What changes.
    pub writes: Vec<Write>,
    /// What is told about it.
    pub events: Vec<EventDraft>,
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Keep this.
    Put(Box<Record>),
    /// Forget that.
    Delete(Key),
}

impl Write {
    /// Keep this.
    #[must_use]
    pub fn put(record: Record) -> Self {
        Self::Put(Box::new(record))
    }

    /// The record it changes.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Put(record) => record.key(),
            Self::Delete(key) => key.clone(),
        }
    }
}

impl Verdict {
    /// Both verdicts, this one's atoms first; the earlier wake counts.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.changesets.extend(other.changesets);
        self.wake = [self.wake, other.wake].into_iter().flatten().min();
        self
    }
}
