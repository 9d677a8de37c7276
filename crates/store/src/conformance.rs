//! The store contract as laws that every back end must hold. For tests only (feature `testing`).
//!
//! [`suite!`](crate::suite) generates one test per law. A law creates as many empty stores as it needs, waits
//! for conditions with a bound and asserts no times.
//!
//! Laws count revisions from 0 on and one by one. That holds for a store that nobody else writes to: each law must be
//! given an etcd of its own. In an etcd that is shared, revisions ascend and skip; all else holds.

#![expect(clippy::unwrap_used, reason = "a law that meets an unexpected error has failed, as a test has")]

pub mod commits;
pub mod leases;
pub mod limits;
pub mod races;
pub mod reads;
pub mod watches;

use std::any::Any;
use std::future::Future;
use std::time::Duration;

use crate::{Batch, CommitOutcome, Compare, Entry, Op, Range, Revision, Store, Txn, Watch, WatchError};

/// How long a law waits for what must happen: far longer than any back end needs on a busy machine.
pub const BOUND: Duration = Duration::from_secs(60);

/// An empty store under test and whatever must outlive it.
#[derive(Debug)]
pub struct StoreUnderTest {
    /// The store.
    pub store: Store,
    /// Its directory and its tasks, kept alive.
    pub keep: Box<dyn Any + Send>,
}

/// One test per law, against the stores that `$make`, an `async fn() -> StoreUnderTest`, creates.
#[macro_export]
macro_rules! suite {
    ($make:path) => {
        $crate::suite!($make, commits: [
            a_commit_counts_one_revision, every_compare_is_weighed, a_failed_compare_changes_nothing,
            a_transaction_that_changes_nothing_is_no_commit, a_key_made_again_is_created_again,
        ]);
        $crate::suite!($make, reads: [
            a_page_shows_one_moment, pages_join_to_the_whole, a_range_has_sharp_edges, an_empty_store_reads_as_empty,
            the_past_is_read_until_it_is_compacted, a_page_ends_at_its_bytes, the_present_is_past_every_commit,
            keys_are_those_of_the_pages,
        ]);
        $crate::suite!($make, watches: [
            a_watch_sees_each_commit_whole_and_in_order, a_watch_sees_only_its_range, a_watch_resumes_without_gap,
            a_watch_from_compacted_history_is_refused, a_waiting_watch_wakes, a_dropped_wait_loses_nothing,
            a_closed_store_ends_its_watches,
        ]);
        $crate::suite!($make, leases: [
            a_lease_that_is_not_kept_alive_deletes_its_keys_at_once, a_revoked_lease_deletes_its_keys_at_once,
            an_ended_lease_is_gone, a_put_decides_the_binding_of_its_key, a_lease_time_has_limits,
        ]);
        $crate::suite!($make, limits: [
            what_is_too_large_is_named, what_makes_no_sense_is_refused, the_largest_transaction_is_taken,
            a_closed_store_says_so,
        ]);
        $crate::suite!($make, races: [
            of_many_writers_one_wins_each_round, a_counter_counts_every_writer, watchers_agree_with_the_state,
        ]);
    };
    ($make:path, $laws:ident: [$($law:ident),* $(,)?]) => {
        mod $laws {
            $(
                #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $law() {
                    $crate::conformance::$laws::$law(async || $make().await).await;
                }
            )*
        }
    };
}

/// A put without a lease.
pub fn put(key: &str, value: &str) -> Op {
    Op::Put { key: key.to_owned().into(), value: value.to_owned().into(), lease: None }
}

/// A delete.
pub fn delete(key: &str) -> Op {
    Op::Delete { key: key.to_owned().into() }
}

/// Commits `ops` without compares and returns the revision.
pub async fn commit(store: &Store, ops: impl Into<Vec<Op>>) -> Revision {
    match commit_if(store, [], ops).await {
        CommitOutcome::Committed(revision) => revision,
        CommitOutcome::Conflict { .. } => unreachable!("there is no compare that could fail"),
    }
}

/// Commits `ops` if `compares` hold.
pub async fn commit_if(
    store: &Store,
    compares: impl Into<Vec<Compare>>,
    ops: impl Into<Vec<Op>>,
) -> CommitOutcome {
    store.commit(Txn { compares: compares.into(), ops: ops.into() }).await.unwrap()
}

/// The value under `key`.
pub async fn value(store: &Store, key: &str) -> Option<String> {
    store.get(key.to_owned().into()).await.unwrap().map(|entry| text(&entry.value))
}

/// Every key and value of `range` at a revision, as text.
pub async fn dump(store: &Store, range: Range, at: Option<Revision>) -> Vec<(String, String)> {
    let page = store.list(range, at, 1_000).await.unwrap();
    assert!(!page.more, "the laws dump small ranges");
    page.entries.iter().map(|entry: &Entry| (text(&entry.key), text(&entry.value))).collect()
}

/// What a batch changed, as text: `key=value` or `-key`.
pub fn changes_of(batch: &Batch) -> Vec<String> {
    let tell = |change: &crate::Change| match &change.entry {
        Some(entry) => format!("{}={}", text(&change.key), text(&entry.value)),
        None => format!("-{}", text(&change.key)),
    };
    batch.changes.iter().map(tell).collect()
}

/// The next batch of a watch; fails if none comes.
pub async fn next(watch: &mut Watch) -> Result<Batch, WatchError> {
    soon(watch.next()).await
}

/// The result of a future that must end.
pub async fn soon<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, wait).await.unwrap()
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
