//! When a lock is renewed, and when its command is stopped: always before anyone else can hold the lock.
//!
//! The server counts a lease from its decision; the client counts from before its request, and so always ends earlier.

use std::time::Duration;

use bellwether_rt::clock::Clock;
use tokio::time::Instant;

use super::message::GuardedLease;

/// Longest time that a command has to end by itself.
const LONGEST_GRACE: Duration = Duration::from_secs(10);

/// Longest pause before a renewal without an answer is repeated.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Least time between the end of a command and the end of its lease: what a busy machine may need to kill it.
const LEAST_MARGIN: Duration = Duration::from_millis(200);

/// Time that a command has to end by itself when the lock is lost already.
pub(super) const LAST_GRACE: Duration = Duration::from_secs(1);

/// A moment by two clocks: renewals are timed by the one that timers follow, the end of a lease by the one that goes on while the
/// machine is suspended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    /// Time since boot. On a machine that does not say it, no command may run.
    since_boot_ms: u64,
}

impl Moment {
    pub(super) fn now() -> Self {
        let since_boot_ms = Clock::system().since_boot().map_or(0, |boot| boot.as_millis());
        Self { instant: Instant::now(), since_boot_ms }
    }

    /// Time since this moment, in suspend too.
    pub(super) fn elapsed(self) -> Duration {
        Duration::from_millis(Self::now().since_boot_ms.saturating_sub(self.since_boot_ms))
    }
}

/// The times of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timing {
    /// From one request for the lease to the next.
    pub(super) renew: Duration,
    /// From a renewal without an answer to its repetition.
    pub(super) again: Duration,
    /// From the request of the granted lease to asking the command to end.
    pub(super) stop: Duration,
    /// From the request of the granted lease to killing the command.
    pub(super) kill: Duration,
}

impl Timing {
    /// The times of a lease: renewal after a third; the last quarter, at most ten seconds, for the command to end; a fifth of
    /// that, at least 200 ms, as a margin.
    pub(super) fn of(lease: Duration) -> Self {
        let grace = (lease / 4).min(LONGEST_GRACE);
        Self {
            renew: lease / 3,
            again: (lease / 10).min(LONGEST_PAUSE),
            stop: lease - grace,
            kill: lease - (grace / 5).max(LEAST_MARGIN),
        }
    }

    /// The times by which a guard ends the command of a lease that was requested at this moment.
    pub(super) fn guarded(&self, asked: Moment) -> GuardedLease {
        let after = |time: Duration| {
            asked.since_boot_ms.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        };
        GuardedLease { end_ms: after(self.stop), kill_ms: after(self.kill) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_stopped_before_its_lease_ends_and_not_before_renewals_failed_more_than_once() {
        for millis in [1_000, 2_000, 5_000, 30_000, 3_600_000, 30 * 86_400_000] {
            let lease = Duration::from_millis(millis);
            let Timing { renew, again, stop, kill } = Timing::of(lease);
            assert!(renew + again * 3 < stop, "{lease:?}: there is time to try again");
            assert!(stop < kill && kill < lease, "{lease:?}: it ends by itself, or is ended, in time");
        }
    }
}
