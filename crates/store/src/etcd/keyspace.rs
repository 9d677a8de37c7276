//! Mapping keys and revisions to etcd's: a prefix on each key, and one more on each revision.

use bytes::Bytes;

use super::api::generated::{KeyValue, ResponseHeader};
use crate::entry::{Entry, LeaseId, Revision};
use crate::range::Range;

/// Keys below a prefix.
#[derive(Debug, Clone)]
pub(super) struct Keyspace {
    prefix: Bytes,
    /// The first key behind all of ours, in etcd's form.
    end: Bytes,
}

impl Keyspace {
    pub(super) fn new(prefix: Bytes) -> Self {
        let end = Range::prefix(prefix.clone()).end;
        // To etcd, a zero byte is "no upper bound".
        let end = if end.is_empty() { Bytes::from_static(&[0]) } else { end };
        Self { prefix, end }
    }

    /// One of our keys in etcd's form.
    pub(super) fn key(&self, key: &[u8]) -> Bytes {
        [&self.prefix, key].concat().into()
    }

    /// The first key and the end of a range that is not empty, as etcd has them.
    pub(super) fn range(&self, range: &Range) -> (Bytes, Bytes) {
        let end = if range.end.is_empty() { self.end.clone() } else { self.key(&range.end) };
        (self.key(&range.start), end)
    }

    /// One of etcd's keys in our form.
    pub(super) fn strip(&self, key: &Bytes) -> Bytes {
        if key.starts_with(&self.prefix) { key.slice(self.prefix.len()..) } else { key.clone() }
    }

    /// An entry in our form.
    pub(super) fn entry(&self, found: KeyValue) -> Entry {
        Entry {
            key: self.strip(&found.key),
            value: found.value,
            created: from_etcd(found.create_revision),
            modified: from_etcd(found.mod_revision),
            lease: u64::try_from(found.lease).ok().filter(|lease| *lease > 0).map(LeaseId),
        }
    }
}

/// etcd's revision in our numbering.
pub(super) fn from_etcd(revision: i64) -> Revision {
    Revision(u64::try_from(revision.saturating_sub(1)).unwrap_or_default())
}

/// The store's revision in an answer's header.
pub(super) fn revision_of(header: Option<ResponseHeader>) -> Revision {
    from_etcd(header.map_or(0, |header| header.revision))
}

/// Our revision in etcd's numbering.
pub(super) fn to_etcd(revision: Revision) -> i64 {
    i64::try_from(revision.0.saturating_add(1)).unwrap_or(i64::MAX)
}

/// The revision of an entry as compares have it: 0 stays 0, which means "absent" to both.
pub(super) fn compared(revision: Revision) -> i64 {
    if revision == Revision(0) { 0 } else { to_etcd(revision) }
}

/// A lease's number in etcd's form. Numbers out of its range name no lease, like the highest.
pub(super) fn lease_to_etcd(lease: LeaseId) -> i64 {
    i64::try_from(lease.0).unwrap_or(i64::MAX)
}
