//! The store in etcd, shared by several servers. Maps the contract to etcd's API, for 3.4 and later.
//!
//! Keys get a prefix on the way in and lose it on the way out. A revision here is etcd's less one, as an empty etcd
//! is at 1. What etcd does not promise is not relied on: every list and get is linearizable, a watch is resumed by
//! us, a commit is sent once, and history is compacted on our own schedule.
//!
//! etcd's known defects that reach the caller: a watch of 3.4 may lose deletes around a snapshot, so list now and
//! then; renewing a revoked lease may succeed in 3.4, so guard what must not happen twice by a compare in the same
//! commit, never by a renewal.

mod api;
mod commit;
mod compaction;
mod connector;
mod endpoints;
mod fault;
mod follow;
mod keyspace;
mod lease;
mod probe;
mod read;
mod remembered;
mod settings;
mod shared;
mod stream;
mod switches;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

pub use self::remembered::members as remembered_members;
pub use self::settings::{Compaction, EtcdIdentity, EtcdSettings};
use self::shared::EtcdClient;
use crate::backend::{Answer, Backend};
use crate::entry::{Keys, LeaseId, Page, Revision};
use crate::error::{OpenError, StoreError};
use crate::health::Health;
use crate::range::Range;
use crate::txn::{CommitOutcome, Txn};
use crate::watch::Watch;

/// The etcd back end.
#[derive(Debug)]
pub(crate) struct Etcd {
    shared: Arc<EtcdClient>,
    level: Tasks,
    /// What is waited for when the store is closed: commits in flight, and who writes down the members.
    flights: TaskTracker,
    _close_on_drop: DropGuard,
}

impl Etcd {
    /// Checks that etcd answers, and starts the probe and the compaction. Writes nothing.
    pub(crate) async fn start(settings: EtcdSettings, tasks: &Tasks) -> Result<Arc<Self>, OpenError> {
        settings.check()?;
        let (level, flights) = (tasks.child(), TaskTracker::new());
        let shared = Arc::new(EtcdClient::new(&settings, level.token()).await?);
        let health = probe::open(&shared, settings.remembered.as_deref()).await?;
        if let Some(defects) = health.defects() {
            tracing::warn!("{defects}");
        }
        shared.health.send_replace(health);
        level.spawn("etcd store probe", probe::run(shared.clone(), settings.probe_every));
        if let Some(every) = settings.follow_every {
            level.spawn("etcd store members", flights.track_future(follow::run(shared.clone(), every)));
        }
        if let Some(schedule) = settings.compaction {
            level.spawn("etcd store compaction", compaction::run(shared.clone(), schedule));
        }
        let close = level.token().drop_guard();
        Ok(Arc::new(Self { shared, level, flights, _close_on_drop: close }))
    }

    /// Makes a call unless the store is closed.
    fn ask<'a, T>(&'a self, call: impl Future<Output = Result<T, StoreError>> + Send + 'a) -> Answer<'a, T> {
        async move {
            self.shared.check_open()?;
            call.await
        }
        .boxed()
    }
}

impl Backend for Etcd {
    fn list(&self, range: Range, at: Option<Revision>, limit: usize) -> Answer<'_, Page> {
        self.ask(async move { read::list(&self.shared, range, at, limit).await })
    }

    fn keys(&self, range: Range, at: Option<Revision>, limit: usize) -> Answer<'_, Keys> {
        self.ask(async move { read::keys(&self.shared, range, at, limit).await })
    }

    fn commit(&self, txn: Txn) -> Answer<'_, CommitOutcome> {
        self.ask(async move {
            let shared = self.shared.clone();
            // A task of its own, so that a caller that goes away does not leave etcd with half of a request.
            let flight = self.flights.track_future(async move { commit::commit(&shared, &txn).await });
            match self.level.spawn("etcd commit", flight).await {
                Ok(Some(outcome)) => outcome,
                Ok(None) | Err(_) => {
                    Err(StoreError::Unknown { reason: "the task that waited for it ended".to_owned() })
                }
            }
        })
    }

    fn watch(&self, range: Range, after: Revision) -> Answer<'_, Watch> {
        self.ask(async move { watch::start(self.shared.clone(), range, after).await })
    }

    fn grant(&self, ttl: Duration) -> Answer<'_, LeaseId> {
        self.ask(async move { lease::grant(&self.shared, ttl).await })
    }

    fn keep_alive(&self, lease: LeaseId) -> Answer<'_, ()> {
        self.ask(async move { lease::keep_alive(&self.shared, lease).await })
    }

    fn revoke(&self, lease: LeaseId) -> Answer<'_, ()> {
        self.ask(async move { lease::revoke(&self.shared, lease).await })
    }

    fn compact(&self, before: Revision) -> Answer<'_, ()> {
        self.ask(async move { compaction::compact(&self.shared, before).await })
    }

    fn health(&self) -> tokio::sync::watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.level.cancel();
            self.flights.close();
            self.flights.wait().await;
        }
        .boxed()
    }
}
