//! A key that at most one process holds: it is bound to a lease, which its holder renews.
//!
//! Its create revision tells one holding from the next: a commit that compares the create revision fails once the key has
//! another holder, or none. The holder stops by its own clock, [`STOP_AFTER`] the last successful renewal, before the
//! store can end the lease ([`TTL`]): it never considers itself the holder while another process is.
//!
//! A lease may outlive its key, which anybody with access to the store can delete. So the holder also watches the key, and reads
//! it after each renewal, since a watch may miss a delete. A holding whose key is gone ends, and the key is acquired anew.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::words::counter::Revision;
use bellwether_store::{
    CommitOutcome, Compare, Entry, LeaseId, Op, Page, Range, Store, StoreError, Txn, Watch,
};
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::records::encoding;
use crate::repeated_failure::RepeatedFailure;

/// Lifetime of the lease without a renewal: short, so that a failed holder is replaced quickly.
pub(crate) const TTL: Duration = Duration::from_secs(5);

/// Interval of renewals: two of them may fail before [`STOP_AFTER`].
const RENEW_EVERY: Duration = Duration::from_millis(1_500);

/// Time since the last successful renewal after which the holder stops: less than [`TTL`] by a margin for clocks that
/// do not run at the same speed.
const STOP_AFTER: Duration = Duration::from_millis(3_500);

/// Pause before the next attempt after the store failed.
const RETRY: Duration = Duration::from_millis(300);

/// A key bound to a lease, and the record that is written under it.
pub(crate) struct LeaseKey {
    /// Where the key is.
    pub(crate) store: Store,
    /// The key.
    pub(crate) key: Bytes,
    /// What holding the key means, for the log: "leadership".
    pub(crate) purpose: &'static str,
    /// Whether no other process can use the store: a key that is there was left by a predecessor, and is removed at once.
    pub(crate) has_own_store: bool,
    /// Makes the record, at the time of each attempt.
    pub(crate) record: Arc<dyn Fn() -> GlobalRecord + Send + Sync>,
    /// The create revision of a holding that is over, as a commit that compared it has shown.
    pub(crate) given_up: watch::Receiver<Option<Revision>>,
    /// Whether this process leaves the key to others for now.
    pub(crate) abstains: watch::Receiver<Abstention>,
    /// Whether the key is looked at while its lease is renewed.
    pub(crate) confirms_key: bool,
}

/// Why a process does not hold the key for now, though it could.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Abstention {
    /// A person asked it to leave the key to another one.
    pub(crate) asked: bool,
    /// The time of this process is not that of the others.
    pub(crate) clock: bool,
}

impl Abstention {
    /// Whether it may try for the key and hold it.
    const fn is_none(self) -> bool {
        !(self.asked || self.clock)
    }
}

/// One holding of the key.
struct HeldLease {
    lease: LeaseId,
    /// The create revision of the key.
    revision: Revision,
    /// When the lease was requested.
    since: Instant,
}

impl HeldLease {
    /// Whether the key is the one that this holding wrote.
    fn is(&self, entry: Option<&Entry>) -> bool {
        entry.is_some_and(|entry| entry.created.0 == self.revision.get())
    }

    /// Whether a page of the key proves that this holding is over. One older than the holding proves nothing.
    fn is_over(&self, page: &Page) -> bool {
        page.revision.0 >= self.revision.get() && !self.is(page.entries.first())
    }
}

