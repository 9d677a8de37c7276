//! The task list of a run on one node, once people changed it there: in place of that of the run. Written only by operations, and
//! removed with the run.

mod edit;

use alloc::string::String;
use alloc::vec::Vec;

pub use self::edit::{ListEdit, ListRefusal, edited};
use crate::records::annotation::Annotation;
use crate::records::run::RunTask;
use crate::words::name::{EntityName, NodeName};

/// The task list of a run on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskList {
    /// The run.
    pub run: EntityName,
    /// The node.
    pub node: NodeName,
    /// The tasks, in the order in which the node runs them; at most [`super::run::MAX_TASKS`].
    pub tasks: Vec<RunTask>,
    /// The content of the tasks that the run does not have, by digest: a JSON object of JSON objects as text, at most
    /// [`super::run::MAX_RUN_BYTES`].
    pub contents: String,
    /// Who changed it last, when and why.
    pub annotation: Annotation,
}
