//! Runs of workflows: requests, answers and stored records.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::run as core;
use bellwether_core::words::feature::Feature;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::policy::Policy;
use super::profile::Params;
use super::rollout::RolloutState;
use super::workflow::TaskSpec;
use crate::shape::{ShapeError, object, read};

/// Request to run a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// Name of the workflow.
    #[schema(example = "new-shop")]
    pub workflow: String,
    /// Filter of the nodes that run it, evaluated now, such as `role=web`; `all` for every node of the namespace.
    #[schema(example = "role=web")]
    pub on: String,
    /// Task at which it begins, as `STAGE/TASK`: those before it are no part of the run. Default: the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Policy of the run; absent fields take their defaults. A failure pauses the run, a target has a day.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Reason for the run, recorded in its history.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What becomes of the runs that are in progress on its nodes. Default: it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<BusyNodes>,
    /// Whether to answer only what would run, and where.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What becomes of the runs that are in progress on the nodes of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BusyNodes {
    /// They are ended on these nodes, with the job that runs there, and the new one begins at once.
    Switch,
    /// They go on, and each node begins the new one after them.
    Queue,
}

/// Request to undo a run: its workflow's rollback runs on the nodes that began a task of it. A run in progress is aborted first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoRun {
    /// Policy of the run that undoes it; absent fields take their defaults, and `batch` is that of the run for rollbacks.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Reason, recorded in its history.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What becomes of the runs that are in progress on its nodes. Default: it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<BusyNodes>,
    /// Whether to answer only what would run, and where.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// A run of a workflow. It is carried out as rollout 1 of the entity of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Run {
    /// Name of the run, and of its entity.
    pub name: String,
    /// Name of the workflow.
    pub workflow: String,
    /// SHA-256 of the workflow's content when the run was started.
    pub digest: String,
    /// Its tasks, in the order in which a node runs them.
    pub tasks: Vec<RunTask>,
    /// Number of nodes that were chosen.
    pub nodes: u64,
    /// State of its rollout.
    pub state: RolloutState,
    /// Number of nodes on which every task is complete.
    pub succeeded: u64,
    /// Number of nodes on which a task failed.
    pub failed: u64,
    /// Name of the workflow that undoes it, as that was when it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<String>,
    /// Name of the run that it undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// Name of the run that undoes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
    /// State of that run; absent if it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_state: Option<RolloutState>,
    /// Whether it was to be undone, and no node had begun a task of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_to_undo: bool,
    /// What keeps nodes from beginning it, when it is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Name of the token that started it.
    pub by: String,
    /// Time of the start, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunTask {
    /// Name of the stage.
    pub stage: String,
    /// Name of the task.
    pub task: String,
    /// SHA-256 of the task's content when the run was started.
    pub digest: String,
    /// Profiles of the stage, the one that takes precedence first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// Whether it may run again when nobody knows how far it came.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
}

/// What a node needs to run one task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobInputs {
    /// Name of the run.
    pub run: String,
    /// Name of the workflow.
    pub workflow: String,
    /// Number of tasks of the run.
    pub tasks: u32,
    /// Index of the task, from 0.
    pub index: u32,
    /// The task.
    pub task: RunTask,
    /// What it does.
    pub spec: TaskSpec,
    /// The params of the node for this task.
    #[schema(value_type = Object)]
    pub params: Params,
}

/// Stored record of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRun {
    /// Name of the run, and of its entity.
    pub name: String,
    /// Name of the workflow.
    pub workflow: String,
    /// SHA-256 of the workflow's content when the run was started.
    pub digest: String,
    /// Its tasks, in the order in which a node runs them.
    pub tasks: Vec<RunTask>,
    /// The content of each task, by its digest.
    pub contents: BTreeMap<String, Value>,
    /// Features that an agent needs for its tasks, besides those that every run needs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub features: BTreeSet<String>,
    /// What undoes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<StoredRunPlan>,
    /// The run that it undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// How far it is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<StoredUndo>,
    /// Name of the token that started it.
    pub by: String,
    /// Time of the start, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Stored plan of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRunPlan {
    /// Name of the workflow.
    pub workflow: String,
    /// SHA-256 of the workflow's content.
    pub digest: String,
    /// Its tasks, in the order in which a node runs them.
    pub tasks: Vec<RunTask>,
    /// The content of each task, by its digest.
    pub contents: BTreeMap<String, Value>,
    /// Features that an agent needs for its tasks.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub features: BTreeSet<String>,
}

/// How far a run is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredUndo {
    /// No node begins it any more.
    Closed,
    /// No node had begun it.
    Nothing,
    /// The run that undoes it.
    By(String),
}

impl From<&core::RunTask> for RunTask {
    fn from(from: &core::RunTask) -> Self {
        Self {
            stage: from.stage.to_string(),
            task: from.task.to_string(),
            digest: from.digest.clone(),
            profiles: from.profiles.iter().map(ToString::to_string).collect(),
            idempotent: from.idempotent,
        }
    }
}

