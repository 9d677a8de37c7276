//! The clocks of simulated machines: right, or as different as the mix of faults says.

use bellwether_core::words::random::RandomStream;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::HostClock;

use crate::chaos::FaultMix;
use crate::site::BEGIN;

/// Most by which the system clock of a server is ahead or behind at first, in milliseconds: within what NTP leaves.
const APART_MS: u64 = 200;

/// Most by which the clock of a machine goes faster or slower, in parts in a million.
const DRIFT_PPM: u64 = 200;

/// The clocks of the machine of a server or, by its name, of an agent.
pub(crate) fn host_clock(seed: u64, mix: FaultMix, (kind, number): (&str, usize)) -> HostClock {
    if mix != FaultMix::Clocks {
        return HostClock::new(BEGIN, 0);
    }
    let mut chance = RandomStream::for_one(seed, kind, u64::try_from(number).unwrap_or_default());
    let mut around_zero = |most: u64| {
        let drawn = i64::try_from(chance.below(2 * most + 1)).unwrap_or_default();
        drawn.saturating_sub(i64::try_from(most).unwrap_or_default())
    };
    let at = BEGIN.as_millis().saturating_add_signed(around_zero(APART_MS));
    HostClock::new(Timestamp::from_millis(at), around_zero(DRIFT_PPM))
}
