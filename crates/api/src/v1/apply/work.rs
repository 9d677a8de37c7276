//! Documents of work: tasks, stages and workflows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ignored::Ignored;
use super::schema;
use crate::v1::workflow::{Stage, StageSpec, Task, TaskRetry, TaskSpec, TaskStep, Workflow, WorkflowSpec};

/// The desired state of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::task, required)]
    pub kind: Ignored,
    /// Task name, a DNS label.
    #[schema(example = "install-db")]
    pub name: String,
    /// Namespace of the task. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What it is for, at most 1,024 bytes.
    #[schema(example = "installs the database")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Condition: an expression over the variables of its templates. When it is false, the task is skipped. Default: none.
    #[schema(example = "params.role == 'db'")]
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What is done, in order: 1 to 32 scripts and files, which are templates.
    #[schema(example = json!([{"name": "install", "script": {"text": "apt-get install -y etcd-server\n"}}]))]
    pub steps: Vec<TaskStep>,
    /// Params that the task needs, each with the JSON Schema (2020-12) of its values, at most 64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object, example = json!({"db/port": {"type": "integer"}}))]
    pub params: BTreeMap<String, Map<String, Value>>,
    /// Claims that its jobs have besides those that node, run and cluster imply, at most 32: whoever writes the task must have them.
    #[schema(example = json!(["get node"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// Whether it may run again when nobody knows how far it came. Default false.
    #[schema(example = true)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// How long all its steps may take together, such as `10m`, at most `7d`. Default 1h.
    #[schema(example = "10m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How often it is begun before it has failed; once if absent. Only for a task that is idempotent.
    #[schema(example = json!({"attempts": 3}))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<TaskRetry>,
    /// Reason for the change, recorded in its event; it is not compared.
    #[schema(example = "a newer package")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

/// The desired state of a stage of workflows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StageDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::stage, required)]
    pub kind: Ignored,
    /// Stage name, a DNS label.
    #[schema(example = "database")]
    pub name: String,
    /// Namespace of the stage. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What it is for, at most 1,024 bytes.
    #[schema(example = "the database, from its packages to its first data")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Names of its tasks, in the order in which they run, 1 to 64.
    #[schema(example = json!(["install-db", "start-db"]))]
    pub tasks: Vec<String>,
    /// Live profiles that its tasks read besides those of the node, the one that takes precedence first, at most 32.
    #[schema(example = json!(["db-defaults"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// Reason for the change, recorded in its event; it is not compared.
    #[schema(example = "start it at once")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

/// The desired state of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::workflow, required)]
    pub kind: Ignored,
    /// Workflow name, a DNS label.
    #[schema(example = "new-shop")]
    pub name: String,
    /// Namespace of the workflow. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What it is for, at most 1,024 bytes.
    #[schema(example = "a machine of the shop, from nothing")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Names of its stages, in the order in which they run, 1 to 64.
    #[schema(example = json!(["database", "web"]))]
    pub stages: Vec<String>,
    /// Name of the workflow that undoes it, on the nodes that began a task of it: `run undo` starts it, and a run with `--on-failure
    /// rollback` that fails. Default: none.
    #[schema(example = "remove-shop")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<String>,
    /// Reason for the change, recorded in its event; it is not compared.
    #[schema(example = "the web server comes last")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

impl TaskDocument {
    /// The document of a task.
    #[must_use]
    pub fn of(task: Task) -> Self {
        let TaskSpec { description, condition, steps, params, claims, idempotent, timeout, retry } =
            task.spec;
        let (name, labels) = (task.name, task.labels);
        Self {
            name,
            labels,
            description,
            condition,
            steps,
            params,
            claims,
            idempotent,
            timeout,
            retry,
            ..Self::default()
        }
    }

    /// What the document sets.
    #[must_use]
    pub fn spec(&self) -> TaskSpec {
        TaskSpec {
            description: self.description.clone(),
            condition: self.condition.clone(),
            steps: self.steps.clone(),
            params: self.params.clone(),
            claims: self.claims.clone(),
            idempotent: self.idempotent,
            timeout: self.timeout.clone(),
            retry: self.retry.clone(),
        }
    }
}

impl StageDocument {
    /// The document of a stage.
    #[must_use]
    pub fn of(stage: Stage) -> Self {
        let StageSpec { description, tasks, profiles } = stage.spec;
        Self { name: stage.name, labels: stage.labels, description, tasks, profiles, ..Self::default() }
    }

    /// What the document sets.
    #[must_use]
    pub fn spec(&self) -> StageSpec {
        StageSpec {
            description: self.description.clone(),
            tasks: self.tasks.clone(),
            profiles: self.profiles.clone(),
        }
    }
}

impl WorkflowDocument {
    /// The document of a workflow.
    #[must_use]
    pub fn of(workflow: Workflow) -> Self {
        let WorkflowSpec { description, stages, rollback } = workflow.spec;
        let (name, labels) = (workflow.name, workflow.labels);
        Self { name, labels, description, stages, rollback, ..Self::default() }
    }

    /// What the document sets.
    #[must_use]
    pub fn spec(&self) -> WorkflowSpec {
        let (stages, rollback) = (self.stages.clone(), self.rollback.clone());
        WorkflowSpec { description: self.description.clone(), stages, rollback }
    }
}
