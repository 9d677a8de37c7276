//! Tasks: what a node runs and writes, in order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Request to create a task, or to replace one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// What it is for, at most 1,024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Condition of the task: an expression of the template language over its variables, such as `params.role == 'db'`, at most 2 KiB. When
    /// it is false as the job would begin, the job is skipped, and the run goes on.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    #[schema(example = "outputs['probe'].empty")]
    pub condition: Option<String>,
    /// What is done, in order: 1 to 32 scripts and files, which are templates.
    pub steps: Vec<TaskStep>,
    /// Params that the task needs, each with the JSON Schema (2020-12) of its values, at most 64. One that no level has
    /// has the `default` of its schema; a job whose node lacks one without a default fails before its first step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub params: BTreeMap<String, Map<String, Value>>,
    /// Claims that its jobs have besides those that node, run and cluster imply, such as `get node`, at most 32: whoever writes the task
    /// must have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// Whether it may run again when nobody knows how far it came. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// How long all its steps may take together, such as `10m`, at most `7d`. Default `1h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How often it is begun before it has failed; once if absent. Only for a task that is idempotent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<TaskRetry>,
}

/// How often a task is begun before it has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskRetry {
    /// Number of attempts, 1 to 10. It waits longer before each.
    #[schema(example = 3)]
    pub attempts: u32,
}

/// One step of a task: a script or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStep {
    /// Name of the step, a DNS label; unique in the task.
    pub name: String,
    /// A script that the node runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// A file that the node writes. Excludes `script`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<TaskFile>,
}

/// A script, rendered as a template and then run by its interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The template, at most 64 KiB.
    pub text: String,
    /// Program and arguments before the path of the script, at most 16. Default `/bin/sh` and `-eu`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interpreter: Vec<String>,
}

/// A file, rendered as a template and then written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFile {
    /// Its path: absolute without `..`, or relative to the working directory of the job.
    pub path: String,
    /// The template, at most 64 KiB.
    pub text: String,
    /// Its mode in octal, such as `0640`. Default `0644`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}
