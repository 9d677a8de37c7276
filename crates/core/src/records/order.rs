//! Orders: everything one node is to be, as one document with a generation. Written only by the order decider.

use alloc::collections::BTreeMap;
use alloc::string::String;

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
    pub content: Content,
}

/// What an order says, apart from its place in time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// What each entity is to be at. An entity that is not here is left alone.
    pub entities: BTreeMap<EntityName, Assignment>,
    /// Why the node must start nothing new, when a person paused it. It goes on checking and reporting.
    pub paused: Option<String>,
}

/// A version a node was told to be at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The version.
    pub version: Version,
    /// Which telling this is; reports answer it by this number.
    pub number: AssignmentNumber,
}
