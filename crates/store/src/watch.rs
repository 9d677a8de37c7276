//! Changes in order. Owns the shape of a watch; each back end brings its own source of batches.

use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::entry::{Entry, Revision};
use crate::error::StoreError;

/// One key as a commit left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Bytes,
    /// The entry after the commit; `None` if the commit deleted it.
    pub entry: Option<Entry>,
    /// The commit.
    pub revision: Revision,
}

/// Everything one commit changed inside the watched range, never split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The commit.
    pub revision: Revision,
    /// Its changes in the order of the transaction's operations; at least one.
    pub changes: Vec<Change>,
}

/// Why a watch ended. The message fits after "cannot …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The watcher fell behind what is kept; list again and watch from that page's revision.
    #[error("watch on: history below revision {oldest} was compacted")]
    Compacted {
        /// The oldest revision that can be watched from.
        oldest: Revision,
    },
    /// The store is at an earlier revision than it has reported before: it was restored. List again.
    #[error("watch on: the store went back from revision {seen} to {found}")]
    WentBack {
        /// The newest revision it reported.
        seen: Revision,
        /// The newest it reports now.
        found: Revision,
    },
    /// The store was closed; every earlier commit was delivered.
    #[error("watch on: the store is closed")]
    Closed,
    /// The store cannot read its own history. Watching again from the last revision seen may work.
    #[error("watch on: cannot {0}")]
    Failed(StoreError),
}

impl From<StoreError> for WatchError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Compacted { oldest } => Self::Compacted { oldest },
            StoreError::Closed => Self::Closed,
            StoreError::Refused(_)
            | StoreError::TooLarge { .. }
            | StoreError::Future { .. }
            | StoreError::LeaseGone
            | StoreError::DiskFull { .. }
            | StoreError::Unreachable { .. }
            | StoreError::Unknown { .. }
            | StoreError::Broken { .. } => Self::Failed(error),
        }
    }
}

/// A source of batches: ascending revisions, no commit that touches the range left out.
pub(crate) trait Batches: Send + fmt::Debug {
    /// Waits for the next batch. Dropping the future loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, WatchError>>;
}

/// Every commit behind a revision that touches a range, in order and without gaps.
#[derive(Debug)]
pub struct Watch(Box<dyn Batches>);

impl Watch {
    pub(crate) fn new(batches: impl Batches + 'static) -> Self {
        Self(Box::new(batches))
    }

    /// Waits for the next commit that touches the range. Cancel safe: dropping the future loses nothing.
    ///
    /// # Errors
    /// [`WatchError`] says whether to list again, to watch again, or to stop. The watch is over then.
    pub async fn next(&mut self) -> Result<Batch, WatchError> {
        self.0.next().await
    }
}
