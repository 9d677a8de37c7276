//! A digest of a sequence of parts, the same on every machine and across restarts. Not for secrets, nor
//! against forgery.

/// The offset basis of FNV-1a.
pub const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: `hash` extended by one byte.
#[must_use]
pub const fn fnv(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3)
}

/// FNV-1a over parts, each terminated by a byte that occurs in no text.
#[derive(Debug, Clone)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(FNV_START)
    }
}

impl Digest {
    /// Adds one part.
    pub fn add(&mut self, part: &[u8]) {
        for byte in part.iter().chain(&[0xff]) {
            self.0 = fnv(self.0, *byte);
        }
    }

    /// The digest.
    #[must_use]
    pub const fn finish(&self) -> u64 {
        self.0
    }
}
