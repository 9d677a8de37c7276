//! How a store is, as it knows itself. Never decides what follows from it.

use tokio::time::Instant;

/// How a store is. Of etcd it is asked for time and again; the embedded store knows what its last write met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// What keeps the bytes: `memory`, `embedded` or `etcd`.
    pub engine: &'static str,
    /// The version of what keeps them, if that is another program.
    pub version: Option<String>,
    /// Where it is, if it is elsewhere.
    pub endpoints: Vec<String>,
    /// Bytes on disk, history included.
    pub size_bytes: Option<u64>,
    /// The bytes it may grow to, if they are known.
    pub quota_bytes: Option<u64>,
    /// What it complains of, in its own words.
    pub alarms: Vec<String>,
    /// Whether it can be used.
    pub condition: Condition,
}

/// Whether a store can be used. The reasons say what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It takes writes.
    Writable,
    /// It answers reads and keeps leases alive, and refuses writes and new leases.
    ReadOnly {
        /// Why, and what to do.
        reason: String,
        /// Since when.
        since: Instant,
    },
    /// It does not answer.
    Unreachable {
        /// Why, and what to do.
        reason: String,
        /// Since when.
        since: Instant,
    },
}

impl Health {
    /// A store of which nothing bad is known.
    pub(crate) fn writable(engine: &'static str) -> Self {
        Self {
            engine,
            version: None,
            endpoints: Vec::new(),
            size_bytes: None,
            quota_bytes: None,
            alarms: Vec::new(),
            condition: Condition::Writable,
        }
    }
}

impl Condition {
    /// Read-only from now on, unless it was before.
    pub(crate) fn read_only(&self, reason: String) -> Self {
        Self::ReadOnly { reason, since: Instant::now() }.since_before(self)
    }

    /// Unreachable from now on, unless it was before.
    pub(crate) fn unreachable(&self, reason: String) -> Self {
        Self::Unreachable { reason, since: Instant::now() }.since_before(self)
    }

    /// This condition, with the age of the one before if that was of the same kind.
    pub(crate) fn since_before(self, before: &Self) -> Self {
        match (self, before) {
            (Self::ReadOnly { reason, .. }, Self::ReadOnly { since, .. }) => {
                Self::ReadOnly { reason, since: *since }
            }
            (Self::Unreachable { reason, .. }, Self::Unreachable { since, .. }) => {
                Self::Unreachable { reason, since: *since }
            }
            (new, Self::Writable | Self::ReadOnly { .. } | Self::Unreachable { .. }) => new,
        }
    }
}
