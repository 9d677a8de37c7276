//! A seat: a key bound to a lease, held by at most one process at a time. Its create revision tells one holding from the
//! next, and a commit that compares it cannot be made by whoever lost the seat.
//!
//! The holder gives the seat up by its own clock before the lease could end, so that it never takes itself for the holder
//! when another one is.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::key::Record;
use bellwether_core::records::server::{Leader, Server};
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::ServerName;
use bellwether_rt::clock::Clock;
use bellwether_store::{CommitOutcome, Compare, LeaseId, Op, Range, Store, StoreError, Txn};
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::records::{encoding, key_text};

/// How long a silent holder keeps its seat: short enough to be replaced quickly.
const TTL: Duration = Duration::from_secs(5);

/// How often the lease is renewed.
const RENEW_EVERY: Duration = Duration::from_millis(1_500);

/// Without a renewal for so long, the holder gives up: well before the store could give its seat away.
const STOP_AFTER: Duration = Duration::from_millis(3_500);

/// Pause before trying again after the store failed.
const RETRY: Duration = Duration::from_millis(300);

/// A seat, and what is written on it.
pub struct LeaseKey {
    store: Store,
    key: Bytes,
    /// What it is, for the log.
    what: &'static str,
    /// No other server can be using this store: a predecessor's key is then a leftover, removed at once.
    sole: bool,
    record: Arc<dyn Fn() -> Record + Send + Sync>,
}

/// How a seat is held.
struct HeldLease {
    lease: LeaseId,
    at: Revision,
    since: Instant,
}

impl LeaseKey {
    /// The leadership.
    #[must_use]
    pub fn of_leader(store: Store, name: ServerName, clock: Clock, sole: bool) -> Self {
        let record = move || Record::Leader(Leader { server: name.clone(), since: clock.now() });
        Self { store, key: key_text::LEADER.into(), what: "leadership", sole, record: Arc::new(record) }
    }

    /// A server's own place among the servers.
    #[must_use]
    pub fn of_server(store: Store, server: Server, clock: Clock, sole: bool) -> Self {
        let key = key_text::server(&server.name);
        let record = move || Record::Server(Server { since: clock.now(), ..server.clone() });
        Self { store, key, what: "place among the servers", sole, record: Arc::new(record) }
    }

    /// Keeps trying to hold the seat, publishing the revision it was taken at while it does, until asked to stop; then gives
    /// it back at once.
    pub async fn run(self, out: watch::Sender<Option<Revision>>, stop: CancellationToken) {
        let mut waits = false;
        while !stop.is_cancelled() {
            match self.acquire().await {
                Ok(Some(held)) => {
                    waits = false;
                    tracing::info!(revision = held.at.get(), "holding the {}", self.what);
                    out.send_replace(Some(held.at));
                    self.hold(&held, &stop).await;
                    out.send_replace(None);
                    tracing::info!(revision = held.at.get(), "no longer holding the {}", self.what);
                    self.give_back(held.lease).await;
                }
                Ok(None) => {
                    if !waits {
                        tracing::info!("another server holds the {}", self.what);
                    }
                    waits = true;
                    self.wait_for_vacancy(&stop).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "could not try for the {}", self.what);
                    pause(RETRY, &stop).await;
                }
            }
        }
    }

    async fn acquire(&self) -> Result<Option<HeldLease>, StoreError> {
        if let Some(entry) = self.store.get(self.key.clone()).await? {
            if !self.sole {
                return Ok(None);
            }
            let compare = Compare::Modified { key: entry.key.clone(), revision: entry.modified };
            self.store
                .commit(Txn { compares: vec![compare], ops: vec![Op::Delete { key: entry.key }] })
                .await?;
        }
        let value = encoding::write(&(self.record)()).map_err(|error| StoreError::Broken {
            reason: format!("write the {}: could not {error}", self.what),
        })?;
        // Counted from before the lease: whatever the commit takes is time that the lease has lived.
        let since = Instant::now();
        let lease = self.store.grant(TTL).await?;
        let put = Op::Put { key: self.key.clone(), value, lease: Some(lease) };
        let txn = Txn { compares: vec![Compare::Absent { key: self.key.clone() }], ops: vec![put] };
        match self.store.commit(txn).await {
            Ok(CommitOutcome::Committed(at)) => Ok(Some(HeldLease { lease, at: Revision::new(at.0), since })),
            Ok(CommitOutcome::Conflict { .. }) => {
                self.store.revoke(lease).await?;
                Ok(None)
            }
            Err(error) => {
                // It may have been made all the same: a key that nobody holds would keep everybody out for its lease.
                self.give_back(lease).await;
                Err(error)
            }
        }
    }

    async fn give_back(&self, lease: LeaseId) {
        // A store that does not answer ends the lease by itself.
        match tokio::time::timeout(TTL, self.store.revoke(lease)).await {
            Ok(Ok(()) | Err(StoreError::LeaseGone)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "could not give the {} back", self.what),
            Err(_) => tracing::debug!("could not give the {} back in time", self.what),
        }
    }

    /// Renews until asked to stop, or until the last renewal is too old.
    async fn hold(&self, held: &HeldLease, stop: &CancellationToken) {
        let mut renewed = held.since;
        loop {
            pause(RENEW_EVERY.min(STOP_AFTER.saturating_sub(renewed.elapsed())), stop).await;
            if stop.is_cancelled() {
                return;
            }
            let asked = Instant::now();
            let left = STOP_AFTER.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.store.keep_alive(held.lease)).await {
                Ok(Ok(())) => renewed = asked,
                Ok(Err(StoreError::LeaseGone)) => return,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "could not renew the {}", self.what);
                    pause(RETRY.min(left), stop).await;
                }
                Err(_) => {}
            }
            if renewed.elapsed() >= STOP_AFTER {
                tracing::warn!(
                    "the {} was not renewed in time; giving it up before it could be taken",
                    self.what
                );
                return;
            }
        }
    }

    async fn wait_for_vacancy(&self, stop: &CancellationToken) {
        let seen = match self.store.list(Range::one(self.key.clone()), None, 1).await {
            Ok(page) if page.entries.is_empty() => return,
            Ok(page) => page.revision,
            Err(_) => return pause(RETRY, stop).await,
        };
        let Ok(mut watch) = self.store.watch(Range::one(self.key.clone()), seen).await else {
            return pause(RETRY, stop).await;
        };
        // A lost delete must not lock everybody out for ever: look again after a while in any case.
        let change = tokio::time::timeout(TTL, watch.next());
        // Watch::next is cancel safe.
        tokio::select! {
            () = stop.cancelled() => {}
            _ = change => {}
        }
    }
}

async fn pause(how_long: Duration, stop: &CancellationToken) {
    // Both arms only wait.
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(how_long) => {}
    }
}
