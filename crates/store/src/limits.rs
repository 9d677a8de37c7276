//! The limits of the store.

use std::time::Duration;

/// Most compares, and most operations, of one transaction. It is etcd's default `--max-txn-ops`,
/// held by every back end so that switching breaks nothing.
pub const MAX_OPS: usize = 128;

/// Size of keys and values, compares and operations together, of one transaction at most: 1 MiB, in bytes. etcd
/// accepts requests of 1.5 MiB; the rest is room for its framing.
pub const MAX_TXN_BYTES: usize = 1 << 20;

/// Most entries of one page, whatever limit is requested: a page is copied in one go, and nothing
/// may hold a view of the store for long.
pub const MAX_PAGE: usize = 10_000;

/// Size of keys and values, in bytes, at which a page ends, whatever limit is requested: 8 MiB. A page always
/// holds at least one entry if there is one.
pub const MAX_PAGE_BYTES: usize = 8 << 20;

/// Number of commits a local back end keeps for watches and reads at a revision. At the 200 writes a second a
/// fleet of ten thousand makes at most at rest, this is eight minutes: enough for any live watcher to
/// catch up, and for paging through a list.
pub const RETAINED_COMMITS: u64 = 100_000;

/// Size of history a local back end keeps, in bytes, if fewer commits reach it: 64 MiB, that of some rollouts of tens of
/// thousands of targets. Besides the records, it is what the store's file holds.
pub const RETAINED_BYTES: u64 = 64 << 20;

/// The shortest lease: 1 ms, the resolution of stored deadlines. etcd rounds up to whole seconds.
pub const MIN_TTL: Duration = Duration::from_millis(1);

/// The longest lease: one year. What should outlive it needs no lease.
pub const MAX_TTL: Duration = Duration::from_hours(365 * 24);
