//! A store seen through a line that can be cut, be slow, and lie as etcd 3.4 is known to. For tests and the simulator: each
//! of several servers has a line of its own to the one store. The same seed and the same calls bring the same trouble.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::backend::{Answer, Backend};
use crate::entry::{LeaseId, Page, Revision};
use crate::error::StoreError;
use crate::health::Health;
use crate::range::Range;
use crate::store::Store;
use crate::txn::{Outcome, Txn};
use crate::watch::{Batch, Batches, Watch, WatchError};

/// How long a call waits on a line that is cut before it gives up, as a client of etcd does.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long a watch on a line that is cut takes to notice.
const NOTICED: Duration = Duration::from_secs(15);

/// How many batches a watch may go back when it tells something again.
const TOLD: usize = 8;

/// A line to a store. Clones are the same line.
#[derive(Debug, Clone)]
pub struct Line(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cut: watch::Sender<bool>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    seed: u64,
    trouble: Trouble,
}

/// What a line does to what goes over it. Shares are in parts of a million; everything is off by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Longest that a call takes, in milliseconds.
    pub slow_ms: u64,
    /// Commits that are not made.
    pub refused: u32,
    /// Commits that are made and not answered.
    pub unanswered: u32,
    /// Deletes that no watch tells of.
    pub lost_deletes: u32,
    /// Commits that no watch tells of.
    pub lost_commits: u32,
    /// Commits that a watch tells of once more.
    pub repeated: u32,
    /// Reads that show an older state as the present one.
    pub stale: u32,
    /// Renewals of leases that have ended and are said to go well.
    pub renews_what_ended: bool,
}

impl Line {
    /// A line in order.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = Mutex::new(State { seed, trouble: Trouble::default() });
        Self(Arc::new(Shared { cut: watch::Sender::new(false), state }))
    }

    /// Nothing gets through any more.
    pub fn cut(&self) {
        self.0.cut.send_replace(true);
    }

    /// Everything gets through again.
    pub fn heal(&self) {
        self.0.cut.send_replace(false);
    }

    /// Makes trouble from now on.
    pub fn trouble(&self, trouble: Trouble) {
        self.state().trouble = trouble;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this one of many meets the trouble of that share.
    fn meets(&self, share: impl FnOnce(&Trouble) -> u32) -> bool {
        let mut state = self.state();
        let share = share(&state.trouble);
        share > 0 && state.draw() % 1_000_000 < u64::from(share)
    }

    /// Waits until a call is through, or gives up.
    async fn pass(&self) -> Result<(), StoreError> {
        let slow = {
            let mut state = self.state();
            let most = state.trouble.slow_ms;
            if most == 0 { 0 } else { state.draw() % most.saturating_add(1) }
        };
        if slow > 0 {
            tokio::time::sleep(Duration::from_millis(slow)).await;
        }
        let mut cut = self.0.cut.subscribe();
        match tokio::time::timeout(DEADLINE, cut.wait_for(|cut| !cut)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(StoreError::Closed),
            Err(_) => Err(StoreError::Unreachable { reason: "the line is cut".to_owned() }),
        }
    }
}

impl State {
    /// The next number that looks random (`SplitMix64`).
    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Store {
    /// The same store as it is seen through `line`. Closing it closes nothing of the other.
    #[must_use]
    pub fn through(&self, line: &Line) -> Self {
        let seen = Through { inner: self.clone(), line: line.clone(), closed: watch::Sender::new(false) };
        Self::of(Arc::new(seen))
    }
}

#[derive(Debug)]
struct Through {
    inner: Store,
    line: Line,
    closed: watch::Sender<bool>,
}

impl Through {
    async fn pass(&self) -> Result<(), StoreError> {
        if *self.closed.borrow() {
            return Err(StoreError::Closed);
        }
        self.line.pass().await
    }

    async fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Result<Page, StoreError> {
        self.pass().await?;
        let page = self.inner.list(range.clone(), at, limit).await?;
        if at.is_some() || page.revision.0 < 8 || !self.line.meets(|trouble| trouble.stale) {
            return Ok(page);
        }
        // A member that is behind: an older state, and its revision.
        let behind = Revision(page.revision.0.saturating_sub(4));
        Ok(self.inner.list(range, Some(behind), limit).await.unwrap_or(page))
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        self.pass().await?;
        if self.line.meets(|trouble| trouble.refused) {
            return Err(StoreError::Unreachable { reason: "the member was not there".to_owned() });
        }
        let outcome = self.inner.commit(txn).await;
        if self.line.meets(|trouble| trouble.unanswered) {
            return Err(StoreError::Unknown { reason: "the answer was lost".to_owned() });
        }
        // The answer goes over the line too.
        match self.line.pass().await {
            Ok(()) => outcome,
            Err(_) => Err(StoreError::Unknown { reason: "the line was cut before the answer".to_owned() }),
        }
    }
}

impl Backend for Through {
    fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Answer<'_, Page> {
        self.list(range, at, limit).boxed()
    }

