//! Random order from a seed: the same seed, the same order.

/// A small source of numbers that look random (SplitMix64). Not for secrets.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Puts items into an order in which each is as likely at each place.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (2..=items.len()).rev() {
            // The upper half is below 2^32, which every usize here holds.
            let pick = usize::try_from(self.next() >> 32).unwrap_or_default() % end;
            items.swap(end - 1, pick);
        }
    }
}