impl TryFrom<RunTask> for core::RunTask {
    type Error = ShapeError;
    fn try_from(from: RunTask) -> Result<Self, ShapeError> {
        Ok(Self {
            stage: read("stage", &from.stage)?,
            task: read("task", &from.task)?,
            digest: from.digest,
            profiles: from.profiles.iter().map(|name| read("profiles", name)).collect::<Result<_, _>>()?,
            idempotent: from.idempotent,
        })
    }
}

impl TryFrom<&core::Run> for StoredRun {
    type Error = ShapeError;
    fn try_from(from: &core::Run) -> Result<Self, ShapeError> {
        Ok(Self {
            name: from.name.to_string(),
            workflow: from.workflow.to_string(),
            digest: from.digest.clone(),
            tasks: from.tasks.iter().map(RunTask::from).collect(),
            contents: contents_out(&from.contents)?,
            features: from.features.iter().map(ToString::to_string).collect(),
            rollback: from.rollback.as_deref().map(TryInto::try_into).transpose()?,
            undoes: from.undoes.as_ref().map(ToString::to_string),
            undo: from.undo.as_ref().map(StoredUndo::from),
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        })
    }
}

impl TryFrom<StoredRun> for core::Run {
    type Error = ShapeError;
    fn try_from(from: StoredRun) -> Result<Self, ShapeError> {
        let rollback: Option<core::RunPlan> = from.rollback.map(TryInto::try_into).transpose()?;
        Ok(Self {
            name: read("name", &from.name)?,
            workflow: read("workflow", &from.workflow)?,
            digest: from.digest,
            tasks: tasks_in(from.tasks)?,
            contents: contents_in(&from.contents)?,
            features: features_in(&from.features)?,
            rollback: rollback.map(Box::new),
            undoes: from.undoes.map(|name| read("undoes", &name)).transpose()?,
            undo: from.undo.map(TryInto::try_into).transpose()?,
            annotation: Annotation {
                by: read("by", &from.by)?,
                reason: from.reason,
                at: Timestamp::from_millis(from.at_ms),
            },
        })
    }
}

impl TryFrom<&core::RunPlan> for StoredRunPlan {
    type Error = ShapeError;
    fn try_from(from: &core::RunPlan) -> Result<Self, ShapeError> {
        Ok(Self {
            workflow: from.workflow.to_string(),
            digest: from.digest.clone(),
            tasks: from.tasks.iter().map(RunTask::from).collect(),
            contents: contents_out(&from.contents)?,
            features: from.features.iter().map(ToString::to_string).collect(),
        })
    }
}

impl TryFrom<StoredRunPlan> for core::RunPlan {
    type Error = ShapeError;
    fn try_from(from: StoredRunPlan) -> Result<Self, ShapeError> {
        Ok(Self {
            workflow: read("workflow", &from.workflow)?,
            digest: from.digest,
            tasks: tasks_in(from.tasks)?,
            contents: contents_in(&from.contents)?,
            features: features_in(&from.features)?,
        })
    }
}

impl From<&core::UndoState> for StoredUndo {
    fn from(from: &core::UndoState) -> Self {
        match from {
            core::UndoState::Closed => Self::Closed,
            core::UndoState::Nothing => Self::Nothing,
            core::UndoState::By(run) => Self::By(run.to_string()),
        }
    }
}

impl TryFrom<StoredUndo> for core::UndoState {
    type Error = ShapeError;
    fn try_from(from: StoredUndo) -> Result<Self, ShapeError> {
        Ok(match from {
            StoredUndo::Closed => Self::Closed,
            StoredUndo::Nothing => Self::Nothing,
            StoredUndo::By(run) => Self::By(read("undo", &run)?),
        })
    }
}

fn tasks_in(tasks: Vec<RunTask>) -> Result<Vec<core::RunTask>, ShapeError> {
    let tasks = tasks.into_iter().map(TryInto::try_into);
    tasks.collect::<Result<_, ShapeError>>().map_err(|error| error.within("tasks"))
}

fn contents_in(contents: &BTreeMap<String, Value>) -> Result<String, ShapeError> {
    serde_json::to_string(contents).map_err(|error| ShapeError::at("contents", error))
}

fn contents_out(text: &str) -> Result<BTreeMap<String, Value>, ShapeError> {
    serde_json::from_str(text).map_err(|error| ShapeError::at("contents", error))
}

/// A run that needs a feature of another build is not taken for one that needs none.
fn features_in(names: &BTreeSet<String>) -> Result<BTreeSet<Feature>, ShapeError> {
    let known = |name: &String| {
        Feature::named(name).ok_or_else(|| ShapeError::at("features", format!("{name:?} is not known")))
    };
    names.iter().map(known).collect()
}