    fn commit(&self, txn: Txn) -> Answer<'_, Outcome> {
        self.commit(txn).boxed()
    }

    fn watch(&self, range: Range, after: Revision) -> Answer<'_, Watch> {
        async move {
            self.pass().await?;
            let inner = self.inner.watch(range, after).await?;
            let closed = self.closed.subscribe();
            Ok(Watch::new(Seen { inner, line: self.line.clone(), closed, told: VecDeque::new() }))
        }
        .boxed()
    }

    fn grant(&self, ttl: Duration) -> Answer<'_, LeaseId> {
        async move {
            self.pass().await?;
            self.inner.grant(ttl).await
        }
        .boxed()
    }

    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, ()> {
        async move {
            self.pass().await?;
            let lies = self.line.state().trouble.renews_what_ended;
            match self.inner.keep_alive(lease).await {
                Err(StoreError::LeaseGone) if lies => Ok(()),
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
        self.inner.health()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.send_replace(true);
        std::future::ready(()).boxed()
    }
}

/// A watch over a line.
#[derive(Debug)]
struct Seen {
    inner: Watch,
    line: Line,
    closed: watch::Receiver<bool>,
    /// What was told last, to be told once more.
    told: VecDeque<Batch>,
}

impl Seen {
    async fn advance(&mut self) -> Result<Batch, WatchError> {
        let repeats = !self.told.is_empty() && self.line.meets(|trouble| trouble.repeated);
        if let Some(again) = repeats.then(|| self.told.pop_front()).flatten() {
            return Ok(again);
        }
        loop {
            let mut cut = self.line.0.cut.subscribe();
            let mut closed = self.closed.clone();
            // Nothing is taken from the watch while the line is cut; all arms are cancel safe.
            let through = tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => return Err(WatchError::Closed),
                through = tokio::time::timeout(NOTICED, cut.wait_for(|cut| !cut)) => through.is_ok(),
            };
            if !through {
                let reason = "the line is cut".to_owned();
                return Err(WatchError::Failed(StoreError::Unreachable { reason }));
            }
            let mut batch = tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => return Err(WatchError::Closed),
                _ = cut.wait_for(|cut| *cut) => continue,
                batch = self.inner.next() => batch?,
            };
            if self.line.meets(|trouble| trouble.lost_commits) {
                continue;
            }
            let deletes = batch.changes.iter().any(|change| change.entry.is_none());
            if deletes && self.line.meets(|trouble| trouble.lost_deletes) {
                batch.changes.retain(|change| change.entry.is_some());
            }
            if batch.changes.is_empty() {
                continue;
            }
            self.told.push_back(batch.clone());
            if self.told.len() > TOLD {
                self.told.pop_front();
            }
            return Ok(batch);
        }
    }
}

impl Batches for Seen {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, WatchError>> {
        self.advance().boxed()
    }
}

#[cfg(test)]
mod tests {
    use bellwether_rt::tasks::Tasks;

    use super::*;
    use crate::conformance::{commit, delete, put, value};

    fn both() -> (Store, Store, Line) {
        let store = Store::memory(&Tasks::new());
        let line = Line::new(1);
        let seen = store.through(&line);
        (store, seen, line)
    }

    fn all() -> u32 {
        1_000_000
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_line_lets_nothing_through_and_calls_give_up() {
        let (store, seen, line) = both();
        line.cut();
        let error = seen.commit(Txn { compares: vec![], ops: vec![put("a", "1")] }).await.unwrap_err();
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
        assert_eq!(value(&store, "a").await, None);
        line.heal();
        commit(&seen, [put("a", "2")]).await;
        assert_eq!(value(&store, "a").await.as_deref(), Some("2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_over_a_line_that_was_cut_a_while_goes_on_without_a_gap() {
        let (store, seen, line) = both();
        let mut watch = seen.watch(Range::prefix("a"), Revision(0)).await.unwrap();
        line.cut();
        commit(&store, [put("a", "1")]).await;
        assert!(tokio::time::timeout(Duration::from_secs(1), watch.next()).await.is_err());
        line.heal();
        assert_eq!(watch.next().await.unwrap().revision, Revision(1));
        line.cut();
        assert!(matches!(watch.next().await, Err(WatchError::Failed(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn each_trouble_is_what_its_name_says() {
        let (store, seen, line) = both();
        let none = Trouble::default();
        commit(&store, [put("a", "1"), put("b", "1")]).await;
        for _ in 0..8 {
            commit(&store, [put("c", "1")]).await;
        }
        let txn = || Txn { compares: vec![], ops: vec![put("a", "2")] };
        line.trouble(Trouble { refused: all(), ..none.clone() });
        assert!(matches!(seen.commit(txn()).await, Err(StoreError::Unreachable { .. })));
        assert_eq!(value(&store, "a").await.as_deref(), Some("1"));
        line.trouble(Trouble { unanswered: all(), ..none.clone() });
        assert!(matches!(seen.commit(txn()).await, Err(StoreError::Unknown { .. })));
        assert_eq!(value(&store, "a").await.as_deref(), Some("2"));
        line.trouble(Trouble { stale: all(), ..none.clone() });
        assert_eq!(value(&seen, "a").await.as_deref(), Some("1"));

        let mut watch = seen.watch(Range::prefix(""), Revision(10)).await.unwrap();
        line.trouble(Trouble { lost_deletes: all(), ..none.clone() });
        commit(&store, [delete("b")]).await;
        assert!(tokio::time::timeout(Duration::from_secs(1), watch.next()).await.is_err());
        line.trouble(Trouble { repeated: all(), ..none.clone() });
        commit(&store, [put("d", "1")]).await;
        let first = watch.next().await.unwrap();
        assert_eq!(first.revision, Revision(12));
        assert_eq!(watch.next().await.unwrap(), first);
        line.trouble(Trouble { lost_commits: all(), ..none.clone() });
        commit(&store, [put("d", "2")]).await;
        assert!(tokio::time::timeout(Duration::from_secs(1), watch.next()).await.is_err());

        let lease = seen.grant(Duration::from_secs(5)).await.unwrap();
        seen.revoke(lease).await.unwrap();
        assert_eq!(seen.keep_alive(lease).await, Err(StoreError::LeaseGone));
        line.trouble(Trouble { renews_what_ended: true, ..none });
        assert_eq!(seen.keep_alive(lease).await, Ok(()));
    }
}
