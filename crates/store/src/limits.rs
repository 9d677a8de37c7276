//! The limits of the store.

use std::time::Duration;

/// The most compares, and the most operations, of one transaction. It is etcd's default `--max-txn-ops`,
/// held by every back end so that switching breaks nothing.
pub const MAX_OPS: usize = 128;

/// The most bytes of keys and values, compares and operations together, of one transaction: 1 MiB. etcd
/// takes requests of 1.5 MiB; the rest is room for its framing.
pub const MAX_TXN_BYTES: usize = 1 << 20;

/// The most entries of one page, whatever limit is asked for: a page is copied out in one go, and nothing
/// may hold a view of the store for long.
pub const MAX_PAGE: usize = 10_000;

/// The bytes of keys and values behind which a page ends, whatever limit is asked for: 8 MiB. A page always
/// holds at least one entry if there is one.
pub const MAX_PAGE_BYTES: usize = 8 << 20;

/// The commits a local back end keeps for watches and reads at a revision. At the 200 writes a second a
/// fleet of ten thousand makes at rest, this is eight minutes: enough for any watcher that is alive to
/// catch up, and for paging through a list.
pub const RETAINED_COMMITS: u64 = 100_000;

/// The bytes of history a local back end keeps, if fewer commits reach it: 256 MiB.
pub const RETAINED_BYTES: u64 = 256 << 20;

/// The shortest lease: 1 ms, the grain deadlines are stored in. etcd rounds up to whole seconds.
pub const MIN_TTL: Duration = Duration::from_millis(1);

/// The longest lease: one year. What should outlive it wants no lease.
pub const MAX_TTL: Duration = Duration::from_hours(365 * 24);
