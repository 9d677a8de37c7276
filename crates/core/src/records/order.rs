//! Orders: everything one node is to be, as one document with a generation. Written only by the order decider.

use alloc::collections::BTreeMap;
use alloc::string::String;

use super::entity::EntityKind;
use super::target::{AssignmentOutcome, AssignmentPurpose, TargetState};
use crate::words::counter::{AssignmentNumber, Generation, Term};
use crate::words::name::EntityName;
use crate::words::version::Version;

/// Everything one node is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Grows with every change of the content; an agent refuses an older one.
    pub generation: Generation,
    /// The leadership that wrote it; an agent refuses an older one.
    pub term: Term,
    /// What it says.
    pub content: OrderContent,
}

/// What an order says, apart from its place in time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrderContent {
    /// What each entity is to be at. An entity that is not here is left alone.
    pub entities: BTreeMap<EntityName, Assignment>,
    /// Why the node must start nothing new, when a person paused it. It goes on checking and reporting.
    pub paused: Option<String>,
}

/// A version a node was told to be at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The version to run.
    pub version: Version,
    /// Which telling this is; reports answer it by this number.
    pub number: AssignmentNumber,
    /// By which means.
    pub means: ApplyMethod,
}

/// By which means a node gets to a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApplyMethod {
    /// Its own apply for the entity.
    #[default]
    Apply,
    /// Rendering the files of the entity from the profile's revision.
    Render,
    /// Running the action once: it is the node's turn.
    Run,
    /// None: the action ran elsewhere, before the node's time; it is only reported.
    Acknowledge,
}

impl ApplyMethod {
    /// The means of a target of an entity of this kind. A run that succeeded is not a turn any more: a machine that
    /// forgot everything does not run it once more.
    #[must_use]
    pub const fn of(kind: &EntityKind, state: &TargetState) -> Self {
        let open = match state.outcome {
            // One that failed by its deadline may not have begun: it is not to be reported as run.
            AssignmentOutcome::InFlight
            | AssignmentOutcome::Unreachable { .. }
            | AssignmentOutcome::Failed { .. } => true,
            AssignmentOutcome::Succeeded { .. } => false,
        };
        match (kind, state.purpose) {
            (EntityKind::Version, _) => Self::Apply,
            (EntityKind::Profile(_), _) => Self::Render,
            (EntityKind::Action(_), AssignmentPurpose::Update) if open => Self::Run,
            (
                EntityKind::Action(_),
                AssignmentPurpose::Update
                | AssignmentPurpose::Adopted
                | AssignmentPurpose::Rollback
                | AssignmentPurpose::KnownGood,
            ) => Self::Acknowledge,
        }
    }
}
