//! How current this server's world is. Owns the time up to which it is known to contain everything that was committed, and
//! never decides what follows from it.
//!
//! A store of the server's own is in this process: its world is always current. With a shared store the server asks for the
//! newest revision, a linearizable read, and notes when it asked once its world has reached that. The age of the world is the
//! time since then, by the clock that goes on in suspend: a server that slept, or is cut off, knows that it may be behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellwether_core::words::counter::Revision;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_store::Store;
use tokio_util::sync::CancellationToken;

use crate::transactor::Transactor;
use crate::world::RelistHandle;

/// Interval of the reads that show that the world is current: one of a key that is not there, at each server.
const CONFIRM_EVERY: Duration = Duration::from_secs(1);

/// Age from which a world is not current: several reads in a row were not answered, and a lease of the leadership may have
/// ended since.
const STALE_AFTER: Span = Span::from_secs(5);

/// Longest wait for the watch to deliver what was committed before a read.
const UNDER_WAY: Duration = Duration::from_millis(250);

/// Age from which the world is compared with the store if a read shows revisions that the watch does not deliver: these are
/// usually of other programs in a shared etcd.
const COMPARE_AFTER: Span = Span::from_secs(2);

/// Longest wait for an answer of the store, or for a comparison.
const WITHIN: Duration = Duration::from_secs(5);

/// The time up to which this server's world is known to be current. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Freshness {
    clock: Clock,
    /// Time since boot, in milliseconds, at which the world was known to be current; none for a store of the server's own.
    current_at: Option<Arc<AtomicU64>>,
}

/// What [`Freshness::follow`] asks.
#[derive(Debug)]
pub(crate) struct FreshnessSources {
    /// The store.
    pub(crate) store: Store,
    /// The published world.
    pub(crate) transactor: Transactor,
    /// Brings the world up to date.
    pub(crate) relist: RelistHandle,
}

impl Freshness {
    /// The freshness of a world that was read just now, from a store that is shared or the server's own.
    #[must_use]
    pub fn new(clock: &Clock, shares: bool) -> Self {
        let freshness =
            Self { clock: clock.clone(), current_at: shares.then(|| Arc::new(AtomicU64::new(0))) };
        freshness.note(freshness.now());
        freshness
    }

    /// The age of the world, once it is not current: the time since it was last known to be.
    #[must_use]
    pub fn stale_for(&self) -> Option<Span> {
        let age = self.age();
        (age >= STALE_AFTER).then_some(age)
    }

    /// The time since the world was last known to be current.
    pub(crate) fn age(&self) -> Span {
        let Some(at) = &self.current_at else { return Span::ZERO };
        let since = self.now().as_millis().saturating_sub(at.load(Ordering::Relaxed));
        Span::from_millis(since)
    }

    /// A time to [`Self::note`] later: what is committed before is in a world that is then shown to be current.
    pub(crate) fn now(&self) -> Span {
        self.clock.since_boot().unwrap_or(Span::ZERO)
    }

    /// The world contains everything that was committed before `at`.
    pub(crate) fn note(&self, at: Span) {
        if let Some(current_at) = &self.current_at {
            current_at.fetch_max(at.as_millis(), Ordering::Relaxed);
        }
    }

    /// Keeps it up to date until `stop`.
    pub(crate) async fn follow(self, sources: FreshnessSources, stop: CancellationToken) {
        if self.current_at.is_none() {
            return;
        }
        loop {
            self.confirm(&sources, &stop).await;
            // Both arms only wait.
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(CONFIRM_EVERY) => {}
            }
        }
    }

    async fn confirm(&self, sources: &FreshnessSources, stop: &CancellationToken) {
        let asked = self.now();
        let read = tokio::time::timeout(WITHIN, sources.store.now());
        // Both arms only wait.
        let read = tokio::select! {
            () = stop.cancelled() => return,
            read = read => read,
        };
        let Ok(Ok(newest)) = read else { return };
        let reached = sources.transactor.reaches(Revision::new(newest.0));
        if tokio::time::timeout(UNDER_WAY, reached).await == Ok(true) {
            return self.note(asked);
        }
        if self.age() < COMPARE_AFTER {
            return;
        }
        let asked = self.now();
        let compared = tokio::time::timeout(WITHIN, sources.relist.bring_up_to_date(stop)).await;
        if compared == Ok(true) {
            self.note(asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::words::time::Timestamp;

    use super::*;

    #[test]
    fn a_world_is_current_for_some_seconds_and_its_age_counts_from_the_request_that_showed_it() {
        let clock = Clock::manual(Timestamp::from_millis(1_000_000));
        let freshness = Freshness::new(&clock, true);
        clock.advance(Span::from_millis(4_999));
        assert_eq!(freshness.stale_for(), None);
        clock.advance(Span::from_millis(1));
        assert_eq!(freshness.stale_for(), Some(Span::from_secs(5)));
        let asked = freshness.now();
        clock.advance(Span::from_secs(7));
        freshness.note(asked);
        assert_eq!(
            freshness.stale_for(),
            Some(Span::from_secs(7)),
            "what was committed meanwhile may be missing"
        );
        // An earlier request that is answered later says nothing new.
        freshness.note(Span::ZERO);
        assert_eq!(freshness.age(), Span::from_secs(7));
    }

    #[test]
    fn the_world_of_a_store_of_its_own_is_always_current() {
        let clock = Clock::manual(Timestamp::from_millis(0));
        let freshness = Freshness::new(&clock, false);
        clock.advance(Span::from_secs(3_600));
        assert_eq!((freshness.stale_for(), freshness.age()), (None, Span::ZERO));
    }
}
