//! The one writer. Drains the queue, makes each group durable with one sync, and only then answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use bellwether_rt::fail::{self, FailPoint};
use redb::Database;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::DropGuard;

use super::checkpoint::{Syncs, make_durable};
use super::directory::Directory;
use super::disk::ReservedSpace;
use super::fault::{FileFault, is_full};
use super::file::{self, OpenFiles};
use super::group::{CommitGroup, KEPT};
use super::journal::Journal;
use super::reader::Reader;
use super::request::WriterRequest;
use crate::error::{OpenError, StoreError};
use crate::feed::Feed;
use crate::health::{Condition, Health};
use crate::lease::Leases;

/// Most requests that wait for the writer; more callers wait for a place, which is the back pressure.
pub(super) const QUEUE: usize = 1_024;

/// Most requests of one group: what a sync of a few hundred microseconds is worth sharing among.
const GROUP_REQUESTS: usize = 512;

/// How often the writer polls for the next request before it sleeps: some 50 µs in all, about what waking a
/// sleeping thread takes. At the few hundred commits a second of a fleet at rest that is a hundredth of a
/// core. It does not yield in between: on a busy machine a thread that yields waits for whole time slices.
const LOOKS: u32 = 1_000;

/// Size at which a group accepts no more, in bytes, so that small requests do not wait long for large ones.
const GROUP_BYTES: usize = 4 << 20;

/// The writer's side of the store. Dropping it releases the file and the directory.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) queue: mpsc::Receiver<WriterRequest>,
    pub(super) journal: Journal,
    pub(super) room: ReservedSpace,
    pub(super) reader: Arc<Reader>,
    pub(super) leases: Arc<Leases>,
    pub(super) feed: Arc<Feed>,
    /// Why nothing more is written, once the disk has failed.
    pub(super) broken: Option<StoreError>,
    /// The last known state of the disk.
    pub(super) health: watch::Sender<Health>,
    pub(super) directory: Directory,
    /// Signals that the directory is free again; dropped last.
    pub(super) _released: DropGuard,
}

