//! Random order from a seed: the same seed, the same order.

/// A small source of numbers that look random (SplitMix64). Not for secrets.
#[derive(Debug, Clone)]
pub struct RandomStream(u64);

impl RandomStream {
    /// Begins at a seed. Seeds that follow each other make numbers that do not.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Puts one of the items, each as likely as any other, first. Done to what is left again and again, it makes a random
    /// order of which no more is worked out than is needed.
    pub fn pick_first<T>(&mut self, items: &mut [T]) {
        // The upper half is below 2^32, which every usize here holds.
        let number = usize::try_from(self.next() >> 32).unwrap_or_default();
        if let Some(pick) = number.checked_rem(items.len()) {
            items.swap(0, pick);
        }
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
