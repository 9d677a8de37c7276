//! Leases by this process's monotonic clock. Owns deadlines; what a lease's end deletes is the back end's.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::entry::LeaseId;
use crate::error::{Refusal, StoreError};

/// The shortest lease: 1 ms, the resolution of stored deadlines. etcd rounds up to whole seconds.
pub const MIN_TTL: Duration = Duration::from_millis(1);

/// The longest lease: one year. What should outlive it needs no lease.
pub const MAX_TTL: Duration = Duration::from_hours(365 * 24);

/// How long to wait before ending a lease again when the store did not accept it (a full disk).
const RETRY: Duration = Duration::from_secs(1);

/// Refuses an invalid lease time.
pub(crate) fn check_ttl(ttl: Duration) -> Result<(), StoreError> {
    if (MIN_TTL..=MAX_TTL).contains(&ttl) { Ok(()) } else { Err(Refusal::Ttl { ttl }.into()) }
}

#[derive(Debug, Clone, Copy)]
struct HeldLease {
    ttl: Duration,
    deadline: Instant,
}

/// The leases that have not ended, and their deadlines.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    held: Mutex<BTreeMap<LeaseId, HeldLease>>,
    sooner: Notify,
}

impl Leases {
    /// Starts `lease` with its full time.
    pub(crate) fn start(&self, lease: LeaseId, ttl: Duration) {
        self.held().insert(lease, HeldLease { ttl, deadline: Instant::now() + ttl });
        self.sooner.notify_one();
    }

    /// Extends `lease` by its full time, unless it has run out.
    pub(crate) fn keep_alive(&self, lease: LeaseId) -> Result<(), StoreError> {
        let now = Instant::now();
        match self.held().get_mut(&lease) {
            Some(held) if held.deadline > now => {
                held.deadline = now + held.ttl;
                Ok(())
            }
            Some(_) | None => Err(StoreError::LeaseGone),
        }
    }

    /// Whether `lease` was granted and has not run out.
    pub(crate) fn is_alive(&self, lease: LeaseId) -> bool {
        self.held().get(&lease).is_some_and(|held| held.deadline > Instant::now())
    }

    /// Whether `lease` was granted and its keys may still be there.
    pub(crate) fn is_known(&self, lease: LeaseId) -> bool {
        self.held().contains_key(&lease)
    }

    /// Forgets `lease`, whose keys are gone.
    pub(crate) fn end(&self, lease: LeaseId) {
        self.held().remove(&lease);
    }

    /// The leases that have run out, and when the next one does.
    fn due(&self) -> (Vec<LeaseId>, Option<Instant>) {
        let now = Instant::now();
        let held = self.held();
        let over = held.iter().filter(|(_, held)| held.deadline <= now).map(|(lease, _)| *lease).collect();
        let next = held.values().map(|held| held.deadline).filter(|deadline| *deadline > now).min();
        (over, next)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<LeaseId, HeldLease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends every lease that runs out, with `end`, until `stop`.
pub(crate) async fn keep_time(
    leases: &Leases,
    stop: &CancellationToken,
    end: impl Fn(LeaseId) -> BoxFuture<'static, Result<(), StoreError>>,
) {
    loop {
        let (over, mut next) = leases.due();
        for lease in over {
            match end(lease).await {
                Ok(()) | Err(StoreError::LeaseGone) => leases.end(lease),
                Err(error) => {
                    tracing::warn!(%lease, "could not {error}; will try to end the lease again");
                    next = Some(Instant::now() + RETRY);
                }
            }
        }
        let wait = async {
            match next {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        // Each arm only waits; dropping one loses nothing, as `due` reads the table again.
        tokio::select! {
            () = stop.cancelled() => return,
            () = wait => {}
            () = leases.sooner.notified() => {}
        }
    }
}
