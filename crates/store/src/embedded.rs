//! The store in one directory, for one process. Group commit: requests that wait together become durable
//! with one sync.
//!
//! Two files: `journal`, to which a group is appended and synced before anyone is answered, and `store.redb`,
//! which shows readers the state and its history, and catches up with the disk when the journal is long. A file
//! that is mostly free space is shrunk when it is opened. A
//! backup is a copy of both of a closed store.

mod check;
mod checkpoint;
mod directory;
mod disk;
mod fault;
mod file;
mod group;
mod journal;
mod medium;
mod meta;
mod overlay;
#[cfg(test)]
mod power;
mod reader;
mod record;
mod redo;
mod request;
mod schema;
mod shrink;
mod tables;
mod upgrade;
mod view;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use self::check::check;
use self::directory::Directory;
use self::file::OpenFiles;
use self::reader::{DiskHistory, Reader, off_runtime};
use self::request::{Reply, WriterRequest};
use self::writer::{QUEUE, Writer};
use crate::backend::{Answer, Backend};
use crate::entry::{LeaseId, Page, Revision};
use crate::error::{OpenError, StoreError};
use crate::feed::{Feed, FeedFollower};
use crate::health::{CutTail, Health};
use crate::history::History;
use crate::lease::{self, Leases};
use crate::range::Range;
use crate::txn::{CommitOutcome, Txn};
use crate::watch::Watch;

/// Number of commits kept in memory so that live watchers need no disk; one that is further behind reads the log.
const RECENT_COMMITS: usize = 8_192;

/// Size of these commits, in bytes: 16 MiB.
const RECENT_BYTES: u64 = 16 << 20;

/// The embedded back end.
#[derive(Debug)]
pub(crate) struct Embedded {
    queue: mpsc::Sender<WriterRequest>,
    reader: Arc<Reader>,
    leases: Arc<Leases>,
    feed: Arc<Feed>,
    health: watch::Receiver<Health>,
    level: Tasks,
    /// Cancelled when the file and the directory have been released.
    released: CancellationToken,
    _close_on_drop: DropGuard,
}

impl Embedded {
    /// Opens the store in `dir` and starts its writer and its lease keeper.
    pub(crate) fn start(dir: &Path, tasks: &Tasks) -> Result<Arc<Self>, OpenError> {
        let directory = Directory::lock(dir)?;
        let files = shrink::shrink(file::open(&directory)?, &directory)?;
        Self::run(files, directory, tasks)
    }

    /// Opens the store in `dir` to look at it: what is committed to it stays in memory, and its files are as they were.
    pub(crate) fn look(dir: &Path, tasks: &Tasks) -> Result<Arc<Self>, OpenError> {
        let directory = Directory::look(dir)?;
        Self::run(file::open_to_look(&directory)?, directory, tasks)
    }

    /// Starts the writer and the lease keeper of an open store.
    fn run(files: OpenFiles, directory: Directory, tasks: &Tasks) -> Result<Arc<Self>, OpenError> {
        let OpenFiles { database, journal, room, cut, .. } = files;
        let corrupt = |fault: fault::FileFault| {
            let reason = fault.tell(&directory.file()).to_string();
            OpenError::Corrupt { file: directory.file(), reason }
        };
        let leases = Arc::new(Leases::default());
        for (lease, ttl) in file::leases(&database).map_err(corrupt)? {
            leases.start(lease, ttl);
        }
        let revision = view::View::of(&database).map_err(corrupt)?.revision();
        let copy = directory.cut_copy();
        let cut = (cut.is_some() || copy.is_some()).then_some(CutTail { copy, now: cut });
        let health = watch::Sender::new(Health { cut, ..Health::writable("embedded") });
        let reader = Arc::new(Reader::new(database, directory.file(), health.clone()));
        let feed = Arc::new(Feed::new(History::new(revision, RECENT_COMMITS, RECENT_BYTES), revision));
        let (queue, requests) = mpsc::channel(QUEUE);
        let (level, released) = (tasks.child(), CancellationToken::new());
        let writer = Writer {
            queue: requests,
            journal,
            room,
            reader: reader.clone(),
            leases: leases.clone(),
            feed: feed.clone(),
            broken: None,
            health,
            directory,
            _released: released.clone().drop_guard(),
        };
        writer.measure();
        let health = writer.health.subscribe();
        level.spawn_blocking(move || writer.run());
        let keeper = keep_time(leases.clone(), queue.downgrade(), level.token());
        level.spawn("embedded store leases", keeper);
        let close = level.token().drop_guard();
        Ok(Arc::new(Self { queue, reader, leases, feed, health, level, released, _close_on_drop: close }))
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.level.token().is_cancelled() { Err(StoreError::Closed) } else { Ok(()) }
    }

    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> WriterRequest) -> Result<T, StoreError> {
        self.check_open()?;
        ask(&self.queue, request).await
    }
}

