//! A back end that is another store seen with faults: what each fault does to an answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::faulty::{FaultyStore, StoreFault};
use crate::backend::{Answer, Backend};
use crate::entry::{LeaseId, Page, Revision};
use crate::error::StoreError;
use crate::health::Health;
use crate::limits::MAX_TTL;
use crate::range::Range;
use crate::store::Store;
use crate::txn::{CommitOutcome, Op, Txn};
use crate::watch::{Batch, Batches, Watch, WatchError};

/// How long a watch takes to notice that the connection is cut.
const NOTICED: Duration = Duration::from_secs(15);

/// How many batches a watch may go back when it delivers something again.
const MAX_DELIVERED: usize = 8;

#[derive(Debug)]
pub(super) struct FaultyBackend {
    inner: Store,
    line: FaultyStore,
    closed: watch::Sender<bool>,
    /// How often the store was listed.
    lists: Arc<AtomicU64>,
}

impl FaultyBackend {
    pub(super) fn new(inner: Store, line: FaultyStore) -> Self {
        Self { inner, line, closed: watch::Sender::new(false), lists: Arc::default() }
    }

    async fn pass(&self) -> Result<(), StoreError> {
        if *self.closed.borrow() {
            return Err(StoreError::Closed);
        }
        self.line.pass().await
    }

    async fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Result<Page, StoreError> {
        self.pass().await?;
        if at.is_some() {
            self.line.lists().await;
        }
        self.lists.fetch_add(1, Ordering::SeqCst);
        let page = self.inner.list(range.clone(), at, limit).await?;
        if at.is_some() || page.revision.0 < 8 || !self.line.meets(StoreFault::Stale) {
            return Ok(page);
        }
        // A lagging member: an older state, and its revision.
        let behind = Revision(page.revision.0.saturating_sub(4));
        Ok(self.inner.list(range, Some(behind), limit).await.unwrap_or(page))
    }

    async fn commit(&self, txn: Txn) -> Result<CommitOutcome, StoreError> {
        self.pass().await?;
        if txn.ops.iter().any(|op| matches!(op, Op::Put { .. })) {
            self.line.check_room()?;
        }
        if self.line.meets(StoreFault::Refused) {
            return Err(StoreError::Unreachable { reason: "the member was not there".to_owned() });
        }
        let outcome = self.inner.commit(txn).await;
        if self.line.meets(StoreFault::Unanswered) {
            return Err(StoreError::Unknown { reason: "the answer was lost".to_owned() });
        }
        // The answer uses the connection too.
        match self.line.pass().await {
            Ok(()) => outcome,
            Err(_) => Err(StoreError::Unknown { reason: "the line was cut before the answer".to_owned() }),
        }
    }
}

impl Backend for FaultyBackend {
    fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Answer<'_, Page> {
        self.list(range, at, limit).boxed()
    }

    fn commit(&self, txn: Txn) -> Answer<'_, CommitOutcome> {
        self.commit(txn).boxed()
    }

    fn watch(&self, range: Range, after: Revision) -> Answer<'_, Watch> {
        async move {
            self.pass().await?;
            let inner = self.inner.watch(range, after).await?;
            let closed = self.closed.subscribe();
            let (line, lists) = (self.line.clone(), self.lists.clone());
            Ok(Watch::new(FaultyWatch {
                inner,
                line,
                closed,
                lists,
                blind_since: None,
                delivered: VecDeque::new(),
            }))
        }
        .boxed()
    }

    fn grant(&self, ttl: Duration) -> Answer<'_, LeaseId> {
        async move {
            self.pass().await?;
            self.line.check_room()?;
            let outlives = self.line.meets(StoreFault::OutlivingLease);
            self.inner.grant(if outlives { ttl.saturating_mul(3).min(MAX_TTL) } else { ttl }).await
        }
        .boxed()
    }

    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, ()> {
        async move {
            self.pass().await?;
            match self.inner.keep_alive(lease).await {
                Err(StoreError::LeaseGone) if self.line.meets(StoreFault::RenewsWhatEnded) => Ok(()),
                kept => kept,
            }
        }
        .boxed()
    }

    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()> {
        async move {
            self.pass().await?;
            self.inner.revoke(lease).await
        }
        .boxed()
    }

    fn compact(&self, before: Revision) -> Answer<'_, ()> {
        async move {
            self.pass().await?;
            self.inner.compact(before).await
        }
        .boxed()
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.line.health()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.send_replace(true);
        std::future::ready(()).boxed()
    }
}

