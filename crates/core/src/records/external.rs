//! External targets: the last report about each, and the controllers that report them. Written only when a
//! controller's report is absorbed, and by the decider that marks stale targets silent.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;

use crate::words::counter::AssignmentNumber;
use crate::words::name::Actor;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Most targets in one report.
pub const MAX_REPORTED: usize = 10_000;

/// Most groups of one entity; each group has one controller.
pub const MAX_GROUPS: usize = 1_000;

/// Longest stored error, in characters: one readable line.
pub const MAX_ERROR: usize = 200;

/// The last report about one external target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExternalTarget {
    /// The version it runs, if known.
    pub running: Option<Version>,
    /// The reported error, in one line; `None` while it is healthy.
    pub error: Option<Arc<str>>,
    /// The assignment that the report answers; zero if it was never assigned a version.
    pub answering: AssignmentNumber,
    /// Time of the first report that answers that assignment, by the server's clock.
    pub answered_at: Timestamp,
    /// Number of the assignment that was last sent to its controller.
    pub assigned: AssignmentNumber,
    /// Start of the present time without error and without silence on `running`, by the server's clock.
    pub healthy_since: Option<Timestamp>,
    /// Time of the last report, by the server's clock, accurate to a quarter of
    /// [`StalenessLimits::unreachable_after`].
    pub reported_at: Timestamp,
    /// Whether the last report is older than [`StalenessLimits::unreachable_after`].
    pub silent: bool,
    /// Time since which its controller has had the last assignment and reported without a long gap, or, of a silent one,
    /// time at which it was found silent; by the server's clock.
    pub contact_since: Timestamp,
}

/// How old the last report about an external target may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StalenessLimits {
    /// Age of the last report from which a target is unreachable.
    pub unreachable_after: Span,
    /// Age of the last report from which a target is removed. Longer than `unreachable_after`.
    pub remove_after: Span,
}

/// The controllers of an entity, by group; targets without a group are in the group "".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Controllers(pub BTreeMap<String, Controller>);

/// The controller that reports the targets of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// Name the controller gives itself, or else the name of its token.
    pub name: Actor,
    /// Time of its last report, by the server's clock, accurate to a quarter of
    /// [`StalenessLimits::unreachable_after`].
    pub reported_at: Timestamp,
}

impl StalenessLimits {
    /// Smallest permitted limit: report times are not stored more precisely.
    pub const SHORTEST: Span = Span::from_secs(1);

    /// Largest permitted limit: what was not reported for a year is of no use to anyone.
    pub const LONGEST: Span = Span::from_secs(365 * 86_400);

    /// Checks that both limits are in range and in order.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub fn check(self) -> Result<Self, (&'static str, String)> {
        if self.unreachable_after < Self::SHORTEST {
            return Err(("unreachable_after", alloc::format!("must be at least {}", Self::SHORTEST)));
        }
        if self.remove_after > Self::LONGEST {
            return Err(("remove_after", alloc::format!("must be at most {}", Self::LONGEST)));
        }
        if self.remove_after <= self.unreachable_after {
            let reason =
                alloc::format!("must be over unreachable_after, which is {}", self.unreachable_after);
            return Err(("remove_after", reason));
        }
        Ok(self)
    }

    /// Longest time between two stored reports that counts as contact: time in a longer gap counts towards no deadline.
    #[must_use]
    pub const fn longest_gap(self) -> Span {
        Span::from_millis(self.unreachable_after.as_millis() / 2)
    }

    /// How long a target is silent before it is removed.
    #[must_use]
    pub const fn removed_after_silence(self) -> Span {
        Span::from_millis(self.remove_after.as_millis() - self.unreachable_after.as_millis())
    }

    /// Precision of stored report times: a report without news is not written while the stored one is younger
    /// than this.
    #[must_use]
    pub const fn grain(self) -> Span {
        Span::from_millis(self.unreachable_after.as_millis() / 4)
    }
}

impl Default for StalenessLimits {
    /// Silent after 5 minutes, removed after an hour.
    fn default() -> Self {
        Self { unreachable_after: Span::from_secs(300), remove_after: Span::from_secs(3_600) }
    }
}

impl ExternalTarget {
    /// The target once nobody reported it for too long, found at `now`; `None` if it was silent already and is removed.
    #[must_use]
    pub fn turned_silent(&self, now: Timestamp) -> Option<Self> {
        (!self.silent).then(|| Self { silent: true, healthy_since: None, contact_since: now, ..self.clone() })
    }
}

/// The time at which this target is next silent or removed.
pub(crate) fn due(external: &ExternalTarget, staleness: StalenessLimits) -> Timestamp {
    if external.silent {
        external.contact_since.plus(staleness.removed_after_silence())
    } else {
        external.reported_at.plus(staleness.unreachable_after)
    }
}
