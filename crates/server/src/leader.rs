//! Leadership: a lease-bound key whose create revision is the term. Owns "may this server decide, and under which term".
//!
//! The leader stops itself by its own clock before its lease could be taken, and every commit of a decider compares the
//! key, so a leader that lost it cannot write.

use std::time::Duration;

use bellwether_core::words::counter::Term;
use bellwether_store::{Compare, LeaseId, Op, Outcome, Range, Store, StoreError, Txn};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::records::keys;

/// How long a silent leader keeps its place: short enough to be replaced quickly.
const TTL: Duration = Duration::from_secs(5);

/// How often the lease is renewed.
const RENEW_EVERY: Duration = Duration::from_millis(1_500);

/// Without a renewal for so long, the leader stops itself: well before the store could give its place away.
const STOP_AFTER: Duration = Duration::from_millis(3_500);

/// Pause before trying again after the store failed.
const RETRY: Duration = Duration::from_millis(300);

/// Keeps trying to lead, publishing the term while it does, until asked to stop; then gives the place back at once.
///
/// `sole` says that no other server can be using this store: a predecessor's key is then a leftover, removed at once.
pub async fn run(
    store: Store,
    name: String,
    sole: bool,
    out: watch::Sender<Option<Term>>,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        match acquire(&store, &name, sole).await {
            Ok(Some((lease, term, since))) => {
                tracing::info!(%term, "leading");
                out.send_replace(Some(term));
                hold(&store, lease, since, &stop).await;
                out.send_replace(None);
                tracing::info!(%term, "no longer leading");
                if let Err(error) = store.revoke(lease).await {
                    tracing::debug!(%error, "could not give the leadership back");
                }
            }
            Ok(None) => wait_for_vacancy(&store, &stop).await,
            Err(error) => {
                tracing::warn!(%error, "could not try to lead");
                pause(RETRY, &stop).await;
            }
        }
    }
}

async fn acquire(
    store: &Store,
    name: &str,
    sole: bool,
) -> Result<Option<(LeaseId, Term, Instant)>, StoreError> {
    if let Some(entry) = store.get(keys::LEADER.into()).await? {
        if !sole {
            return Ok(None);
        }
        let compare = Compare::Modified { key: entry.key.clone(), revision: entry.modified };
        store.commit(Txn { compares: vec![compare], ops: vec![Op::Delete { key: entry.key }] }).await?;
    }
    // Counted from before the lease: whatever the commit takes is time that the lease has lived.
    let since = Instant::now();
    let lease = store.grant(TTL).await?;
    let put = Op::Put { key: keys::LEADER.into(), value: name.to_owned().into(), lease: Some(lease) };
    let txn = Txn { compares: vec![Compare::Absent { key: keys::LEADER.into() }], ops: vec![put] };
    match store.commit(txn).await? {
        Outcome::Committed(revision) => Ok(Some((lease, Term::new(revision.0), since))),
        Outcome::Conflict { .. } => {
            store.revoke(lease).await?;
            Ok(None)
        }
    }
}

/// Renews until asked to stop, or until the last renewal is too old.
async fn hold(store: &Store, lease: LeaseId, since: Instant, stop: &CancellationToken) {
    let mut renewed = since;
    loop {
        pause(RENEW_EVERY.min(STOP_AFTER.saturating_sub(renewed.elapsed())), stop).await;
        if stop.is_cancelled() {
            return;
        }
        let asked = Instant::now();
        let left = STOP_AFTER.saturating_sub(renewed.elapsed());
        match tokio::time::timeout(left, store.keep_alive(lease)).await {
            Ok(Ok(())) => renewed = asked,
            Ok(Err(StoreError::LeaseGone)) => return,
            Ok(Err(error)) => tracing::warn!(%error, "could not renew the leadership"),
            Err(_) => {}
        }
        if renewed.elapsed() >= STOP_AFTER {
            tracing::warn!("leadership was not renewed in time; stopping before it could be taken");
            return;
        }
    }
}

async fn wait_for_vacancy(store: &Store, stop: &CancellationToken) {
    let seen = match store.list(Range::one(keys::LEADER), None, 1).await {
        Ok(page) if page.entries.is_empty() => return,
        Ok(page) => page.revision,
        Err(_) => return pause(RETRY, stop).await,
    };
    let Ok(mut watch) = store.watch(Range::one(keys::LEADER), seen).await else {
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

async fn pause(how_long: Duration, stop: &CancellationToken) {
    // Both arms only wait.
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(how_long) => {}
    }
}
