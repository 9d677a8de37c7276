//! A sighting: all that the engine sees of one target, whoever reported it. Owns the derived phase of a target; never
//! stored.

use alloc::string::String;
use alloc::sync::Arc;

use crate::records::evidence::Evidence;
pub use crate::records::node::Contact;
use crate::records::target::{Outcome, TargetState};
use crate::words::counter::AssignmentNumber;
use crate::words::label::Labels;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// All that the engine sees of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The version it runs, once it has made sure of it.
    pub running: Option<Version>,
    /// The assignment that the report answers; zero when it was never told anything.
    pub answering: AssignmentNumber,
    /// What it is doing about that assignment.
    pub doing: Doing,
    /// What its checks say.
    pub health: Health,
    /// Since when it runs `running` and is healthy without a break, by the server's clock; without checks, since when it
    /// runs it. `None` while that is not known or not so.
    pub healthy_since: Option<Timestamp>,
    /// When the report came in, by the server's clock.
    pub reported_at: Timestamp,
    /// Whether it is heard from.
    pub contact: Contact,
    /// An operator's pause or cordon on the target, with its reason.
    pub held: Option<Arc<str>>,
    /// What selectors see of it besides its name.
    pub labels: Labels,
    /// What the monitoring hook last said of it, if there is one.
    pub word: Option<Word>,
}

/// What the monitoring hook said of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The assignment it judges; words on older ones do not count.
    pub assignment: AssignmentNumber,
    /// Whether the target does well.
    pub well: bool,
    /// One line: why, as the hook put it; may be empty.
    pub reason: Arc<str>,
}

/// What a target is doing about its assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doing {
    /// Nothing, or nothing more.
    Nothing,
    /// Moving to the version.
    Applying {
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// Not able to begin yet.
    Waiting {
        /// One line: what for.
        reason: Arc<str>,
    },
    /// It could not.
    Failed {
        /// How many attempts failed, from 1.
        attempts: u32,
        /// What the last one looked like.
        evidence: Arc<Evidence>,
    },
}

/// What a target's checks say, past their hysteresis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It has none: it is healthy when it runs its version and reports no error.
    NoChecks,
    /// None fails. Checks that have not answered yet are this, with [`Sighting::healthy_since`] still `None`.
    Healthy,
    /// At least one fails.
    Failing {
        /// Which, and how.
        evidence: Arc<Evidence>,
    },
}

/// Where a target is in its life, for people; derived, never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It was told nothing.
    Idle,
    /// It was told a version and has not answered yet.
    Assigned,
    /// It moves to the version.
    Applying {
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// It runs the version and is healthy, not long enough yet.
    Soaking {
        /// Since when, by the server's clock.
        since: Timestamp,
    },
    /// It runs the version and is not healthy yet.
    Settling,
    /// It cannot go on by itself.
    Blocked {
        /// One line: what for.
        reason: String,
    },
    /// It is on the version.
    Succeeded,
    /// It is not, and will not try again by itself.
    Failed,
    /// Nothing was heard from it in time.
    Unreachable,
}

/// Where a target is in its life.
#[must_use]
pub fn phase(sighting: Option<&Sighting>, state: Option<&TargetState>) -> Phase {
    let Some(state) = state else { return Phase::Idle };
    match &state.outcome {
        Outcome::Succeeded { .. } => return Phase::Succeeded,
        Outcome::Failed { .. } => return Phase::Failed,
        Outcome::Unreachable { .. } => return Phase::Unreachable,
        Outcome::InFlight => {}
    }
    let Some(sighting) = sighting else { return Phase::Assigned };
    if let Some(reason) = &sighting.held {
        return Phase::Blocked { reason: alloc::format!("held: {reason}") };
    }
    if sighting.answering != state.assignment {
        return Phase::Assigned;
    }
    match &sighting.doing {
        Doing::Applying { attempt } => Phase::Applying { attempt: *attempt },
        Doing::Waiting { reason } => Phase::Blocked { reason: String::from(&**reason) },
        Doing::Failed { attempts, .. } => Phase::Applying { attempt: attempts.saturating_add(1) },
        Doing::Nothing if sighting.running.as_ref() != Some(&state.version) => Phase::Assigned,
        Doing::Nothing => match (&sighting.health, sighting.healthy_since) {
            (Health::NoChecks | Health::Healthy, Some(since)) => {
                Phase::Soaking { since: since.max(state.assigned_at) }
            }
            (Health::NoChecks | Health::Healthy, None) | (Health::Failing { .. }, _) => Phase::Settling,
        },
    }
}
