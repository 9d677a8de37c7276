//! Orders and catalogue updates that cannot be accepted: requested again with backoff. Meanwhile polling goes on, and
//! what was accepted before stays in force. A catalogue update that was not understood is requested as a whole.

use bellwether_core::local::delay;
use bellwether_core::words::counter::Generation;
use bellwether_core::words::time::{Span, Timestamp};

/// A refused order.
#[derive(Debug, Default)]
pub(in crate::link) struct Order {
    pub(super) refused: Refused,
    generation: Generation,
}

impl Order {
    /// Records a refusal of this generation. Returns whether it is the first one.
    pub(super) fn happened(&mut self, generation: Generation, now: Timestamp, seed: u64) -> bool {
        let other = std::mem::replace(&mut self.generation, generation) != generation;
        self.refused.happened(now, seed) || other
    }

    /// The generation above which orders are requested: during the backoff not the refused one, but any newer one.
    pub(super) fn known(&self, in_hand: Generation, now: Timestamp) -> Generation {
        if self.refused.left(now).is_some() { in_hand.max(self.generation) } else { in_hand }
    }
}

/// Refusals in a row, and when to request again.
#[derive(Debug, Default)]
pub(in crate::link) struct Refused {
    times: u32,
    again_at: Timestamp,
}

impl Refused {
    /// Records another refusal. Returns whether it is the first one.
    pub(super) fn happened(&mut self, now: Timestamp, seed: u64) -> bool {
        self.times = self.times.saturating_add(1);
        self.again_at = now.plus(delay::after(self.times, seed));
        self.times == 1
    }

    /// Records an acceptance. Returns whether there was a refusal before.
    pub(super) fn is_over(&mut self) -> bool {
        std::mem::take(self).times > 0
    }

    /// How long until it is requested again; `None` if there is nothing to wait for.
    pub(super) fn left(&self, now: Timestamp) -> Option<Span> {
        (self.times > 0 && now < self.again_at).then(|| self.again_at.since(now))
    }

    /// The index to poll with: zero requests the whole catalogue after a refusal.
    pub(super) const fn poll_index(&self, index: u64) -> u64 {
        if self.times > 0 { 0 } else { index }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_update_is_requested_whole_with_backoff_and_recorded_once() {
        let mut refused = Refused::default();
        let mut now = Timestamp::from_millis(5_000);
        assert_eq!((refused.left(now), refused.poll_index(7)), (None, 7));
        let mut waits = Vec::new();
        for time in 0..8 {
            assert_eq!(refused.happened(now, 3), time == 0);
            let left = refused.left(now).unwrap();
            now = now.plus(left);
            assert_eq!((refused.left(now), refused.poll_index(7)), (None, 0));
            waits.push(left);
        }
        assert!(waits[0] >= Span::from_millis(750) && waits[7] >= Span::from_secs(22), "{waits:?}");
        assert!(refused.is_over());
        assert!(!refused.is_over());
        assert_eq!((refused.left(now), refused.poll_index(7)), (None, 7));
    }

    #[test]
    fn a_refused_order_is_requested_again_later_and_a_newer_one_at_once() {
        let (mut order, now) = (Order::default(), Timestamp::from_millis(5_000));
        let generation = Generation::new;
        assert_eq!(order.known(generation(4), now), generation(4));
        assert!(order.happened(generation(6), now, 3), "it is the first refusal");
        assert_eq!(order.known(generation(4), now), generation(6));
        let later = now.plus(order.refused.left(now).unwrap());
        assert_eq!(order.known(generation(4), later), generation(4));
        assert!(!order.happened(generation(6), later, 3), "the same one is not");
        assert!(order.happened(generation(7), later, 3), "another one is");
        assert_eq!(order.known(generation(4), later), generation(7));
        assert_eq!(order.known(generation(9), later), generation(9));
    }
}
