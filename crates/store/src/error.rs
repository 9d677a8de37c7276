//! What can go wrong, distinguished by what a caller does next. Never "not found": absence is an answer.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use crate::entry::Revision;
use crate::limits::{MAX_TTL, MIN_TTL};

/// Why the store gave no answer. The message fits after "cannot ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The request can never be accepted; repeating it changes nothing.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The transaction exceeds a limit; commit it in slices.
    #[error("commit {found} {limit} in one transaction: the most is {most}")]
    TooLarge {
        /// The limit.
        limit: Limit,
        /// The size of the transaction.
        found: usize,
        /// The largest size allowed.
        most: usize,
    },
    /// The requested revision is no longer kept; list again.
    #[error("read below revision {oldest}: older history was compacted")]
    Compacted {
        /// The oldest revision that can still be read and watched from.
        oldest: Revision,
    },
    /// The requested revision does not exist yet.
    #[error("read beyond revision {current}: the store has not got there")]
    Future {
        /// The newest revision.
        current: Revision,
    },
    /// The lease ended or was never granted; whatever it guarded is lost.
    #[error("use the lease: it has ended")]
    LeaseGone,
    /// There is no space. Nothing of the request was kept; repeat it once there is space.
    #[error("write to the store in {place}: no space is left there")]
    DiskFull {
        /// The directory, or the etcd, that is full.
        place: String,
    },
    /// The store does not answer, or rejects this client. Nothing of the request was made; it may be repeated.
    #[error("reach the store: {reason}")]
    Unreachable {
        /// The endpoint and its answer.
        reason: String,
    },
    /// A change was not answered. It may have been made, or may yet be: read before repeating it.
    #[error("know whether the store made the change: {reason}")]
    Unknown {
        /// The endpoint and its answer.
        reason: String,
    },
    /// The store cannot be trusted with writes until it is opened again. A commit that met this error may
    /// or may not have been kept.
    #[error("use the store: {reason}")]
    Broken {
        /// What happened, and to which file.
        reason: String,
    },
    /// The store was closed. A commit that met this error was not begun.
    #[error("use the store: it is closed")]
    Closed,
}

/// A request that makes no sense to any back end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A key has at least one byte.
    #[error("use an empty key")]
    EmptyKey,
    /// One transaction changes a key once.
    #[error("change key \"{}\" twice in one transaction", key.escape_ascii())]
    KeyTwice {
        /// The key.
        key: Bytes,
    },
    /// A page has room for at least one entry.
    #[error("list pages of no entries")]
    EmptyPage,
    /// A lease lasts at least [`crate::MIN_TTL`] and at most [`crate::MAX_TTL`].
    #[error("grant a lease of {ttl:?}: it is outside of {MIN_TTL:?} to {MAX_TTL:?}")]
    Ttl {
        /// The time asked for.
        ttl: Duration,
    },
}

/// A limit of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`crate::MAX_OPS`] compares.
    Compares,
    /// [`crate::MAX_OPS`] operations.
    Ops,
    /// [`crate::MAX_TXN_BYTES`] bytes of keys and values.
    Bytes,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compares => "compares",
            Self::Ops => "operations",
            Self::Bytes => "bytes",
        })
    }
}

/// Why a store cannot be opened. The message fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store of this process, holds the directory.
    #[error("lock {}: another process has this store open; stop it first", dir.display())]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// The file is not a store or is damaged. It was left as it is.
    #[error("read {}: it is damaged or not a store ({reason}); move its directory away, keep it, and restore a backup", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer release wrote the file. It was left as it is.
    #[error("read {}: its format {found} is newer than {known}, the newest this release knows; use a newer release", file.display())]
    Newer {
        /// The file.
        file: PathBuf,
        /// The format found.
        found: u64,
        /// The newest format this release reads.
        known: u64,
    },
    /// A setting is not usable.
    #[error("use the {setting} of the store: {reason}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// What is wrong with it, and what would be valid.
        reason: String,
    },
    /// etcd does not answer, rejects this client, or is not a supported etcd. Nothing was written.
    #[error("use etcd at {endpoint}: {reason}; {next}")]
    Etcd {
        /// The first endpoint that failed.
        endpoint: String,
        /// Its answer.
        reason: String,
        /// What to try.
        next: &'static str,
    },
    /// The operating system refused.
    #[error("open {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
}
