//! External targets: what a controller last reported of each, and which controllers report. Written only by what controllers
//! report, through absorption, and by the decider that notices their silence.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;

use crate::words::counter::AssignmentNumber;
use crate::words::name::Actor;
use crate::words::time::{Span, Timestamp};
use crate::words::version::Version;

/// Most targets in one report.
pub const MAX_REPORTED: usize = 1_000;

/// Most groups of one entity, each with a controller.
pub const MAX_GROUPS: usize = 1_000;

/// Longest error that is kept, in characters: one readable line.
pub const MAX_ERROR: usize = 200;

/// What was last reported of one external target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExternalTarget {
    /// The version it runs, if one is known.
    pub running: Option<Version>,
    /// What is wrong with it, in one line; `None` when it runs well.
    pub error: Option<Arc<str>>,
    /// The assignment that the report answers; zero when it was never told anything.
    pub answering: AssignmentNumber,
    /// Number of the assignment that its controller was last given.
    pub told: AssignmentNumber,
    /// Since when it runs `running` without an error and without a silence, by the server's clock.
    pub well_since: Option<Timestamp>,
    /// When it was last reported, by the server's clock, give or take a quarter of [`StalenessLimits::silent_after`].
    pub reported_at: Timestamp,
    /// Whether it was silent for longer than [`StalenessLimits::silent_after`].
    pub silent: bool,
}

/// How long external targets may go unreported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StalenessLimits {
    /// Not reported for so long is unreachable.
    pub silent_after: Span,
    /// Not reported for so long is no target any more. Longer than `silent_after`.
    pub let_go_after: Span,
}

/// Who reports an entity's targets, by group; targets outside of any group are of the group "".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Controllers(pub BTreeMap<String, Controller>);

/// Who reports the targets of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// Its name: what it calls itself, or its token's.
    pub name: Actor,
    /// When it last reported, by the server's clock, give or take a quarter of [`StalenessLimits::silent_after`].
    pub reported_at: Timestamp,
}

impl StalenessLimits {
    /// The shortest silence that can be meant: reports are not kept more finely.
    pub const SHORTEST: Span = Span::from_secs(1);

    /// Whether the times make sense.
    ///
    /// # Errors
    /// The field and what is wrong with it.
    pub fn check(self) -> Result<Self, (&'static str, String)> {
        if self.silent_after < Self::SHORTEST {
            return Err(("unreachable_after", alloc::format!("it is shorter than {}", Self::SHORTEST)));
        }
        if self.let_go_after <= self.silent_after {
            let reason =
                alloc::format!("it is not longer than unreachable_after, which is {}", self.silent_after);
            return Err(("remove_after", reason));
        }
        Ok(self)
    }

    /// What is younger than this counts as now: a report that says nothing new is not written.
    #[must_use]
    pub const fn grain(self) -> Span {
        Span::from_millis(self.silent_after.as_millis() / 4)
    }
}

impl Default for StalenessLimits {
    /// Silent after 5 minutes, removed after an hour.
    fn default() -> Self {
        Self { silent_after: Span::from_secs(300), let_go_after: Span::from_secs(3_600) }
    }
}

/// When something is next to be done about a target.
pub(crate) fn due(external: &ExternalTarget, staleness: StalenessLimits) -> Timestamp {
    external.reported_at.plus(if external.silent { staleness.let_go_after } else { staleness.silent_after })
}
