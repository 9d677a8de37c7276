//! What is stored: entries under keys, and the numbers that order and bind them. Never what they mean.

use std::fmt;

use bytes::Bytes;

/// The number of a commit. The empty store is at 0; every commit that changes something adds exactly 1, or more where
/// others use the same etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl Revision {
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a lease. Never 0 and never granted twice by one store, restarts included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value under its key, as of one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key, never empty.
    pub key: Bytes,
    /// The value, possibly empty.
    pub value: Bytes,
    /// The commit that created the key, last after it was absent.
    pub created: Revision,
    /// The commit that last put the value.
    pub modified: Revision,
    /// The lease whose end deletes the key.
    pub lease: Option<LeaseId>,
}

impl Entry {
    /// Bytes of key and value together.
    pub(crate) fn size(&self) -> usize {
        self.key.len().saturating_add(self.value.len())
    }
}

/// Keys of a range in order, all as of one revision, without their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Each key, ascending, and the commit that last put it.
    pub keys: Vec<(Bytes, Revision)>,
    /// The revision they are read at, as [`Page::revision`].
    pub revision: Revision,
    /// Whether the range holds further keys, as [`Page::more`].
    pub more: bool,
}

impl From<Page> for Keys {
    fn from(page: Page) -> Self {
        let keys = page.entries.into_iter().map(|entry| (entry.key, entry.modified)).collect();
        Self { keys, revision: page.revision, more: page.more }
    }
}

/// Entries of a range in key order, all as of one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The entries, ascending by key.
    pub entries: Vec<Entry>,
    /// The revision the page shows. Pass it as `at` to read the next page of the same moment.
    pub revision: Revision,
    /// Whether the range holds further entries; read on with [`crate::Range::after`] the last key.
    pub more: bool,
}
