//! The one writer. Drains the queue, makes each group durable with one sync, and only then answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::directory::Directory;
use super::fault::Fault;
use super::file;
use super::group::Group;
use super::reader::Reader;
use super::request::Request;
use super::view::View;
use crate::error::StoreError;
use crate::feed::Feed;
use crate::lease::Leases;

/// Requests that may wait for the writer; more callers wait for a place, which is the back pressure.
pub(super) const QUEUE: usize = 1_024;

/// The most requests of one group: what a sync of a few hundred microseconds is worth sharing among.
const GROUP_REQUESTS: usize = 512;

/// The bytes behind which a group takes no more, so that small requests do not wait long for large ones.
const GROUP_BYTES: usize = 4 << 20;

/// The writer's side of the store. Dropped, it has let go of the file and the directory.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) queue: mpsc::Receiver<Request>,
    pub(super) reader: Arc<Reader>,
    pub(super) leases: Arc<Leases>,
    pub(super) feed: Arc<Feed>,
    /// Why nothing more is written, once the disk has failed.
    pub(super) broken: Option<StoreError>,
    pub(super) directory: Directory,
    /// Says that the directory is free again; dropped last.
    pub(super) _released: DropGuard,
}

impl Writer {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        while let Some(first) = self.queue.blocking_recv() {
            let mut untrimmed = self.work(first);
            while untrimmed && self.queue.is_empty() {
                untrimmed = self.write(Vec::new());
            }
        }
    }

    /// Takes what is waiting behind `first` and writes it.
    fn work(&mut self, first: Request) -> bool {
        let mut bytes = first.size();
        let mut requests = vec![first];
        while requests.len() < GROUP_REQUESTS && bytes < GROUP_BYTES {
            let Ok(request) = self.queue.try_recv() else { break };
            bytes = bytes.saturating_add(request.size());
            requests.push(request);
        }
        if requests.iter().any(|request| matches!(request, Request::Stop)) {
            self.queue.close();
        }
        self.write(requests)
    }

    /// Makes `requests` durable and answers them; whether the log waits to be trimmed further.
    fn write(&mut self, requests: Vec<Request>) -> bool {
        if let Some(broken) = &self.broken {
            requests.into_iter().for_each(|request| request.refuse(broken.clone()));
            return false;
        }
        let mut group = Group::default();
        let written = catch_unwind(AssertUnwindSafe(|| {
            self.reader.with_database(|database| group.write(database, &self.leases, &requests))
        }));
        match written.unwrap_or_else(|panic| Ok(Err(Fault::panicked(&*panic)))) {
            Ok(Ok(())) => self.finish(requests, group),
            Ok(Err(fault)) => self.recover(requests, group, &fault),
            // The file could not be opened after an earlier fault: try again, then refuse or go on.
            Err(error) => match self.reopen() {
                Ok(_) => self.write(requests),
                Err(_) => {
                    requests.into_iter().for_each(|request| request.refuse(error.clone()));
                    false
                }
            },
        }
    }

    /// Shows watchers and callers what is durable.
    fn finish(&self, requests: Vec<Request>, group: Group) -> bool {
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
        group.untrimmed
    }

    /// After a fault: opens the file again, and answers by what is found in it.
    fn recover(&mut self, requests: Vec<Request>, group: Group, fault: &Fault) -> bool {
        let error = fault.tell(&self.directory.file());
        tracing::error!("could not commit: {error}");
        if matches!(fault, Fault::Broken(_)) {
            self.broken = Some(error.clone());
        }
        let last = group.commits.last().map(|commit| commit.revision);
        match self.reopen() {
            // The fault came after the file's commit (giving back room): the group is there, and durable.
            Ok(view) if last == Some(view.revision()) && self.broken.is_none() => {
                self.finish(requests, group)
            }
            Ok(_) | Err(_) => {
                requests.into_iter().for_each(|request| request.refuse(error.clone()));
                false
            }
        }
    }

    /// Opens the file anew, as the library asks for after a failure. Readers wait meanwhile.
    fn reopen(&self) -> Result<View, StoreError> {
        let mut slot = self.reader.slot.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *slot, Err(StoreError::Closed));
        // A library that panicked may panic again in letting go.
        drop(catch_unwind(AssertUnwindSafe(|| drop(old))));
        let opened = file::open(&self.directory).map_err(|error| {
            let reason = format!("could not {error}");
            tracing::error!("{reason}");
            StoreError::Broken { reason }
        });
        *slot = opened;
        let database = slot.as_ref().map_err(Clone::clone)?;
        View::of(database).map_err(|fault| fault.tell(&self.directory.file()))
    }
}

impl Drop for Writer {
    /// Lets go of the file, and only then, as fields are dropped, of the directory.
    fn drop(&mut self) {
        self.reader.close(StoreError::Closed);
        self.feed.close();
    }
}
