//! Runs of workflows. Written only by operations, and removed by the leader after their retention.
//!
//! A run is carried out as the rollout of an entity of the same name, over the nodes that were chosen at its start. This
//! record has what the nodes do: the content that the workflow, its stages and its tasks had then.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::records::annotation::Annotation;
use crate::words::counter::Sequence;
use crate::words::feature::Feature;
use crate::words::name::{EntityName, ProfileName, StageName, TaskName, WorkflowName};
use crate::words::version::Version;

/// Most tasks of a run.
pub const MAX_TASKS: usize = 256;

/// Most nodes of a run.
pub const MAX_NODES: usize = 20_000;

/// Longest content of all tasks of a run and of what undoes it, as JSON, in bytes.
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
    /// What undoes it, as that was when the run was started; `None` if its workflow names no other for that.
    pub rollback: Option<Box<RunPlan>>,
    /// The run that it undoes; `None` if it undoes none.
    pub undoes: Option<EntityName>,
    /// How far it is undone; `None` if it is not.
    pub undo: Option<UndoState>,
    /// Who started it, when and why.
    pub annotation: Annotation,
}

/// How far a run is undone. From the first of these on, no node begins a task of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoState {
    /// It is known which nodes began it. What undoes it is started next.
    Closed,
    /// No node had begun a task of it.
    Nothing,
    /// This run undoes it.
    By(EntityName),
}

/// What a run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPlan {
    /// The workflow.
    pub workflow: WorkflowName,
    /// The SHA-256 of the workflow's content, in lower-case hex.
    pub digest: String,
    /// The tasks, in the order in which a node runs them; at most [`MAX_TASKS`].
    pub tasks: Vec<RunTask>,
    /// The content of each task by its digest, as in a [`Run`].
    pub contents: String,
    /// Features that an agent needs for its tasks, besides those that every run needs.
    pub features: BTreeSet<Feature>,
}

impl Run {
    /// A run that does this, under a name that no other has: `number` is one that no event had before.
    ///
    /// # Errors
    /// [`NameTooLong`].
    pub fn new(plan: RunPlan, number: Sequence, annotation: Annotation) -> Result<Self, NameTooLong> {
        let RunPlan { workflow, digest, tasks, contents, features } = plan;
        let name = EntityName::parse(&format!("{workflow}-{number}"));
        let Ok(name) = name else { return Err(NameTooLong { workflow }) };
        let (rollback, undoes, undo) = (None, None, None);
        Ok(Self { name, workflow, digest, tasks, contents, features, rollback, undoes, undo, annotation })
    }

    /// The number at the end of its name: later runs have larger ones.
    #[must_use]
    pub fn number(&self) -> u64 {
        let digits = self.name.as_str().rsplit('-').next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
    }

    /// The version that it is: its workflow's name and the number at the end of its own.
    ///
    /// # Errors
    /// [`NameTooLong`].
    pub fn version(&self) -> Result<Version, NameTooLong> {
        let version = Version::numbered(self.workflow.as_str(), self.number());
        version.ok_or_else(|| NameTooLong { workflow: self.workflow.clone() })
    }
}

/// A workflow whose name is too long for the names of its runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("run workflow {workflow}: its name is too long for a run")]
pub struct NameTooLong {
    /// The workflow.
    pub workflow: WorkflowName,
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
