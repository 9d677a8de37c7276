//! When a lock is renewed, and by when its command must have been stopped: all before anybody else could have it.
//!
//! The server counts a lease from when it decided; whoever asked counts from before it asked, and so is always the earlier.

use std::time::Duration;

/// Most time that a command has to end by itself.
const LONGEST_GRACE: Duration = Duration::from_secs(10);

/// A renewal that was not answered is tried again after this at the latest.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Least time between the end of a command and that of its lease: what a busy machine may take to do it.
const LEAST_MARGIN: Duration = Duration::from_millis(200);

/// What a command has to end by itself when the lock is gone already.
pub(super) const LAST_GRACE: Duration = Duration::from_secs(1);

/// The times of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timing {
    /// From asking for a lease to asking for the next.
    pub(super) renew: Duration,
    /// From a renewal without an answer to the next.
    pub(super) again: Duration,
    /// From asking for a lease that was given to asking the command to end.
    pub(super) stop: Duration,
    /// From asking for a lease that was given to ending the command.
    pub(super) kill: Duration,
}

impl Timing {
    /// Of a lease: a third to renew it, then as much and more for trying again; the last quarter, or ten seconds of it, for
    /// the command to end; a fifth of that, 200 ms at least, to be sure.
    pub(super) fn of(lease: Duration) -> Self {
        let grace = (lease / 4).min(LONGEST_GRACE);
        Self {
            renew: lease / 3,
            again: (lease / 10).min(LONGEST_PAUSE),
            stop: lease - grace,
            kill: lease - (grace / 5).max(LEAST_MARGIN),
        }
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
