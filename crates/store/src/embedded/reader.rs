//! Reading the file. Owns the open database, which readers share with the writer.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use bellwether_rt::tasks::Tasks;
use futures_util::FutureExt;
use redb::Database;
use tokio::sync::watch;

use super::fault::FileFault;
use super::view::View;
use crate::backend::Answer;
use crate::entry::Revision;
use crate::error::StoreError;
use crate::feed::Replay;
use crate::health::{Condition, Health};
use crate::range::Range;
use crate::watch::Batch;

/// What to do about a store that failed.
const NEXT: &str = "see to its disk and start the server again: it starts with all that was acknowledged, or says what is damaged";

/// The database, or why there is none.
#[derive(Debug)]
pub(super) struct Reader {
    /// Held for writing only while the file is opened again or closed.
    pub(super) slot: RwLock<Result<Database, StoreError>>,
    file: PathBuf,
    /// The last known state of the file.
    health: watch::Sender<Health>,
}

impl Reader {
    pub(super) fn new(database: Database, file: PathBuf, health: watch::Sender<Health>) -> Self {
        Self { slot: RwLock::new(Ok(database)), file, health }
    }

    /// Runs work on the database while it is open.
    pub(super) fn with_database<T>(&self, work: impl FnOnce(&Database) -> T) -> Result<T, StoreError> {
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().map(work).map_err(Clone::clone)
    }

    /// Reads the newest durable commit.
    pub(super) fn view<T>(
        &self,
        read: impl FnOnce(&View) -> Result<Result<T, StoreError>, FileFault>,
    ) -> Result<T, StoreError> {
        let found = self.with_database(|database| View::of(database).and_then(|view| read(&view)))?;
        found.unwrap_or_else(|fault| {
            let error = fault.tell(&self.file);
            if matches!(fault, FileFault::Broken(_)) {
                self.show_failed(&error);
            }
            Err(error)
        })
    }

    /// Publishes that the store failed.
    pub(super) fn show_failed(&self, error: &StoreError) {
        self.health.send_if_modified(|health| {
            let is_new = !matches!(health.condition, Condition::Failed { .. });
            let StoreError::Broken { reason } = error else { return false };
            health.condition = health.condition.failed(format!("{reason}; {NEXT}"));
            is_new
        });
    }

    /// Publishes that the file was opened again and is in order.
    pub(super) fn show_reopened(&self) {
        self.health.send_if_modified(|health| {
            let had_failed = matches!(health.condition, Condition::Failed { .. });
            if had_failed {
                health.condition = Condition::Writable;
            }
            had_failed
        });
    }

    /// Releases the database.
    pub(super) fn close(&self, reason: StoreError) {
        *self.slot.write().unwrap_or_else(PoisonError::into_inner) = Err(reason);
    }
}

/// Reads off the runtime's threads.
pub(super) async fn off_runtime<T: Send + 'static>(
    tasks: &Tasks,
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tasks.spawn_blocking(read).await {
        Ok(found) => found,
        // Cancelled with the runtime, or a panic of the library over a damaged file.
        Err(error) => Err(StoreError::Broken { reason: format!("a read ended early: {error}") }),
    }
}

/// The log on disk, for watchers that the feed no longer serves.
#[derive(Debug)]
pub(super) struct DiskHistory {
    pub(super) reader: Arc<Reader>,
    pub(super) tasks: Tasks,
}

impl Replay for DiskHistory {
    fn replay(&self, range: Range, after: Revision) -> Answer<'_, (VecDeque<Batch>, Revision)> {
        let reader = self.reader.clone();
        async move {
            let commits = off_runtime(&self.tasks, move || reader.view(|view| view.commits(after))).await?;
            let seen = commits.last().map_or(after, |commit| commit.revision);
            Ok((commits.iter().filter_map(|commit| commit.batch(&range)).collect(), seen))
        }
        .boxed()
    }
}
