//! Runs of workflows. Written only by operations, and removed by the leader after their retention.
//!
//! A run is carried out as the rollout of an entity of the same name, over the nodes that were chosen at its start. This
//! record has what the nodes do: the content that the workflow, its stages and its tasks had then.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::records::annotation::Annotation;
use crate::words::feature::Feature;
use crate::words::name::{EntityName, ProfileName, StageName, TaskName, WorkflowName};

/// Most tasks of a run.
pub const MAX_TASKS: usize = 256;

/// Most nodes of a run.
pub const MAX_NODES: usize = 20_000;

/// Longest content of all tasks of a run, as JSON, in bytes.
pub const MAX_RUN_BYTES: usize = 768 << 10;

/// A run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its name, and that of its entity.
    pub name: EntityName,
    /// The workflow.
    pub workflow: WorkflowName,
    /// The SHA-256 of the workflow's content, in lower-case hex.
    pub digest: String,
    /// The tasks, in the order in which a node runs them; at most [`MAX_TASKS`].
    pub tasks: Vec<RunTask>,
    /// The content of each task by its digest: a JSON object of JSON objects as text, at most [`MAX_RUN_BYTES`].
    pub contents: String,
    /// Features that an agent needs for its tasks, besides those that every run needs: it does not begin on a node that lacks one.
    pub features: BTreeSet<Feature>,
    /// Who started it, when and why.
    pub annotation: Annotation,
}

impl RunTask {
    /// Whether a name, `TASK` or `STAGE/TASK`, is that of this task.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        match name.split_once('/') {
            Some((stage, task)) => self.stage.as_str() == stage && self.task.as_str() == task,
            None => self.task.as_str() == name,
        }
    }
}

impl fmt::Display for RunTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.stage, self.task)
    }
}

/// A task of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTask {
    /// Its stage.
    pub stage: StageName,
    /// The task.
    pub task: TaskName,
    /// The SHA-256 of its content, in lower-case hex.
    pub digest: String,
    /// Profiles of the stage, the one that takes precedence first.
    pub profiles: Vec<ProfileName>,
    /// Whether it may run again when nobody knows how far it came.
    pub idempotent: bool,
}
