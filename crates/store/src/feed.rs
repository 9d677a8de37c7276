//! Recent commits for live watches. Owns what is durable and may therefore be seen; reads no disk itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::backend::Answer;
use crate::entry::Revision;
use crate::history::{Commit, History};
use crate::range::Range;
use crate::watch::{Batch, Batches, WatchError};

/// Most commits read at once, so that no watcher holds the lock for long.
const LOOK: usize = 256;

#[derive(Debug, Clone, Copy)]
struct FeedHead {
    revision: Revision,
    open: bool,
}

/// Durable commits, newest last, and the watchers that wait for more.
#[derive(Debug)]
pub(crate) struct Feed {
    history: Mutex<History>,
    head: watch::Sender<FeedHead>,
}

impl Feed {
    /// A feed that continues from `revision`, keeping what `history` does.
    pub(crate) fn new(history: History, revision: Revision) -> Self {
        let head = watch::Sender::new(FeedHead { revision, open: true });
        Self { history: Mutex::new(history), head }
    }

    /// Publishes commits to watchers. They follow the newest and are durable.
    pub(crate) fn publish(&self, commits: impl IntoIterator<Item = Arc<Commit>>) {
        let mut revision = None;
        let mut history = self.history();
        for commit in commits {
            revision = Some(commit.revision);
            history.push(commit);
        }
        drop(history);
        if let Some(revision) = revision {
            self.head.send_modify(|head| head.revision = revision);
        }
    }

    /// Tells watchers that nothing more will come.
    pub(crate) fn close(&self) {
        self.head.send_modify(|head| head.open = false);
    }

    /// The recent commits.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where commits are found that the feed no longer holds.
pub(crate) trait Replay: Send + Sync + std::fmt::Debug {
    /// Batches of `range` above `after`, and the revision up to which they are complete, which is above
    /// `after` unless there is nothing yet.
    fn replay(&self, range: Range, after: Revision) -> Answer<'_, (VecDeque<Batch>, Revision)>;
}

/// One watcher of a feed.
#[derive(Debug)]
pub(crate) struct FeedFollower {
    range: Range,
    /// Every commit up to here was looked at.
    seen: Revision,
    /// Batches at or below `seen` that were not delivered yet.
    ready: VecDeque<Batch>,
    feed: Arc<Feed>,
    head: watch::Receiver<FeedHead>,
    replay: Arc<dyn Replay>,
}

impl FeedFollower {
    pub(crate) fn new(feed: &Arc<Feed>, replay: Arc<dyn Replay>, range: Range, after: Revision) -> Self {
        let (feed, head) = (feed.clone(), feed.head.subscribe());
        Self { range, seen: after, ready: VecDeque::new(), feed, head, replay }
    }

    /// Reads commits that the feed holds; false if it no longer holds the next one.
    fn look(&mut self) -> bool {
        let history = self.feed.history();
        let Some(commits) = history.above(self.seen) else { return false };
        for commit in commits.take(LOOK) {
            self.ready.extend(commit.batch(&self.range));
            self.seen = commit.revision;
        }
        true
    }

    async fn advance(&mut self) -> Result<Batch, WatchError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(batch);
            }
            let head = *self.head.borrow_and_update();
            if head.revision > self.seen {
                if !self.look() {
                    // Nothing is kept of this future but its result, so dropping it only repeats the read.
                    let (batches, seen) = self.replay.replay(self.range.clone(), self.seen).await?;
                    (self.ready, self.seen) = (batches, self.seen.max(seen));
                }
            } else if !head.open || self.head.changed().await.is_err() {
                return Err(WatchError::Closed);
            }
        }
    }
}

impl Batches for FeedFollower {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, WatchError>> {
        self.advance().boxed()
    }
}
