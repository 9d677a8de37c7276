//! The limits of the HTTP server: bodies, waits, requests at the same time.

use std::time::Duration;

/// Largest request body, in bytes: a report of 256 entities with evidence fits.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// Most request bodies above [`MAX_BODY_BYTES`] at the same time: they are held in memory as a whole, with what is read from them.
pub(crate) const LARGE_BODIES: usize = 2;

/// Most dry runs of an apply at the same time: each decides up to ten thousand documents, and whoever may only read may ask for one.
pub(crate) const DRY_RUNS: usize = 2;

/// Longest wait of a blocking read.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

/// The limits of one class of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimit {
    /// Most requests that run at the same time.
    pub served: usize,
    /// Most requests that wait.
    pub waiting: usize,
    /// When a refused client may retry, in milliseconds.
    pub retry_after_ms: u64,
}

/// The limits of all classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimits {
    /// Limits of [`RequestClass::People`](super::RequestClass::People).
    pub people: ConcurrencyLimit,
    /// Limits of [`RequestClass::Watchers`](super::RequestClass::Watchers).
    pub watchers: ConcurrencyLimit,
    /// Limits of [`RequestClass::Machines`](super::RequestClass::Machines).
    pub machines: ConcurrencyLimit,
    /// Limits of [`RequestClass::Syncs`](super::RequestClass::Syncs).
    pub syncs: ConcurrencyLimit,
}

impl Default for ConcurrencyLimits {
    /// Machines: as many as fill the store's transactions, and together with those that wait as many as may be connected:
    /// ten thousand agents that have something to report are answered within a second. Blocking requests do no work, so none
    /// waits for another: they are limited by the number of connections.
    fn default() -> Self {
        Self {
            people: ConcurrencyLimit { served: 256, waiting: 1_024, retry_after_ms: 1_000 },
            watchers: ConcurrencyLimit { served: 4_096, waiting: 0, retry_after_ms: 5_000 },
            machines: ConcurrencyLimit { served: 1_024, waiting: 15_360, retry_after_ms: 4_000 },
            syncs: ConcurrencyLimit { served: 16_384, waiting: 0, retry_after_ms: 4_000 },
        }
    }
}
