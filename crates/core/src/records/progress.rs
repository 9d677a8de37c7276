//! The progress of an entity: its known good and bad versions, and what its rollout is doing. Written only by
//! the rollout decider.

use alloc::string::String;
use alloc::vec::Vec;

use crate::words::counter::{RequestNumber, RolloutNumber};
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Most bad versions remembered; the oldest is forgotten first. Enough for a month of failures, small enough
/// for one record.
pub const MAX_BAD: usize = 32;

/// Versions and rollout activity of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The requested version of the newest request that was acted on.
    pub target: Option<Version>,
    /// The version being dispatched: the new one, or last known good during a rollback.
    pub rolling: Option<Version>,
    /// The version that last met the success threshold.
    pub last_known_good: Option<Version>,
    /// The known bad versions, not retried since, oldest first, at most [`MAX_BAD`].
    pub bad: Vec<BadVersion>,
    /// Activity of the entity's rollout.
    pub activity: RolloutActivity,
    /// Number of the newest rollout; zero before the first.
    pub last: RolloutNumber,
    /// The newest request that was acted on.
    pub handled: RequestNumber,
    /// Number of the entity's `resumes` that were acted on.
    pub resumes: u64,
    /// The clock that deadlines are measured on.
    pub clock: PauseClock,
}

/// Activity of an entity's rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RolloutActivity {
    /// No rollout in progress; targets belong on last known good.
    #[default]
    Settled,
    /// No rollout in progress; targets were left as they are, after an abort.
    Abandoned,
    /// No rollout in progress; the last one continued to its end in spite of its failures. Targets, also those that join
    /// later, belong on its version.
    Continued,
    /// This rollout dispatches its version.
    RollingForward(RolloutNumber),
    /// This rollout rolls its targets back to last known good.
    RollingBack(RolloutNumber),
}

/// A known bad version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadVersion {
    /// The bad version.
    pub version: Version,
    /// Time of the judgement, by the server's clock.
    pub at: Timestamp,
    /// Number of the rollout that failed.
    pub rollout: RolloutNumber,
    /// One line: how many failed, of how many, and the first of them.
    pub reason: String,
}

/// A clock that stands still during pauses, so that a pause does not use up deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PauseClock {
    /// Total length of the pauses that are over.
    pub stopped: Span,
    /// Start of the present pause, by the server's clock; `None` while running.
    pub since: Option<Timestamp>,
    /// Reading before which no deadline begins: time in which nobody watched counts for none.
    pub floor: Timestamp,
    /// Start of the watch that set the floor, by the server's clock.
    pub watched_since: Timestamp,
}

impl Progress {
    /// Number of the rollout in progress.
    #[must_use]
    pub const fn active(&self) -> Option<RolloutNumber> {
        match self.activity {
            RolloutActivity::Settled | RolloutActivity::Abandoned | RolloutActivity::Continued => None,
            RolloutActivity::RollingForward(number) | RolloutActivity::RollingBack(number) => Some(number),
        }
    }

    /// The version that last became known bad, and was not retried since.
    #[must_use]
    pub fn last_known_bad(&self) -> Option<&BadVersion> {
        self.bad.last()
    }

    /// The record of a bad version; `None` if it is not known bad.
    #[must_use]
    pub fn bad(&self, version: &Version) -> Option<&BadVersion> {
        self.bad.iter().find(|bad| bad.version == *version)
    }
}

impl PauseClock {
    /// Reading of this clock at server time `now`.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Timestamp {
        self.since.map_or(now, |since| since.min(now)).minus(self.stopped)
    }

    /// Server time at which this clock will read `time`; `None` while it stands still.
    #[must_use]
    pub const fn when(&self, time: Timestamp) -> Option<Timestamp> {
        match self.since {
            Some(_) => None,
            None => Some(time.plus(self.stopped)),
        }
    }

    /// This clock, stopped or running from server time `now` on.
    #[must_use]
    pub fn turned(self, stand_still: bool, now: Timestamp) -> Self {
        match (self.since, stand_still) {
            (None, true) => Self { since: Some(now), ..self },
            (Some(since), false) => {
                Self { stopped: self.stopped.plus(now.since(since)), since: None, ..self }
            }
            (None, false) | (Some(_), true) => self,
        }
    }

    /// This clock once a watch began at server time `since`: deadlines start anew, for nobody knows what targets could
    /// have reported before.
    #[must_use]
    pub fn watched(self, since: Timestamp, now: Timestamp) -> Self {
        Self { floor: self.at(now), watched_since: since, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_eats_nobodys_deadline() {
        let at = Timestamp::from_millis;
        let clock = PauseClock::default().turned(true, at(100));
        assert_eq!((clock.at(at(50)), clock.at(at(900)), clock.when(at(200))), (at(50), at(100), None));
        let clock = clock.turned(false, at(1_100));
        assert_eq!(clock.at(at(1_150)), at(150));
        assert_eq!(clock.when(at(150)), Some(at(1_150)));
    }
}
