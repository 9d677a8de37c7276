//! A back end whose answers are spoilt as its switches say.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::faults::{Fault, Faults};
use crate::backend::{Answer, Backend};
use crate::health::Health;
use crate::memory::Memory;
use crate::watch::{Batches, Watch};
use crate::{Batch, LeaseId, MAX_TTL, Op, Outcome, Page, Range, Revision, StoreError, Txn, WatchError};

/// How many commits a stale read is behind.
const STALE_COMMITS: u64 = 3;

#[derive(Debug)]
pub(super) struct Faulty {
    inner: Arc<Memory>,
    faults: Faults,
    /// How often somebody has listed.
    lists: Arc<AtomicU64>,
}

impl Faulty {
    pub(super) fn start(tasks: &Tasks, faults: Faults) -> Arc<Self> {
        Arc::new(Self { inner: Memory::start(tasks), faults, lists: Arc::default() })
    }

    /// Hangs, if this call is to.
    async fn freeze(&self) {
        if self.faults.strikes(Fault::Freeze) {
            let mut frozen = self.faults.frozen.subscribe();
            // The sender is ours, so the wait ends only with the fault.
            drop(frozen.wait_for(|is_frozen| !is_frozen).await);
        }
    }

    /// The revision that a stale read shows, if this one is to be.
    async fn stale(&self, range: &Range) -> Result<Option<Revision>, StoreError> {
        if !self.faults.strikes(Fault::StaleRead) {
            return Ok(None);
        }
        let present = self.inner.list(range.clone(), None, 1).await?.revision;
        let stale = Revision(present.0.saturating_sub(STALE_COMMITS));
        match self.inner.list(range.clone(), Some(stale), 1).await {
            Ok(_) => Ok(Some(stale)),
            Err(StoreError::Compacted { oldest }) => Ok(Some(oldest)),
            Err(error) => Err(error),
        }
    }

    fn full(&self) -> Result<(), StoreError> {
        if self.faults.strikes(Fault::NoSpace) {
            return Err(StoreError::DiskFull { place: "memory, for a test".to_owned() });
        }
        Ok(())
    }
}

impl Backend for Faulty {
    fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Answer<'_, Page> {
        async move {
            self.freeze().await;
            self.lists.fetch_add(1, Ordering::SeqCst);
            let at = match at {
                Some(at) => Some(at),
                None => self.stale(&range).await?,
            };
            self.inner.list(range, at, limit).await
        }
        .boxed()
    }

    fn commit(&self, txn: Txn) -> Answer<'_, Outcome> {
        async move {
            self.freeze().await;
            if txn.ops.iter().any(|op| matches!(op, Op::Put { .. })) {
                self.full()?;
            }
            if self.faults.strikes(Fault::LoseCommit) {
                return Err(StoreError::Unreachable { reason: "the commit was lost, for a test".to_owned() });
            }
            let outcome = self.inner.commit(txn).await?;
            if self.faults.strikes(Fault::LoseAnswer) {
                return Err(StoreError::Unknown { reason: "the answer was lost, for a test".to_owned() });
            }
            Ok(outcome)
        }
        .boxed()
    }

    fn watch(&self, range: Range, after: Revision) -> Answer<'_, Watch> {
        async move {
            self.freeze().await;
            let inner = self.inner.watch(range, after).await?;
            let (faults, lists) = (self.faults.clone(), self.lists.clone());
            Ok(Watch::new(FaultyWatch { inner, faults, lists, blind_since: None, last: None, seen: after }))
        }
        .boxed()
    }

    fn grant(&self, ttl: Duration) -> Answer<'_, LeaseId> {
        async move {
            self.freeze().await;
            self.full()?;
            let outlives = self.faults.strikes(Fault::LeaseOutlives);
            let ttl = if outlives { ttl.saturating_mul(3).min(MAX_TTL) } else { ttl };
            self.inner.grant(ttl).await
        }
        .boxed()
    }

    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, ()> {
        async move {
            self.freeze().await;
            match self.inner.keep_alive(lease).await {
                Err(StoreError::LeaseGone) if self.faults.strikes(Fault::RenewEnded) => Ok(()),
                renewed => renewed,
            }
        }
        .boxed()
    }

    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()> {
        async move {
            self.freeze().await;
            self.inner.revoke(lease).await
        }
        .boxed()
    }

    fn compact(&self, before: Revision) -> Answer<'_, ()> {
        async move {
            self.freeze().await;
            self.inner.compact(before).await
        }
        .boxed()
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.faults.health.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

/// A watch that is told wrongly.
#[derive(Debug)]
struct FaultyWatch {
    inner: Watch,
    faults: Faults,
    lists: Arc<AtomicU64>,
    /// How often somebody had listed when this watch went blind.
    blind_since: Option<u64>,
    /// The batch that was told last, unless it was told again.
    last: Option<Batch>,
    seen: Revision,
}

impl FaultyWatch {
    async fn advance(&mut self) -> Result<Batch, WatchError> {
        if self.last.is_some() && self.faults.strikes(Fault::ReplayOld) {
            return self.last.take().ok_or(WatchError::Closed);
        }
        loop {
            let mut batch = self.inner.next().await?;
            if self.faults.strikes(Fault::GoBack) {
                let found = Revision(self.seen.0.saturating_sub(1));
                return Err(WatchError::WentBack { seen: batch.revision, found });
            }
            if self.is_blind() {
                continue;
            }
            let is_delete = |change: &crate::Change| change.entry.is_none();
            if batch.changes.iter().any(is_delete) && self.faults.strikes(Fault::LoseDeletes) {
                batch.changes.retain(|change| !is_delete(change));
            }
            if !batch.changes.is_empty() {
                self.seen = batch.revision;
                self.last = Some(batch.clone());
                return Ok(batch);
            }
        }
    }

    /// Whether this batch is passed over, as nobody has listed since the watch went blind.
    fn is_blind(&mut self) -> bool {
        let lists = self.lists.load(Ordering::SeqCst);
        if self.blind_since.is_some_and(|since| since != lists) {
            self.blind_since = None;
        }
        if self.blind_since.is_none() && self.faults.strikes(Fault::SkipUntilListed) {
            self.blind_since = Some(lists);
        }
        self.blind_since.is_some()
    }
}

impl Batches for FaultyWatch {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, WatchError>> {
        self.advance().boxed()
    }
}
