//! The store as its users hold it. Checks requests against the contract and passes them to a back end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bellwether_rt::tasks::{BoxFuture, Tasks};
use bytes::Bytes;
use tokio::sync::watch;

use crate::backend::Backend;
use crate::check::StoreCheck;
use crate::embedded::{self, Embedded};
use crate::entry::{Entry, Keys, LeaseId, Page, Revision};
use crate::error::{OpenError, Refusal, StoreError};
use crate::etcd::{Etcd, EtcdSettings};
use crate::health::Health;
use crate::lease;
use crate::memory::Memory;
use crate::range::Range;
use crate::txn::{CommitOutcome, Txn};
use crate::watch::Watch;

/// Ordered bytes with revisions. Clones share one store.
#[derive(Debug, Clone)]
pub struct Store(Arc<dyn Backend>);

impl Store {
    /// The store that a back end is.
    #[cfg(feature = "testing")]
    pub(crate) fn of(backend: Arc<dyn Backend>) -> Self {
        Self(backend)
    }

    /// A store in this process's memory, for tests, the library and the simulator. Its lease keeper
    /// runs on a level below `tasks`; the store closes when that level is stopped.
    #[must_use]
    pub fn memory(tasks: &Tasks) -> Self {
        Self(Memory::start(tasks))
    }

    /// Opens the store in `dir`, making both if they are missing. Blocks while the file is read, and while it
    /// is checked if it was not closed. Its writer and lease keeper run on a level below `tasks`; the store
    /// closes when that level is stopped, so stop its users first. Call it inside of a runtime.
    ///
    /// # Errors
    /// [`OpenError`] if another process has the directory, if the file is damaged or newer, or if the
    /// operating system refuses. Whatever was there is left as it was.
    pub fn embedded(dir: &Path, tasks: &Tasks) -> Result<Self, OpenError> {
        Ok(Self(Embedded::start(dir, tasks)?))
    }

    /// Opens the store in `dir` as [`Store::embedded`] does, to look at it: what is committed to it stays in memory and is gone when it
    /// closes. The files may be read-only, and are as they were.
    ///
    /// # Errors
    /// [`OpenError`] if there is no store, and as [`Store::embedded`].
    pub fn embedded_to_look(dir: &Path, tasks: &Tasks) -> Result<Self, OpenError> {
        Ok(Self(Embedded::look(dir, tasks)?))
    }

    /// Looks at the whole embedded store in `dir` without opening it: at every page, row, and frame, and whether the history
    /// tells how the state came about. Changes nothing.
    ///
    /// # Errors
    /// [`OpenError`] if there is no store, if a process has it open, or if its files cannot be read. What is wrong with a
    /// store is no error but an answer.
    pub fn check(dir: &Path) -> Result<StoreCheck, OpenError> {
        embedded::check(dir)
    }

