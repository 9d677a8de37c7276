//! A catalogue that could not be understood, from a newer server perhaps: asked for again, whole, but not at once. Meanwhile
//! the line goes on, and the copy stays what it was.

use bellwether_core::local::delay;
use bellwether_core::words::time::{Span, Timestamp};

/// How often in a row it was not understood, and when to ask again.
#[derive(Debug, Default)]
pub(in crate::link) struct Misread {
    times: u32,
    again_at: Timestamp,
}

impl Misread {
    /// It was not understood, once more. Says whether that is news.
    pub(super) fn happened(&mut self, now: Timestamp, seed: u64) -> bool {
        self.times = self.times.saturating_add(1);
        self.again_at = now.plus(delay::after(self.times, seed));
        self.times == 1
    }

    /// It was understood. Says whether that is news.
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
        let mut misread = Misread::default();
        let mut now = Timestamp::from_millis(5_000);
        assert_eq!((misread.left(now), misread.seen(7)), (None, 7));
        let mut waits = Vec::new();
        for time in 0..8 {
            assert_eq!(misread.happened(now, 3), time == 0);
            let left = misread.left(now).unwrap();
            now = now.plus(left);
            assert_eq!((misread.left(now), misread.seen(7)), (None, 0));
            waits.push(left);
        }
        assert!(waits[0] >= Span::from_millis(750) && waits[7] >= Span::from_secs(22), "{waits:?}");
        assert!(misread.is_over());
        assert!(!misread.is_over());
        assert_eq!((misread.left(now), misread.seen(7)), (None, 7));
    }
}
