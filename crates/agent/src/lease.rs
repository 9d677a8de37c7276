//! The lease of a logical node: held from an answer of the control plane until three quarters of its length after the request was sent.
//!
//! The control plane gives the node to another host only its whole length after the last contact, so that two never run it. It is
//! measured by a clock that goes on while the machine is suspended.

use std::time::Duration;

use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use tokio::sync::watch;

use crate::guard::message::GuardLease;

/// Longest time between two looks at the clock: a machine that was suspended notices within this.
const LOOK: Duration = Duration::from_secs(1);

/// This part of its length is the time for a script to end by itself once it is over: three of the four such parts that are left of
/// its last quarter are for a busy machine to kill it.
const LAST_GRACE: u64 = 16;

/// Longest time for a script to end by itself.
const LONGEST_GRACE: Span = Span::from_secs(10);

/// A lease. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    clock: Clock,
    length: Span,
    /// Its end, by the time since boot; `None` before the first answer.
    ends: watch::Sender<Option<Span>>,
}

/// What renews a lease: it is told when each request was sent that was answered.
#[derive(Debug, Clone)]
pub(crate) struct LeaseRenewal(Lease);

impl Lease {
    /// A lease of this length that is not held yet.
    pub(crate) fn new(clock: Clock, length: Span) -> Self {
        Self { clock, length, ends: watch::Sender::new(None) }
    }

    pub(crate) fn renewal(&self) -> LeaseRenewal {
        LeaseRenewal(self.clone())
    }

    /// Waits until it is held. Cancel safe.
    pub(crate) async fn held(&self) {
        let mut ends = self.ends.subscribe();
        // The sender is here.
        drop(ends.wait_for(Option::is_some).await);
    }

    /// Waits until it was held and has ended. Cancel safe.
    pub(crate) async fn lost(&self) {
        let mut ends = self.ends.subscribe();
        loop {
            let end = *ends.borrow_and_update();
            let left = end.map(|end| self.left(end));
            if left == Some(Duration::ZERO) {
                return;
            }
            // Both arms only wait.
            tokio::select! {
                () = tokio::time::sleep(left.map_or(LOOK, |left| left.min(LOOK))) => {}
                // The sender is here.
                _ = ends.changed() => {}
            }
        }
    }

    /// Its end now, for the guard of a job. `None` before it is held.
    pub(crate) fn end(&self) -> Option<GuardLease> {
        let end = (*self.ends.borrow())?;
        let grace = (self.length.as_millis() / LAST_GRACE).min(LONGEST_GRACE.as_millis());
        Some(GuardLease { end_ms: end.as_millis(), kill_ms: end.as_millis().saturating_add(grace) })
    }

    /// Each of its ends from now on.
    pub(crate) fn ends(&self) -> watch::Receiver<Option<Span>> {
        self.ends.subscribe()
    }

    /// What is left until this time since boot; nothing on a machine that does not say how long it runs.
    fn left(&self, end: Span) -> Duration {
        let now = self.clock.since_boot();
        now.map_or(Duration::ZERO, |now| end.to_duration().saturating_sub(now.to_duration()))
    }
}

impl LeaseRenewal {
    /// The time by which requests are measured; `None` on a machine that does not say how long it runs.
    pub(crate) fn now(&self) -> Option<Span> {
        self.0.clock.since_boot()
    }

    /// A request that was sent at this time was answered.
    pub(crate) fn answered(&self, sent: Option<Span>) {
        let held = Span::from_millis(self.0.length.as_millis().saturating_mul(3) / 4);
        let Some(end) = sent.map(|sent| sent.plus(held)) else { return };
        self.0.ends.send_if_modified(|ends| {
            let later = ends.is_none_or(|before| before < end);
            if later {
                *ends = Some(end);
            }
            later
        });
    }

    /// How long a request may wait at the server, so that several are answered within the lease.
    pub(crate) fn longest_wait(&self) -> Span {
        Span::from_millis(self.0.length.as_millis() / 6)
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::words::time::Timestamp;

    use super::*;

    /// Whether what is waited for comes while the runtime's time goes on; the clock stands still.
    async fn comes(wait: impl Future<Output = ()>) -> bool {
        tokio::time::timeout(Duration::from_secs(600), wait).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_held_for_three_quarters_of_its_length_from_the_request_on() {
        let clock = Clock::manual(Timestamp::EPOCH);
        let lease = Lease::new(clock.clone(), Span::from_secs(60));
        let renewal = lease.renewal();
        assert!(!comes(lease.held()).await && !comes(lease.lost()).await, "it was never held");
        let sent = renewal.now();
        clock.advance(Span::from_secs(10));
        renewal.answered(sent);
        assert!(comes(lease.held()).await);
        clock.advance(Span::from_millis(34_999));
        assert!(!comes(lease.lost()).await);
        clock.advance(Span::from_millis(1));
        assert!(comes(lease.lost()).await);
    }

    #[test]
    fn what_a_guard_kills_at_its_end_is_dead_before_its_whole_length() {
        for millis in [2_000, 4_000, 60_000, 86_400_000] {
            let lease = Lease::new(Clock::manual(Timestamp::EPOCH), Span::from_millis(millis));
            assert_eq!(lease.end(), None);
            lease.renewal().answered(Some(Span::ZERO));
            let GuardLease { end_ms, kill_ms } = lease.end().unwrap();
            assert_eq!(end_ms, millis * 3 / 4);
            assert!(end_ms < kill_ms && kill_ms + millis / 8 < millis, "{millis}: {kill_ms}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_an_older_request_does_not_shorten_it() {
        let clock = Clock::manual(Timestamp::EPOCH);
        let lease = Lease::new(clock.clone(), Span::from_secs(60));
        let renewal = lease.renewal();
        let older = renewal.now();
        clock.advance(Span::from_secs(5));
        renewal.answered(renewal.now());
        renewal.answered(older);
        clock.advance(Span::from_secs(44));
        assert!(!comes(lease.lost()).await);
        clock.advance(Span::from_secs(1));
        assert!(comes(lease.lost()).await);
    }
}
