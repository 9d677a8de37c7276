//! The store in this process's memory: the contract without a disk. Every call is answered at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::as_of::{self, RevertedKeys};
use crate::backend::{Answer, Backend};
use crate::entry::{Entry, LeaseId, Page, Revision};
use crate::error::StoreError;
use crate::feed::{Feed, FeedFollower, Replay};
use crate::health::Health;
use crate::history::{Commit, Edit, History};
use crate::judge::{self, TxnVerdict, judge};
use crate::lease::{self, Leases};
use crate::limits::{RETAINED_BYTES, RETAINED_COMMITS};
use crate::range::Range;
use crate::txn::{CommitOutcome, Txn};
use crate::watch::{Batch, Watch};

/// The memory back end.
#[derive(Debug)]
pub(crate) struct Memory {
    state: Mutex<MemoryState>,
    leases: Arc<Leases>,
    feed: Arc<Feed>,
    health: watch::Sender<Health>,
    /// Cancelled when the store is closed, its tasks are stopped, or the last store is dropped.
    closed: CancellationToken,
    _close_on_drop: DropGuard,
}

#[derive(Debug, Default)]
struct MemoryState {
    revision: Revision,
    entries: BTreeMap<Bytes, Entry>,
    bound: BTreeMap<LeaseId, BTreeSet<Bytes>>,
    last_lease: u64,
}

impl Memory {
    pub(crate) fn start(tasks: &Tasks) -> Arc<Self> {
        let level = tasks.child();
        let most = usize::try_from(RETAINED_COMMITS).unwrap_or(usize::MAX);
        let history = History::new(Revision(0), most, RETAINED_BYTES);
        let feed = Arc::new(Feed::new(history, Revision(0)));
        let leases = Arc::new(Leases::default());
        let memory = Arc::new(Self {
            state: Mutex::default(),
            leases: leases.clone(),
            feed: feed.clone(),
            health: watch::Sender::new(Health::writable("memory")),
            closed: level.token(),
            _close_on_drop: level.token().drop_guard(),
        });
        level.spawn("memory store leases", keep_time(Arc::downgrade(&memory), leases, feed, level.token()));
        memory
    }

    /// The state, unless the store is closed.
    fn open(&self) -> Result<MutexGuard<'_, MemoryState>, StoreError> {
        if self.closed.is_cancelled() {
            return Err(StoreError::Closed);
        }
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn list_now(&self, range: &Range, at: Option<Revision>, limit: usize) -> Result<Page, StoreError> {
        let state = self.open()?;
        let revision = at.unwrap_or(state.revision);
        let mut undone = RevertedKeys::default();
        if at.is_some() {
            let history = self.feed.history();
            as_of::check_kept(revision, history.floor(), state.revision)?;
            history.above(revision).into_iter().flatten().for_each(|commit| undone.undo(range, commit));
        }
        let today = within(&state.entries, range).map(|entry| Ok::<_, Infallible>(entry.clone()));
        match as_of::page(today, undone, revision, limit) {
            Ok(page) => Ok(page),
            Err(never) => match never {},
        }
    }

    fn commit_now(&self, txn: &Txn) -> Result<CommitOutcome, StoreError> {
        let mut state = self.open()?;
        let revision = state.revision.next();
        let verdict = judge(txn, revision, &JudgedTxn { state: &state, leases: &self.leases });
        match verdict {
            Ok(TxnVerdict::Change(edits)) => {
                self.apply(&mut state, edits);
                Ok(CommitOutcome::Committed(revision))
            }
            Ok(TxnVerdict::Nothing) => Ok(CommitOutcome::Committed(state.revision)),
            Ok(TxnVerdict::Conflict(failed)) => {
                Ok(CommitOutcome::Conflict { revision: state.revision, failed })
            }
            Ok(TxnVerdict::LeaseGone) => Err(StoreError::LeaseGone),
            Err(never) => match never {},
        }
    }

    fn revoke_now(&self, lease: LeaseId) -> Result<(), StoreError> {
        let mut state = self.open()?;
        if !self.leases.is_known(lease) {
            return Err(StoreError::LeaseGone);
        }
        let keys = state.bound.remove(&lease).unwrap_or_default();
        let gone =
            keys.into_iter().map(|key| Edit { before: state.entries.get(&key).cloned(), key, after: None });
        let edits: Vec<_> = gone.collect();
        if !edits.is_empty() {
            self.apply(&mut state, edits);
        }
        self.leases.end(lease);
        Ok(())
    }

