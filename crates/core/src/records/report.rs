//! Reports: everything one node says it saw. Written only by the node's own agent, through absorption.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;

use super::status::Status;
use crate::records::evidence::Evidence;
use crate::words::counter::{AssignmentNumber, Generation};
use crate::words::name::{Category, EntityName, NodeName, ServiceName};
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// Most entities in one report.
pub const MAX_ENTITIES: usize = 256;

/// Most services that one entity, or one instance of a service, waits for.
pub const MAX_LACKS: usize = 64;

/// Everything one node says it saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whose.
    pub node: NodeName,
    /// When it arrived, by the server's clock.
    pub received_at: Timestamp,
    /// The agent's version.
    pub agent_version: String,
    /// The order it had taken in.
    pub generation: Generation,
    /// By entity: those it has a recipe for, or was told about.
    pub entities: BTreeMap<EntityName, EntityReport>,
    /// One state per category.
    pub statuses: BTreeMap<Category, Status>,
}

/// What a node says of one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityReport {
    /// The last version that validation passed on.
    pub running: Option<Version>,
    /// The assignment this answers; zero for none.
    pub answering: AssignmentNumber,
    /// What it is doing about it.
    pub activity: TargetActivity,
    /// Its health.
    pub health: TargetHealth,
    /// Since when it is healthy without a break, by the server's clock.
    pub healthy_since: Option<Timestamp>,
    /// Services that it waits for before it goes on.
    pub lacks: BTreeSet<ServiceName>,
}

impl Report {
    /// When the next of its statuses falls silent.
    #[must_use]
    pub fn next_silence(&self) -> Option<Timestamp> {
        self.statuses.values().filter_map(Status::ends).min()
    }
}

/// What a target is doing about its assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetActivity {
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
pub enum TargetHealth {
    /// It has none: it is healthy when it runs its version and reports no error.
    NoChecks,
    /// None fails. Checks that have not answered yet are this, with [`Observation::healthy_since`] still `None`.
    Healthy,
    /// At least one fails.
    Failing {
        /// Which, and how.
        evidence: Arc<Evidence>,
    },
}
