//! Verdicts of deciders: writes with their events, in a safe order, and when to decide again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::{AnyKey, AnyRecord};
use crate::words::counter::Revision;
use crate::words::name::Namespace;
use crate::words::time::Timestamp;
use crate::world::World;

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

/// A changeset with the records that were read for it: it is committed only if none of them has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GuardedChangeset {
    /// What is written. Each written record is a guard itself.
    pub changeset: Changeset,
    /// The other records that were read; one that was missing must be missing still.
    pub guards: Vec<AnyKey>,
}

impl From<Changeset> for GuardedChangeset {
    fn from(changeset: Changeset) -> Self {
        Self { changeset, guards: Vec::new() }
    }
}

impl Changeset {
    /// This changeset, committed only if these records have not changed.
    #[must_use]
    pub fn guarded_by<K: Into<AnyKey>>(self, guards: impl IntoIterator<Item = K>) -> GuardedChangeset {
        GuardedChangeset { changeset: self, guards: guards.into_iter().map(Into::into).collect() }
    }
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Creates or replaces the record.
    Put(Box<AnyRecord>),
    /// Deletes the record.
    Delete(AnyKey),
}

impl Write {
    /// A write that creates or replaces the record.
    #[must_use]
    pub fn put(record: impl Into<AnyRecord>) -> Self {
        Self::Put(Box::new(record.into()))
    }

    /// A write that deletes the record.
    #[must_use]
    pub fn delete(key: impl Into<AnyKey>) -> Self {
        Self::Delete(key.into())
    }

    /// Applies it to the world, as committed in `namespace` at `revision`.
    pub fn apply_to(self, world: &mut World, namespace: &Namespace, revision: Revision) {
        match self {
            Self::Put(record) => match *record {
                AnyRecord::Namespaced(record) => world.put(namespace, record, revision),
                AnyRecord::Global(record) => world.put_global(record, revision),
            },
            Self::Delete(AnyKey::Namespaced(key)) => world.delete(namespace, &key, revision),
            Self::Delete(AnyKey::Global(key)) => world.delete_global(&key, revision),
        }
    }

    /// Key of the record that it changes.
    #[must_use]
    pub fn key(&self) -> AnyKey {
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
