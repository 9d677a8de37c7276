//! The limits of the HTTP server: bodies, waits, requests at the same time.

use std::time::Duration;

/// Largest request body, in bytes: a report of 256 entities with evidence fits.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// Largest body of a request to join, in bytes: a token, labels and a certificate request. Whoever sends it has shown nothing yet.
pub(crate) const MAX_JOIN_BYTES: usize = 64 << 10;

/// Most request bodies of a class above [`MAX_BODY_BYTES`] at the same time: they are held in memory as a whole, with what is read from
/// them. One requester has one of them.
pub(crate) const LARGE_BODIES: usize = 2;

/// Most dry runs of an apply at the same time: each decides up to ten thousand documents, and whoever may only read may ask for one.
pub(crate) const DRY_RUNS: usize = 2;

/// Most backups at the same time: each has a file in the data directory as large as all records.
pub(crate) const BACKUPS: usize = 1;

/// Longest wait of a blocking read.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

/// The limits of one class of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimit {
    /// Most requests that run at the same time, and most bodies that are read at the same time.
    pub served: usize,
    /// Most requests that wait or whose bodies are read, beside those that run.
    pub waiting: usize,
    /// The share of one requester in each of the above.
    pub share: Share,
    /// When a refused client may retry, in milliseconds.
    pub retry_after_ms: u64,
}

/// The share of one requester (a token, a node, or an address without either) in the limits of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Most of its requests that run at the same time, and most of its bodies that are read at the same time.
    pub served: usize,
    /// Most of its requests that wait or whose bodies are read, beside those that run.
    pub waiting: usize,
}

impl ConcurrencyLimit {
    /// A class without shares: one requester may have all of it.
    #[must_use]
    pub const fn whole(served: usize, waiting: usize, retry_after_ms: u64) -> Self {
        Self { served, waiting, share: Share { served, waiting }, retry_after_ms }
    }

    /// The same class with this share for each requester.
    #[must_use]
    pub const fn shared(self, served: usize, waiting: usize) -> Self {
        Self { share: Share { served, waiting }, ..self }
    }
}

/// The limits of all classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimits {
    /// Limits of [`RequestClass::Urgent`](super::RequestClass::Urgent).
    pub urgent: ConcurrencyLimit,
    /// Limits of [`RequestClass::People`](super::RequestClass::People).
    pub people: ConcurrencyLimit,
    /// Limits of [`RequestClass::Watchers`](super::RequestClass::Watchers).
    pub watchers: ConcurrencyLimit,
    /// Limits of [`RequestClass::Machines`](super::RequestClass::Machines).
    pub machines: ConcurrencyLimit,
    /// Limits of [`RequestClass::Syncs`](super::RequestClass::Syncs).
    pub syncs: ConcurrencyLimit,
    /// Limits of [`RequestClass::Joins`](super::RequestClass::Joins).
    pub joins: ConcurrencyLimit,
}

impl Default for ConcurrencyLimits {
    /// Machines: as many as fill the store's transactions, and together with those that wait as many as may be connected:
    /// ten thousand agents that have something to report are answered within a second. Blocking requests do no work, so none
    /// waits for another: they are limited by the number of connections. An agent has few requests in flight: 32 are more than
    /// it and the logical nodes that it hosts ever have. A token may be that of a busy controller, so it has half.
    fn default() -> Self {
        Self {
            urgent: ConcurrencyLimit::whole(64, 256, 1_000).shared(32, 128),
            people: ConcurrencyLimit::whole(256, 1_024, 1_000).shared(128, 512),
            watchers: ConcurrencyLimit::whole(4_096, 0, 5_000).shared(2_048, 0),
            machines: ConcurrencyLimit::whole(1_024, 15_360, 4_000).shared(32, 64),
            syncs: ConcurrencyLimit::whole(16_384, 0, 4_000).shared(32, 0),
            joins: ConcurrencyLimit::whole(128, 2_048, 4_000).shared(32, 512),
        }
    }
}
