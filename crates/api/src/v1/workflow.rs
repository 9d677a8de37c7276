//! Workflows: tasks, stages and workflows in requests, answers and stored records.

mod stored;
mod task;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::stored::StoredDefinition;
pub use self::task::{Script, TaskFile, TaskRetry, TaskSpec, TaskStep};

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Task {
    /// Name of the task.
    pub name: String,
    /// What it does.
    pub spec: TaskSpec,
    /// SHA-256 of the content in canonical form, in lower-case hex: the same content has the same digest under every name.
    pub digest: String,
    /// Labels given to it by `apply`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The stages that name it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
}

/// Request to create a stage, or to replace one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// What it is for, at most 1,024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Names of its tasks, in the order in which they run, at most 64. A task need not exist until a run starts.
    pub tasks: Vec<String>,
    /// Live profiles that its tasks read besides those of the node, the one that takes precedence first, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Stage {
    /// Name of the stage.
    pub name: String,
    /// What it consists of.
    pub spec: StageSpec,
    /// SHA-256 of the content in canonical form, in lower-case hex: the same content has the same digest under every name.
    pub digest: String,
    /// Labels given to it by `apply`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The workflows that name it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
    /// What it names and does not exist, as `task/NAME` and `profile/NAME`: no run starts without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// Request to create a workflow, or to replace one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowSpec {
    /// What it is for, at most 1,024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Names of its stages, in the order in which they run, at most 64. A stage need not exist until a run starts.
    pub stages: Vec<String>,
    /// Name of the workflow that undoes it, on the nodes that began a task of it. It need not exist until a run starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<String>,
}

/// A workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Workflow {
    /// Name of the workflow.
    pub name: String,
    /// What it consists of.
    pub spec: WorkflowSpec,
    /// SHA-256 of the content in canonical form, in lower-case hex: the same content has the same digest under every name.
    pub digest: String,
    /// Labels given to it by `apply`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The tasks of its stages, in the order in which they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// What it or its stages name and does not exist, as `stage/NAME`, `task/NAME` and `profile/NAME`: no run starts without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}
