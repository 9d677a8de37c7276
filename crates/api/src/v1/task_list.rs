//! Task lists of runs on nodes: what a node runs, changes of it, and the stored record.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::task_list as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::{JobState, ReportedJob};
use super::run::{JobInputs, RunTask};
use crate::shape::{ShapeError, read};

/// The tasks of a run on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskList {
    /// Name of the run.
    pub run: String,
    /// Name of the node.
    pub node: String,
    /// The tasks, in the order in which the node runs them.
    pub tasks: Vec<ListedTask>,
    /// Number of tasks that the node executes or has executed: the first ones. Those behind them can be changed.
    pub begun: u32,
    /// Whether it differs from the tasks of the run.
    pub changed: bool,
}

/// A task of a task list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ListedTask {
    /// Name of the stage.
    pub stage: String,
    /// Name of the task.
    pub task: String,
    /// SHA-256 of the task's content.
    pub digest: String,
    /// What became of its job; absent if the node has not begun it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<JobState>,
}

/// Request to change the task list of a run on one node: to add tasks or to remove some, not both. A request that says what the list
/// is already changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskListEdit {
    /// Tasks to add, one after the other, as `TASK` or `STAGE/TASK`; without a stage, each is of the stage of the task before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// With `add`: number of tasks that stay before them, counted from the first one that the node has not begun. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u32>,
    /// Tasks to remove, in the order in which they are in the list, as `TASK` or `STAGE/TASK`. One is removed for each name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Reason for the change, recorded in the events.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What a node does next in a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NextJob {
    /// The inputs of the task that was asked for; absent behind the last task, whereupon the list does not change any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobInputs>,
    /// The jobs of the tasks that are complete as another ledger of the node had them, with their outputs; empty if the run began with this
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complete: Vec<ReportedJob>,
}

/// Stored record of the task list of a run on a node where people changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTaskList {
    /// Name of the run.
    pub run: String,
    /// Name of the node.
    pub node: String,
    /// Its tasks, in the order in which the node runs them.
    pub tasks: Vec<RunTask>,
    /// The content of the tasks that the run does not have, by digest.
    pub contents: BTreeMap<String, Value>,
    /// Who changed it last.
    pub by: String,
    /// Time of the last change, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl TryFrom<&core::TaskList> for StoredTaskList {
    type Error = ShapeError;
    fn try_from(from: &core::TaskList) -> Result<Self, ShapeError> {
        Ok(Self {
            run: from.run.to_string(),
            node: from.node.to_string(),
            tasks: from.tasks.iter().map(RunTask::from).collect(),
            contents: serde_json::from_str(&from.contents)
                .map_err(|error| ShapeError::at("contents", error))?,
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        })
    }
}

impl TryFrom<StoredTaskList> for core::TaskList {
    type Error = ShapeError;
    fn try_from(from: StoredTaskList) -> Result<Self, ShapeError> {
        let tasks = from.tasks.into_iter().map(TryInto::try_into);
        Ok(Self {
            run: read("run", &from.run)?,
            node: read("node", &from.node)?,
            tasks: tasks.collect::<Result<_, ShapeError>>().map_err(|error| error.within("tasks"))?,
            contents: serde_json::to_string(&from.contents)
                .map_err(|error| ShapeError::at("contents", error))?,
            annotation: Annotation {
                by: read("by", &from.by)?,
                reason: from.reason,
                at: Timestamp::from_millis(from.at_ms),
            },
        })
    }
}
