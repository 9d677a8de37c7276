//! What came and could not be taken in: asked for again, later and later. Meanwhile the line goes on, and what is in hand
//! stays what it was. A catalogue that was not understood, from a newer server perhaps, is asked for whole.

use bellwether_core::local::delay;
use bellwether_core::words::counter::Generation;
use bellwether_core::words::time::{Span, Timestamp};

/// An order that was refused.
#[derive(Debug, Default)]
pub(in crate::link) struct Order {
    pub(super) refused: Refused,
    generation: Generation,
}

impl Order {
    /// One of this generation was refused. Says whether that is news.
    pub(super) fn happened(&mut self, generation: Generation, now: Timestamp, seed: u64) -> bool {
        let other = std::mem::replace(&mut self.generation, generation) != generation;
        self.refused.happened(now, seed) || other
    }

    /// Past which generation orders are asked for: one that was refused is not, for a while, but any newer one is.
    pub(super) fn known(&self, in_hand: Generation, now: Timestamp) -> Generation {
        if self.refused.left(now).is_some() { in_hand.max(self.generation) } else { in_hand }
    }
}

/// How often in a row it could not be taken in, and when to ask again.
#[derive(Debug, Default)]
pub(in crate::link) struct Refused {
    times: u32,
    again_at: Timestamp,
}

impl Refused {
    /// It could not be taken in, once more. Says whether that is news.
    pub(super) fn happened(&mut self, now: Timestamp, seed: u64) -> bool {
        self.times = self.times.saturating_add(1);
        self.again_at = now.plus(delay::after(self.times, seed));
        self.times == 1
    }

    /// It was taken in. Says whether that is news.
    pub(super) fn is_over(&mut self) -> bool {
        std::mem::take(self).times > 0
    }

    /// How long until it is asked for again; none when there is nothing to wait for.
    pub(super) fn left(&self, now: Timestamp) -> Option<Span> {
        (self.times > 0 && now < self.again_at).then(|| self.again_at.since(now))
    }

    /// How far to say that a copy is: what cannot be continued is needed whole.
    pub(super) const fn seen(&self, index: u64) -> u64 {
        if self.times > 0 { 0 } else { index }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_for_whole_and_later_each_time_and_told_once() {
        let mut refused = Refused::default();
        let mut now = Timestamp::from_millis(5_000);
        assert_eq!((refused.left(now), refused.seen(7)), (None, 7));
        let mut waits = Vec::new();
        for time in 0..8 {
            assert_eq!(refused.happened(now, 3), time == 0);
            let left = refused.left(now).unwrap();
            now = now.plus(left);
            assert_eq!((refused.left(now), refused.seen(7)), (None, 0));
            waits.push(left);
        }
        assert!(waits[0] >= Span::from_millis(750) && waits[7] >= Span::from_secs(22), "{waits:?}");
        assert!(refused.is_over());
        assert!(!refused.is_over());
        assert_eq!((refused.left(now), refused.seen(7)), (None, 7));
    }

    #[test]
    fn an_order_that_was_refused_is_asked_for_again_later_and_a_newer_one_at_once() {
        let (mut order, now) = (Order::default(), Timestamp::from_millis(5_000));
        let generation = Generation::new;
        assert_eq!(order.known(generation(4), now), generation(4));
        assert!(order.happened(generation(6), now, 3), "it is news");
        assert_eq!(order.known(generation(4), now), generation(6));
        let later = now.plus(order.refused.left(now).unwrap());
        assert_eq!(order.known(generation(4), later), generation(4));
        assert!(!order.happened(generation(6), later, 3), "the same one is none");
        assert!(order.happened(generation(7), later, 3), "another one is");
        assert_eq!(order.known(generation(4), later), generation(7));
        assert_eq!(order.known(generation(9), later), generation(9));
    }
}