impl Writer {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        while let Some(first) = self.next() {
            let mut untrimmed = self.work(first);
            while untrimmed && self.queue.is_empty() {
                untrimmed = self.write(Vec::new());
            }
            if self.journal.is_due() {
                self.make_durable();
            }
        }
        self.make_durable();
    }

    /// Waits for a request: a moment awake, as whoever was just answered often asks again, then asleep.
    fn next(&mut self) -> Option<WriterRequest> {
        for _ in 0..LOOKS {
            match self.queue.try_recv() {
                Ok(request) => return Some(request),
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        self.queue.blocking_recv()
    }

    /// Takes the requests waiting behind `first` and writes them.
    fn work(&mut self, first: WriterRequest) -> bool {
        let mut bytes = first.size();
        let mut requests = vec![first];
        while requests.len() < GROUP_REQUESTS && bytes < GROUP_BYTES {
            let Ok(request) = self.queue.try_recv() else { break };
            bytes = bytes.saturating_add(request.size());
            requests.push(request);
        }
        if requests.iter().any(|request| matches!(request, WriterRequest::Stop)) {
            self.queue.close();
        }
        self.write(requests)
    }

    /// Makes `requests` durable and answers them; returns whether the log must be trimmed further.
    fn write(&mut self, requests: Vec<WriterRequest>) -> bool {
        if let Some(broken) = &self.broken {
            return self.refuse(requests, broken);
        }
        if self.journal.is_due() {
            self.make_durable();
        }
        if self.journal.is_due() {
            return self.refuse(requests, &FileFault::NoRoom.tell(&self.directory.file()));
        }
        let mut group = CommitGroup::new(KEPT);
        let (reader, journal, leases) = (&self.reader, &mut self.journal, &self.leases);
        let written = calmly(reader, |database| group.write(database, journal, leases, &requests));
        match written {
            Ok(Ok(())) => self.finish(requests, group),
            Ok(Err(fault)) => {
                let error = self.recover(&fault);
                if group.durable {
                    return self.finish(requests, group);
                }
                self.refuse(requests, &error)
            }
            // The file cannot be opened after an earlier fault: try again, then go on or refuse.
            Err(_) => match self.reopen() {
                Ok(()) => self.write(requests),
                Err(error) => self.refuse(requests, &error),
            },
        }
    }

    /// Answers everybody with the same error, and publishes that nothing is written.
    fn refuse(&self, requests: Vec<WriterRequest>, error: &StoreError) -> bool {
        if matches!(error, StoreError::Broken { .. }) {
            self.reader.show_failed(error);
        } else {
            self.show(|before| before.read_only(format!("cannot {error}")));
        }
        requests.into_iter().for_each(|request| request.refuse(error.clone()));
        false
    }

    /// Publishes how large the file is, without waking those who wait for changes of the health.
    pub(super) fn measure(&self) {
        let size = std::fs::metadata(self.directory.file()).ok().map(|file| file.len());
        self.health.send_if_modified(|health| {
            health.size_bytes = size;
            false
        });
    }

    /// Publishes the health if it changed. What failed stays so until the file was opened again.
    fn show(&self, condition: impl FnOnce(&Condition) -> Condition) {
        self.health.send_if_modified(|health| {
            if matches!(health.condition, Condition::Failed { .. }) {
                return false;
            }
            let now = condition(&health.condition);
            let is_new = now != health.condition;
            health.condition = now;
            is_new
        });
    }

    /// Shows watchers and callers what is durable.
    fn finish(&self, requests: Vec<WriterRequest>, group: CommitGroup) -> bool {
        if group.durable {
            fail::pass(FailPoint::GroupShown);
        }
        if !requests.is_empty() {
            self.show(|_| Condition::Writable);
        }
        for (lease, ttl) in group.granted {
            self.leases.start(lease, ttl);
        }
        for lease in group.ended {
            self.leases.end(lease);
        }
        self.feed.publish(group.commits);
        for (request, answer) in requests.into_iter().zip(group.answers) {
            request.settle(answer);
        }
        if group.durable {
            fail::pass(FailPoint::GroupAcknowledged);
        }
        group.untrimmed
    }

    /// Makes the database durable and restarts the journal. If it cannot, the journal still
    /// holds everything, and grows no further than it is long.
    fn make_durable(&mut self) {
        if self.broken.is_some() {
            return;
        }
        let (journal, room) = (&mut self.journal, &mut self.room);
        let made = calmly(&self.reader, |database| make_durable(database, journal, room, Syncs::One));
        match made {
            Ok(Ok(())) => self.measure(),
            Ok(Err(fault)) => drop(self.recover(&fault)),
            // The file cannot be opened after an earlier fault. If it still cannot, requests are refused.
            Err(_) => drop(self.reopen()),
        }
    }

    /// After a fault: reopens the database if that can help, and returns the error for callers.
    fn recover(&mut self, fault: &FileFault) -> StoreError {
        let error = fault.tell(&self.directory.file());
        match fault {
            FileFault::NoRoom => return error,
            FileFault::Full | FileFault::Panicked(_) => {
                if let Err(again) = self.reopen() {
                    tracing::error!("cannot {again}");
                }
            }
            FileFault::Broken(reason) => {
                self.reader.show_failed(&error);
                self.directory.distrust(reason);
                self.broken = Some(error.clone());
            }
        }
        tracing::error!("cannot {error}");
        error
    }

    /// Reopens the file, as the library requires after a failure. Readers wait meanwhile.
    fn reopen(&mut self) -> Result<(), StoreError> {
        let mut slot = self.reader.slot.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *slot, Err(StoreError::Closed));
        // A library that panicked may panic again when it is dropped.
        drop(catch_unwind(AssertUnwindSafe(|| drop(old))));
        match file::open(&self.directory) {
            Ok(OpenFiles { database, journal, room, .. }) => {
                *slot = Ok(database);
                (self.journal, self.room) = (journal, room);
                self.reader.show_reopened();
                Ok(())
            }
            Err(error) => {
                let error = store_error(&error);
                *slot = Err(error.clone());
                Err(error)
            }
        }
    }
}

/// Works on the database; a panic becomes a fault.
fn calmly(
    reader: &Reader,
    work: impl FnOnce(&Database) -> Result<(), FileFault>,
) -> Result<Result<(), FileFault>, StoreError> {
    let worked = catch_unwind(AssertUnwindSafe(|| reader.with_database(work)));
    worked.unwrap_or_else(|panic| Ok(Err(FileFault::panicked(&*panic))))
}

/// The error for callers when the file does not reopen.
fn store_error(error: &OpenError) -> StoreError {
    match error {
        OpenError::Io { path, source } if is_full(source) => FileFault::Full.tell(path),
        OpenError::Io { .. }
        | OpenError::Locked { .. }
        | OpenError::Corrupt { .. }
        | OpenError::Setting { .. }
        | OpenError::Etcd { .. }
        | OpenError::Newer { .. } => StoreError::Broken { reason: format!("cannot {error}") },
    }
}

impl Drop for Writer {
    /// Releases the file, and only then, as fields are dropped, the directory.
    fn drop(&mut self) {
        self.reader.close(StoreError::Closed);
        self.feed.close();
    }
}
