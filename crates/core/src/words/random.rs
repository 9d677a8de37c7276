//! Pseudo-random numbers from a seed: the same seed gives the same numbers in every release. Not for secrets.

use super::digest::{FNV_START, fnv};

/// The increment of `SplitMix64`: odd, close to 2⁶⁴ divided by the golden ratio.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of pseudo-random numbers (`SplitMix64`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomStream {
    state: u64,
}

impl RandomStream {
    /// The stream of a seed.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream of a seed for one name and count: the numbers drawn for others do not affect it.
    #[must_use]
    pub fn for_one(seed: u64, name: &str, count: u64) -> Self {
        let sum = name.bytes().fold(FNV_START, fnv);
        let mut seed = Self::of(seed);
        let mut own = Self::of(seed.draw() ^ sum);
        Self::of(own.draw() ^ count.wrapping_mul(STEP))
    }

    /// The next number, any of 2⁶⁴ values.
    pub const fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mixed(self.state)
    }

    /// A number below `limit`, uniformly distributed; zero when `limit` is zero.
    pub const fn below(&mut self, limit: u64) -> u64 {
        // The high half of the product: its bias is negligible, unlike that of a remainder.
        ((self.draw() as u128 * limit as u128) >> 64) as u64
    }

    /// Moves a random item to the front, each with the same probability. Repeated on the rest, it makes a
    /// random order and computes no more of it than needed.
    pub fn pick_first<T>(&mut self, items: &mut [T]) {
        // The upper half is below 2^32, which every usize here holds.
        let number = usize::try_from(self.draw() >> 32).unwrap_or_default();
        if let Some(pick) = number.checked_rem(items.len()) {
            items.swap(0, pick);
        }
    }

    /// Returns true with a probability of `parts` in a million.
    pub const fn happens(&mut self, parts: u32) -> bool {
        self.below(1_000_000) < parts as u64
    }
}

/// The mixing function of `SplitMix64`: every bit of the result depends on every bit of `z`.
#[must_use]
pub const fn mixed(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_each_name_its_own() {
        let draw = |seed, name, count| RandomStream::for_one(seed, name, count).draw();
        assert_eq!(draw(1, "web-1", 1), draw(1, "web-1", 1));
        let others = [draw(2, "web-1", 1), draw(1, "web-2", 1), draw(1, "web-1", 2)];
        assert!(!others.contains(&draw(1, "web-1", 1)));
    }

    #[test]
    fn a_share_of_many_is_about_that_share() {
        let hits = (0..100_000).filter(|n| RandomStream::for_one(7, "web", *n).happens(50_000)).count();
        assert!((4_700..5_300).contains(&hits), "{hits} of 100000 at 5 %");
        let low = (0..100_000).filter(|n| RandomStream::for_one(7, "web", *n).below(10) < 3).count();
        assert!((29_000..31_000).contains(&low), "{low} of 100000 at 30 %");
        assert_eq!(RandomStream::of(1).below(0), 0);
        assert!(!RandomStream::of(1).happens(0) && RandomStream::of(1).happens(1_000_000));
    }
}
