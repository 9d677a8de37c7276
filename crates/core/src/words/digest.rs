//! A number for a sequence of parts, the same on every machine and over restarts. It tells parts apart; it hides nothing.

/// FNV-1a over parts, each ended by a byte that no text has.
#[derive(Debug, Clone)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// One part.
    pub fn add(&mut self, part: &[u8]) {
        for byte in part.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The number.
    #[must_use]
    pub const fn finish(&self) -> u64 {
        self.0
    }
}