impl LeaseKey {
    /// Tries to hold the key until `stop`; while it does, `holding` has the create revision of the key. Releases the key
    /// when it stops.
    pub(crate) async fn run(self, holding: watch::Sender<Option<Revision>>, stop: CancellationToken) {
        let (mut is_waiting, mut failure) = (false, RepeatedFailure::default());
        while !stop.is_cancelled() {
            // Both arms only wait.
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wait_until(Abstention::is_none) => {}
            }
            match self.acquire().await {
                Ok(Some(held)) => {
                    is_waiting = false;
                    failure.is_over();
                    tracing::info!(revision = held.revision.get(), "acquired the {}", self.purpose);
                    holding.send_replace(Some(held.revision));
                    self.hold(&held, &stop).await;
                    holding.send_replace(None);
                    tracing::info!(revision = held.revision.get(), "lost or released the {}", self.purpose);
                    self.release(held.lease).await;
                }
                Ok(None) => {
                    if !is_waiting {
                        tracing::info!("another server holds the {}", self.purpose);
                    }
                    is_waiting = true;
                    self.wait_until_free(&stop).await;
                }
                Err(error) => {
                    if failure.is_news(&error) {
                        tracing::warn!(%error, "cannot acquire the {}", self.purpose);
                    }
                    pause(RETRY, &stop).await;
                }
            }
        }
    }

    /// Writes the key, if it is free.
    async fn acquire(&self) -> Result<Option<HeldLease>, StoreError> {
        if let Some(entry) = self.store.get(self.key.clone()).await? {
            if !self.has_own_store {
                return Ok(None);
            }
            let compare = Compare::Modified { key: entry.key.clone(), revision: entry.modified };
            self.store
                .commit(Txn { compares: vec![compare], ops: vec![Op::Delete { key: entry.key }] })
                .await?;
        }
        let value = encoding::write_global(&(self.record)()).map_err(|error| StoreError::Broken {
            reason: format!("cannot encode the record of the {}: {error}", self.purpose),
        })?;
        // Taken before the lease is granted: the time of the commit counts as lifetime of the lease.
        let since = Instant::now();
        let lease = self.store.grant(TTL).await?;
        let put = Op::Put { key: self.key.clone(), value, lease: Some(lease) };
        let txn = Txn { compares: vec![Compare::Absent { key: self.key.clone() }], ops: vec![put] };
        match self.store.commit(txn).await {
            Ok(CommitOutcome::Committed(at)) => {
                Ok(Some(HeldLease { lease, revision: Revision::new(at.0), since }))
            }
            Ok(CommitOutcome::Conflict { .. }) => {
                self.store.revoke(lease).await?;
                Ok(None)
            }
            Err(error) => {
                // The commit may have been made: without this, a key without a holder would block all servers until its lease ends.
                self.release(lease).await;
                Err(error)
            }
        }
    }

    async fn release(&self, lease: LeaseId) {
        // If the store does not answer, the lease ends by itself.
        match tokio::time::timeout(TTL, self.store.revoke(lease)).await {
            Ok(Ok(()) | Err(StoreError::LeaseGone)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "cannot release the {}", self.purpose),
            Err(_) => tracing::debug!("cannot release the {}: no answer in time", self.purpose),
        }
    }

    /// Holds the key until `stop`, until it or its lease is gone, until it is given up, or until the last renewal is
    /// [`STOP_AFTER`] old.
    async fn hold(&self, held: &HeldLease, stop: &CancellationToken) {
        // All arms only wait and read; a renewal that is dropped has been made or not, and the lease is released next.
        tokio::select! {
            () = self.renew(held, stop) => {}
            () = self.deleted(held), if self.confirms_key => {
                tracing::warn!("the key of the {} was deleted; acquiring it anew", self.purpose);
            }
            () = self.given_up(held), if self.confirms_key => {
                tracing::warn!("a commit has shown that the {} is lost", self.purpose);
            }
            () = self.wait_until(|abstains| !abstains.is_none()) => {
                tracing::info!("leaving the {} to another server", self.purpose);
            }
        }
    }

    /// Waits until its abstention is like this.
    async fn wait_until(&self, is_met: impl Fn(Abstention) -> bool) {
        let mut abstains = self.abstains.clone();
        if abstains.wait_for(|abstains| is_met(*abstains)).await.is_err() && !is_met(*abstains.borrow()) {
            // Nobody is left to change it.
            std::future::pending().await
        }
    }

    /// Waits until a watch tells that the key is gone or another one. Never returns if the watch misses it.
    async fn deleted(&self, held: &HeldLease) {
        let mut after = bellwether_store::Revision(held.revision.get());
        loop {
            let watch = self.store.watch(Range::one(self.key.clone()), after).await;
            if let Ok(watch) = watch
                && Self::is_told_over(watch, held, &mut after).await
            {
                return;
            }
            tokio::time::sleep(RETRY).await;
            // History up to here may be compacted.
            if let Ok(page) = self.store.list(Range::one(self.key.clone()), None, 1).await {
                if held.is_over(&page) {
                    return;
                }
                after = after.max(page.revision);
            }
        }
    }

    /// Whether a watch tells that the key is gone or another one, before it ends.
    async fn is_told_over(
        mut watch: Watch,
        held: &HeldLease,
        after: &mut bellwether_store::Revision,
    ) -> bool {
        while let Ok(batch) = watch.next().await {
            // A watch may repeat what was before.
            let is_new = batch.revision > *after;
            if is_new && batch.changes.iter().any(|change| !held.is(change.entry.as_ref())) {
                return true;
            }
            *after = batch.revision.max(*after);
        }
        false
    }

    async fn given_up(&self, held: &HeldLease) {
        let mut given_up = self.given_up.clone();
        if given_up.wait_for(|revision| *revision == Some(held.revision)).await.is_err() {
            // Nobody is left to give it up.
            std::future::pending().await
        }
    }

    /// Renews the lease until `stop`, until the lease or the key is gone, or until the last renewal is [`STOP_AFTER`] old.
    async fn renew(&self, held: &HeldLease, stop: &CancellationToken) {
        let mut renewed = held.since;
        loop {
            pause(RENEW_EVERY.min(STOP_AFTER.saturating_sub(renewed.elapsed())), stop).await;
            if stop.is_cancelled() {
                return;
            }
            let requested = Instant::now();
            let left = STOP_AFTER.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.store.keep_alive(held.lease)).await {
                Ok(Ok(())) => {
                    renewed = requested;
                    if self.confirms_key && self.is_over(held).await {
                        tracing::warn!("the {} has no key any more; acquiring it anew", self.purpose);
                        return;
                    }
                }
                Ok(Err(StoreError::LeaseGone)) => return,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "cannot renew the {}", self.purpose);
                    pause(RETRY.min(left), stop).await;
                }
                Err(_) => {}
            }
            if renewed.elapsed() >= STOP_AFTER {
                tracing::warn!(
                    "the {} was not renewed in time; stopping before its lease can end",
                    self.purpose
                );
                return;
            }
        }
    }

    /// Whether the store says that the key is gone or another one. False if it does not answer before the next renewal is due.
    async fn is_over(&self, held: &HeldLease) -> bool {
        let read = self.store.list(Range::one(self.key.clone()), None, 1);
        matches!(tokio::time::timeout(RENEW_EVERY, read).await, Ok(Ok(page)) if held.is_over(&page))
    }

    /// Waits until the key is deleted, or for one [`TTL`].
    async fn wait_until_free(&self, stop: &CancellationToken) {
        let seen = match self.store.list(Range::one(self.key.clone()), None, 1).await {
            Ok(page) if page.entries.is_empty() => return,
            Ok(page) => page.revision,
            Err(_) => return pause(RETRY, stop).await,
        };
        let Ok(mut watch) = self.store.watch(Range::one(self.key.clone()), seen).await else {
            return pause(RETRY, stop).await;
        };
        // The watch may miss the delete: after a while the key is read again in any case.
        let change = tokio::time::timeout(TTL, watch.next());
        // Watch::next is cancel safe.
        tokio::select! {
            () = stop.cancelled() => {}
            _ = change => {}
        }
    }
}

/// Sleeps, or returns early on `stop`.
async fn pause(duration: Duration, stop: &CancellationToken) {
    // Both arms only wait.
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(duration) => {}
    }
}

#[cfg(test)]
mod tests;