async fn ask<T>(
    queue: &mpsc::Sender<WriterRequest>,
    request: impl FnOnce(Reply<T>) -> WriterRequest,
) -> Result<T, StoreError> {
    let (reply, answer) = oneshot::channel();
    queue.send(request(reply)).await.map_err(|_| StoreError::Closed)?;
    let lost = |_| StoreError::Broken { reason: "its writer ended before it answered".to_owned() };
    answer.await.map_err(lost)?
}

/// Ends leases as they run out and finally stops the writer. Holds neither a store nor a place in the
/// queue, so that dropping the last store closes it.
async fn keep_time(leases: Arc<Leases>, queue: mpsc::WeakSender<WriterRequest>, stop: CancellationToken) {
    let end = |lease| {
        let queue = queue.clone();
        async move {
            let queue = queue.upgrade().ok_or(StoreError::Closed)?;
            ask(&queue, |reply| WriterRequest::Revoke { lease, reply }).await
        }
        .boxed()
    };
    lease::keep_time(&leases, &stop, end).await;
    if let Some(queue) = queue.upgrade() {
        // A closed queue means that the writer has stopped already.
        drop(queue.send(WriterRequest::Stop).await);
    }
}

impl Backend for Embedded {
    fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Answer<'_, Page> {
        let reader = self.reader.clone();
        async move {
            self.check_open()?;
            let read = || {
                let (reader, range) = (reader.clone(), range.clone());
                off_runtime(&self.level, move || reader.view(|view| view.page(&range, at, limit)))
            };
            match read().await {
                // A file that could not be opened again on a full disk is opened by whoever needs it next, also for reading:
                // whoever writes may have to read first.
                Err(StoreError::DiskFull { .. }) => {
                    self.ask(|reply| WriterRequest::Reopen { reply }).await?;
                    read().await
                }
                result => result,
            }
        }
        .boxed()
    }

    fn commit(&self, txn: Txn) -> Answer<'_, CommitOutcome> {
        self.ask(move |reply| WriterRequest::Commit { txn, reply }).boxed()
    }

    fn watch(&self, range: Range, after: Revision) -> Answer<'_, Watch> {
        let reader = self.reader.clone();
        async move {
            self.check_open()?;
            off_runtime(&self.level, move || reader.view(|view| Ok(view.check_kept(after)))).await?;
            let history = DiskHistory { reader: self.reader.clone(), tasks: self.level.clone() };
            Ok(Watch::new(FeedFollower::new(&self.feed, Arc::new(history), range, after)))
        }
        .boxed()
    }

    fn grant(&self, ttl: Duration) -> Answer<'_, LeaseId> {
        self.ask(move |reply| WriterRequest::Grant { ttl, reply }).boxed()
    }

    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, ()> {
        async move {
            self.check_open()?;
            self.leases.keep_alive(lease)
        }
        .boxed()
    }

    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()> {
        self.ask(move |reply| WriterRequest::Revoke { lease, reply }).boxed()
    }

    fn compact(&self, before: Revision) -> Answer<'_, ()> {
        self.ask(move |reply| WriterRequest::Compact { before, reply }).boxed()
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.level.cancel();
            self.released.cancelled().await;
        }
        .boxed()
    }
}