    /// Uses an etcd, version 3.4 or later, with other servers. Its probe and its compaction run on a level below
    /// `tasks`; the store closes when that level is stopped, so stop its users first.
    ///
    /// Revisions ascend for everybody in that etcd: they skip where others commit, and a commit that changes
    /// nothing may be answered with a revision that no watch of ours will tell. A lease is rounded up to whole
    /// seconds and to etcd's least time. Compaction is one for the whole etcd. Renewing a revoked lease may succeed
    /// in 3.4: what must not happen twice is guarded by a compare in its own commit.
    ///
    /// # Errors
    /// [`OpenError::Setting`] and [`OpenError::Io`] for the settings; [`OpenError::Etcd`] if no endpoint is an etcd
    /// that lets us in, within the deadline of a call. Nothing was written then.
    pub fn etcd(settings: EtcdSettings, tasks: &Tasks) -> BoxFuture<'_, Result<Self, OpenError>> {
        Box::pin(async move { Ok(Self(Etcd::start(settings, tasks).await?)) })
    }

    /// The health of the store, followed as it changes.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.0.health()
    }

    /// Reads entries of `range` in key order, at most `limit`, [`crate::MAX_PAGE`] entries or
    /// [`crate::MAX_PAGE_BYTES`], whichever is least: [`Page::more`] says whether to read on. Without `at`
    /// the page shows every commit acknowledged before the call.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] and [`StoreError::Future`] if `at` is not kept; [`StoreError::Refused`] for
    /// a limit of 0; [`StoreError::Unreachable`], [`StoreError::Broken`] and [`StoreError::Closed`].
    pub async fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Result<Page, StoreError> {
        if limit == 0 {
            return Err(Refusal::EmptyPage.into());
        }
        self.0.list(range, at, limit).await
    }

    /// Reads keys and the revision of their last put, without values: to find out what changed. Otherwise as
    /// [`Store::list`].
    ///
    /// # Errors
    /// As [`Store::list`].
    pub async fn keys(&self, range: Range, at: Option<Revision>, limit: usize) -> Result<Keys, StoreError> {
        if limit == 0 {
            return Err(Refusal::EmptyPage.into());
        }
        self.0.keys(range, at, limit).await
    }

    /// The current revision: at or above that of every commit acknowledged before the call, whoever made it. A watch that
    /// has reached it has delivered everything; but it may never do so, because in a shared etcd others commit too.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`], [`StoreError::Broken`] and [`StoreError::Closed`].
    pub async fn now(&self) -> Result<Revision, StoreError> {
        Ok(self.0.list(Range::none(), None, 1).await?.revision)
    }

    /// Reads one key as it is now. `None` means that it does not exist.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for an empty key; [`StoreError::Unreachable`], [`StoreError::Broken`] and
    /// [`StoreError::Closed`].
    pub async fn get(&self, key: Bytes) -> Result<Option<Entry>, StoreError> {
        if key.is_empty() {
            return Err(Refusal::EmptyKey.into());
        }
        Ok(self.0.list(Range::one(key), None, 1).await?.entries.pop())
    }

    /// Makes the changes of `txn` if all of its compares hold, durably and at once. A commit that was begun
    /// goes on if the future is dropped.
    ///
    /// # Errors
    /// [`StoreError::Refused`], [`StoreError::TooLarge`] and [`StoreError::LeaseGone`] for the request;
    /// [`StoreError::DiskFull`], [`StoreError::Unreachable`], [`StoreError::Unknown`], [`StoreError::Broken`] and
    /// [`StoreError::Closed`] for the store. Only `Unknown` and `Broken` leave open whether the changes were made:
    /// look before committing them again.
    pub async fn commit(&self, txn: Txn) -> Result<CommitOutcome, StoreError> {
        txn.check()?;
        self.0.commit(txn).await
    }

    /// Watches every commit above `after` that touches `range`, in order and without gaps. Resume with the
    /// revision of the last batch; begin with the revision of a [`Page`].
    ///
    /// # Errors
    /// [`StoreError::Compacted`] and [`StoreError::Future`] if `after` is not kept; [`StoreError::Unreachable`],
    /// [`StoreError::Broken`] and [`StoreError::Closed`].
    pub async fn watch(&self, range: Range, after: Revision) -> Result<Watch, StoreError> {
        self.0.watch(range, after).await
    }

    /// Grants a lease that ends `ttl` from now, or from its last [`Store::keep_alive`]; a back end may round
    /// up. Time is this process's monotonic clock: opening a store again gives each lease its whole time.
    ///
    /// # Errors
    /// [`StoreError::Refused`] outside of [`crate::MIN_TTL`] to [`crate::MAX_TTL`]; [`StoreError::DiskFull`],
    /// [`StoreError::Unreachable`], [`StoreError::Broken`] and [`StoreError::Closed`].
    pub async fn grant(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        lease::check_ttl(ttl)?;
        self.0.grant(ttl).await
    }

    /// Extends a lease by its full time. Writes nothing.
    ///
    /// That it succeeds is a hint, not a proof (etcd 3.4 renews some leases that were revoked): whoever holds
    /// something by a lease guards each commit by a compare with the key that is bound to it.
    ///
    /// # Errors
    /// [`StoreError::LeaseGone`] if it has ended; [`StoreError::Unreachable`], [`StoreError::Broken`] and
    /// [`StoreError::Closed`].
    pub async fn keep_alive(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.0.keep_alive(lease).await
    }

    /// Ends a lease now and deletes the keys bound to it, in one commit. The same happens, a little after
    /// its time, to a lease that is not kept alive.
    ///
    /// # Errors
    /// [`StoreError::LeaseGone`] if it has ended; [`StoreError::DiskFull`], [`StoreError::Unreachable`],
    /// [`StoreError::Unknown`], [`StoreError::Broken`] and [`StoreError::Closed`].
    pub async fn revoke(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.0.revoke(lease).await
    }

    /// Compacts history: afterwards `before` is the oldest revision to read at or to watch from. A revision
    /// that was compacted already changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Future`] if `before` does not exist yet; [`StoreError::DiskFull`],
    /// [`StoreError::Unreachable`], [`StoreError::Broken`] and [`StoreError::Closed`].
    pub async fn compact(&self, before: Revision) -> Result<(), StoreError> {
        self.0.compact(before).await
    }

    /// Closes the store for every clone: finishes the commits it has accepted, ends watches, stops its tasks
    /// and releases its directory. Closing it again does nothing.
    pub async fn close(&self) {
        self.0.close().await;
    }
}
