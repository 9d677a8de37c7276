//! Definitions of work: tasks, and the stages and workflows that are made of them. Written only by operations.
//!
//! A definition is known by the digest of its content: a run has the content that it was started with, whatever its name
//! means later.

use alloc::string::String;
use core::fmt;

use crate::records::annotation::Annotation;
use crate::words::label::Labels;
use crate::words::name::{StageName, TaskName, WorkflowName};

/// Longest content of a definition, as JSON, in bytes.
pub const MAX_CONTENT_BYTES: usize = 256 << 10;

/// A task, a stage or a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// What it is, and its name.
    pub id: DefinitionId,
    /// Its content: a JSON object as text in canonical form, at most [`MAX_CONTENT_BYTES`].
    pub content: String,
    /// The SHA-256 of the content, in lower-case hex.
    pub digest: String,
    /// Labels given to it by `apply`, for pruning by them.
    pub labels: Labels,
    /// Who changed it last, when and why.
    pub annotation: Annotation,
}

/// What is defined, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionId {
    /// Scripts and files that a node runs and writes, in order.
    Task(TaskName),
    /// Tasks in order, and the profiles that they read.
    Stage(StageName),
    /// Stages in order.
    Workflow(WorkflowName),
}

impl DefinitionId {
    /// The word for what it is.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Task(_) => "task",
            Self::Stage(_) => "stage",
            Self::Workflow(_) => "workflow",
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Task(name) => name.as_str(),
            Self::Stage(name) => name.as_str(),
            Self::Workflow(name) => name.as_str(),
        }
    }
}

impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.name())
    }
}