/// A watch with faults.
#[derive(Debug)]
struct FaultyWatch {
    inner: Watch,
    line: FaultyStore,
    closed: watch::Receiver<bool>,
    lists: Arc<AtomicU64>,
    /// How often the store had been listed when this watch stopped delivering.
    blind_since: Option<u64>,
    /// What was delivered last, to be delivered again.
    delivered: VecDeque<Batch>,
}

impl FaultyWatch {
    async fn advance(&mut self) -> Result<Batch, WatchError> {
        let repeats = !self.delivered.is_empty() && self.line.meets(StoreFault::Repeated);
        if let Some(again) = repeats.then(|| self.delivered.pop_front()).flatten() {
            return Ok(again);
        }
        loop {
            // A store whose last clone was dropped is closed too.
            let is_closed = *self.closed.borrow() || self.closed.has_changed().is_err();
            let mut batch = if is_closed {
                // What was there before is delivered all the same.
                self.inner.next().now_or_never().unwrap_or(Err(WatchError::Closed))?
            } else {
                let Some(batch) = self.through().await? else { continue };
                batch
            };
            if self.line.meets(StoreFault::WentBack) {
                let found = Revision(batch.revision.0.saturating_sub(2));
                return Err(WatchError::WentBack { seen: batch.revision, found });
            }
            if self.is_blind() || self.line.meets(StoreFault::LostCommits) {
                continue;
            }
            let deletes = batch.changes.iter().any(|change| change.entry.is_none());
            if deletes && self.line.meets(StoreFault::LostDeletes) {
                batch.changes.retain(|change| change.entry.is_some());
            }
            if batch.changes.is_empty() {
                continue;
            }
            self.delivered.push_back(batch.clone());
            if self.delivered.len() > MAX_DELIVERED {
                self.delivered.pop_front();
            }
            return Ok(batch);
        }
    }

    /// The next batch; none if the connection was cut or the store closed meanwhile.
    async fn through(&mut self) -> Result<Option<Batch>, WatchError> {
        let (mut cut, mut closed) = (self.line.is_cut(), self.closed.clone());
        // Nothing is taken from the watch while the connection is cut; all arms are cancel-safe.
        let healed = tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => return Ok(None),
            healed = tokio::time::timeout(NOTICED, cut.wait_for(|cut| !cut)) => healed.is_ok(),
        };
        if !healed {
            let reason = "the line is cut".to_owned();
            return Err(WatchError::Failed(StoreError::Unreachable { reason }));
        }
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Ok(None),
            _ = cut.wait_for(|cut| *cut) => Ok(None),
            batch = self.inner.next() => batch.map(Some),
        }
    }

    /// Whether this batch is omitted, as nobody has listed since the watch stopped delivering.
    fn is_blind(&mut self) -> bool {
        let lists = self.lists.load(Ordering::SeqCst);
        if self.blind_since.is_some_and(|since| since != lists) {
            self.blind_since = None;
        }
        if self.blind_since.is_none() && self.line.meets(StoreFault::SkipsUntilListed) {
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

impl Store {
    /// The same store as seen through these faults. Closing it closes nothing of the other.
    #[must_use]
    pub fn through(&self, line: &FaultyStore) -> Self {
        line.show_health(self.health().borrow().clone());
        Self::of(Arc::new(FaultyBackend::new(self.clone(), line.clone())))
    }
}
