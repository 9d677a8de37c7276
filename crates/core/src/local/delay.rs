//! Delays before the next attempt. Owns back-off; never waits itself.

use crate::words::time::Span;

/// First delay after a failed attempt: long enough not to use up the processor, short enough for a transient
/// error.
pub const FIRST: Span = Span::from_secs(1);

/// Longest delay between attempts: a broken machine is still tried twice a minute.
pub const LONGEST: Span = Span::from_secs(30);

/// First delay before calling a server again that did not answer: a restart of a server takes little longer.
pub const FIRST_CALL: Span = Span::from_millis(250);

/// Longest delay between calls: every node calls a restarted server well before it would become unreachable.
pub const LONGEST_CALL: Span = Span::from_secs(8);

/// The delay before the attempt that follows `failed` failed ones: doubling from [`FIRST`] up to [`LONGEST`],
/// spread by up to a quarter either way by `seed`, so that machines that failed together do not retry together.
#[must_use]
pub fn after(failed: u32, seed: u64) -> Span {
    doubling(FIRST, LONGEST, failed, seed)
}

/// The delay before the call that follows `failed` unanswered ones, as [`after`], from [`FIRST_CALL`] up to
/// [`LONGEST_CALL`].
#[must_use]
pub fn before_call(failed: u32, seed: u64) -> Span {
    doubling(FIRST_CALL, LONGEST_CALL, failed, seed)
}

fn doubling(first: Span, longest: Span, failed: u32, seed: u64) -> Span {
    let doubled = first.as_millis() << failed.saturating_sub(1).min(16);
    let base = doubled.min(longest.as_millis());
    spread(Span::from_millis(base), seed, failed)
}

/// `base`, changed by up to a quarter either way, so that many machines do the same thing at different times.
#[must_use]
pub fn spread(base: Span, seed: u64, salt: u32) -> Span {
    let base = base.as_millis();
    Span::from_millis(base - base / 4 + mix(seed, salt) % (base / 2 + 1))
}

/// A pseudo-random number, the same for the same inputs (the finaliser of `SplitMix64`).
pub(super) fn mix(seed: u64, salt: u32) -> u64 {
    let mut z = seed.wrapping_add(u64::from(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_cap_and_stay_within_a_quarter() {
        for failed in 1..40 {
            for seed in 0..50 {
                let base = (1_000_u64 << (failed - 1).min(16)).min(30_000);
                let delay = after(failed, seed).as_millis();
                assert!(delay >= base - base / 4 && delay <= base + base / 4 + 1, "{failed} {seed} {delay}");
            }
        }
    }
}