    /// Makes edits the next commit and shows it to watchers, in one step under the state's lock.
    fn apply(&self, state: &mut MemoryState, edits: Vec<Edit>) {
        state.revision = state.revision.next();
        for Edit { key, before, after } in &edits {
            if let Some(bound) = before.as_ref().and_then(|entry| state.bound.get_mut(&entry.lease?)) {
                bound.remove(key);
            }
            if let Some(lease) = after.as_ref().and_then(|entry| entry.lease) {
                state.bound.entry(lease).or_default().insert(key.clone());
            }
            match after {
                Some(entry) => state.entries.insert(key.clone(), entry.clone()),
                None => state.entries.remove(key),
            };
        }
        self.feed.publish([Arc::new(Commit { revision: state.revision, edits })]);
    }

    fn watch_now(&self, range: Range, after: Revision) -> Result<Watch, StoreError> {
        let state = self.open()?;
        as_of::check_kept(after, self.feed.history().floor(), state.revision)?;
        let history: Arc<dyn Replay> = Arc::new(NoHistory(self.feed.clone()));
        Ok(Watch::new(FeedFollower::new(&self.feed, history, range, after)))
    }

    fn grant_now(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        let mut state = self.open()?;
        state.last_lease = state.last_lease.saturating_add(1);
        let lease = LeaseId(state.last_lease);
        self.leases.start(lease, ttl);
        Ok(lease)
    }

    fn compact_now(&self, before: Revision) -> Result<(), StoreError> {
        let state = self.open()?;
        if before > state.revision {
            return Err(StoreError::Future { current: state.revision });
        }
        self.feed.history().compact(before);
        Ok(())
    }
}

fn within<'a>(entries: &'a BTreeMap<Bytes, Entry>, range: &Range) -> impl Iterator<Item = &'a Entry> {
    let end = if range.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(range.end.clone()) };
    let bounds = (Bound::Included(range.start.clone()), end);
    let found = if range.is_empty() { None } else { Some(entries.range(bounds)) };
    found.into_iter().flatten().map(|(_, entry)| entry)
}

/// Ends leases as they run out and finally the watches. Holds no store, so that dropping the last one closes it.
async fn keep_time(memory: Weak<Memory>, leases: Arc<Leases>, feed: Arc<Feed>, stop: CancellationToken) {
    let end = |lease| {
        let memory = memory.clone();
        async move { memory.upgrade().ok_or(StoreError::Closed)?.revoke_now(lease) }.boxed()
    };
    lease::keep_time(&leases, &stop, end).await;
    feed.close();
}

/// The history behind the feed: none, as the feed holds all that memory keeps.
#[derive(Debug)]
struct NoHistory(Arc<Feed>);

impl Replay for NoHistory {
    fn replay(&self, _: Range, _: Revision) -> Answer<'_, (VecDeque<Batch>, Revision)> {
        let oldest = self.0.history().floor();
        async move { Err(StoreError::Compacted { oldest }) }.boxed()
    }
}

impl Backend for Memory {
    fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Answer<'_, Page> {
        async move { self.list_now(&range, at, limit) }.boxed()
    }

    fn commit(&self, txn: Txn) -> Answer<'_, CommitOutcome> {
        async move { self.commit_now(&txn) }.boxed()
    }

    fn watch(&self, range: Range, after: Revision) -> Answer<'_, Watch> {
        async move { self.watch_now(range, after) }.boxed()
    }

    fn grant(&self, ttl: Duration) -> Answer<'_, LeaseId> {
        async move { self.grant_now(ttl) }.boxed()
    }

    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, ()> {
        async move {
            drop(self.open()?);
            self.leases.keep_alive(lease)
        }
        .boxed()
    }

    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()> {
        async move { self.revoke_now(lease) }.boxed()
    }

    fn compact(&self, before: Revision) -> Answer<'_, ()> {
        async move { self.compact_now(before) }.boxed()
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.cancel();
        self.feed.close();
        std::future::ready(()).boxed()
    }
}

struct JudgedTxn<'a> {
    state: &'a MemoryState,
    leases: &'a Leases,
}

impl judge::TxnState for JudgedTxn<'_> {
    type Error = Infallible;

    fn entry(&self, key: &[u8]) -> Result<Option<Entry>, Infallible> {
        Ok(self.state.entries.get(key).cloned())
    }

    fn is_alive(&self, lease: LeaseId) -> Result<bool, Infallible> {
        Ok(self.leases.is_alive(lease))
    }
}
