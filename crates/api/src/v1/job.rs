//! Jobs of runs: what nodes report, what is stored and what is answered.

use std::sync::Arc;

use bellwether_core::records::job as core;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::workflow::TaskSpec;
use crate::shape::{ShapeError, read, read_some};

/// The execution of one task of a run on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Job {
    /// Name of the job: run, node and index of the task.
    #[schema(example = "new-shop-7/web-1/0")]
    pub name: String,
    /// Name of the run.
    pub run: String,
    /// Name of the node.
    pub node: String,
    /// Index of the task in the run, from 0.
    pub index: u32,
    /// Name of the stage.
    pub stage: String,
    /// Name of the task.
    pub task: String,
    /// SHA-256 of the task's content when the run was started.
    pub digest: String,
    /// What became of it.
    pub state: JobState,
    /// How the task said that the run goes on; absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<JobExit>,
    /// Exit code of its last script; absent if it has none, as after a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Times that it was begun.
    pub attempts: u32,
    /// When it was last begun, in milliseconds since the Unix epoch, by the node's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// When it last ended, in milliseconds since the Unix epoch, by the node's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Outputs that the task wrote: an object of at most 16 KiB. Absent in lists, and if it wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Map<String, Value>>,
    /// What the task does, as the run has it. Absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<TaskSpec>,
}

/// A job as its node reports it. Times are by the node's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedJob {
    /// Index of the task in the run, from 0.
    pub index: u32,
    /// Name of the task.
    pub task: String,
    /// What became of it.
    pub state: JobState,
    /// How the task said that the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<JobExit>,
    /// Exit code of its last script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Times that it was begun.
    pub attempts: u32,
    /// When it was last begun, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// When it last ended, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Outputs that the task wrote: an object of at most 16 KiB, and 64 KiB with those of the other tasks of the run on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Map<String, Value>>,
}

/// Stored record of the jobs of one run on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredJobs {
    /// Name of the run.
    pub run: String,
    /// Name of the node.
    pub node: String,
    /// The ledger that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// The jobs.
    pub jobs: Vec<ReportedJob>,
    /// Whether the node was told that no further task follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// Whether the ledger does not know jobs that it told of.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgotten: bool,
    /// The newest assignment of the run that failed on the node; absent if none did.
    #[serde(default, skip_serializing_if = "crate::shape::is_zero")]
    pub failed_for: u64,
}

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Its inputs are on the node's disk; it has not begun.
    Created,
    /// It runs.
    Running,
    /// The task is complete.
    Finished,
    /// The condition of the task did not hold: it was not begun, and the run goes on.
    Skipped,
    /// The task failed.
    Failed,
    /// It ended and is to begin again.
    Incomplete,
    /// The run was aborted before it ended.
    Cancelled,
    /// Nobody knows how it ended.
    Lost,
}

/// How a task said that its run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobExit {
    /// With the next task.
    Complete,
    /// After a reboot of the machine.
    Reboot,
    /// After the machine was powered off.
    PowerOff,
    /// After the next start of the agent.
    Stop,
    /// Not at all.
    Failed,
}

impl JobState {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Incomplete => "incomplete",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    /// Whether something is still to happen.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::Created | Self::Running | Self::Incomplete => true,
            Self::Finished | Self::Skipped | Self::Failed | Self::Cancelled | Self::Lost => false,
        }
    }
}

impl JobExit {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Reboot => "reboot",
            Self::PowerOff => "poweroff",
            Self::Stop => "stop",
            Self::Failed => "failed",
        }
    }
}

macro_rules! same {
    ($type:ident: $($variant:ident),*) => {
        impl From<core::$type> for $type {
            fn from(from: core::$type) -> Self {
                match from { $(core::$type::$variant => Self::$variant,)* }
            }
        }

        impl From<$type> for core::$type {
            fn from(from: $type) -> Self {
                match from { $($type::$variant => Self::$variant,)* }
            }
        }
    };
}

same!(JobState: Created, Running, Finished, Skipped, Failed, Incomplete, Cancelled, Lost);
same!(JobExit: Complete, Reboot, PowerOff, Stop, Failed);

impl From<&core::Job> for ReportedJob {
    fn from(from: &core::Job) -> Self {
        Self {
            index: from.index,
            task: from.task.to_string(),
            state: from.state.into(),
            exit: from.exit.map(Into::into),
            exit_code: from.exit_code,
            attempts: from.attempts,
            started_ms: from.started.map(Timestamp::as_millis),
            ended_ms: from.ended.map(Timestamp::as_millis),
            outputs: outputs(from),
        }
    }
}

impl TryFrom<ReportedJob> for core::Job {
    type Error = ShapeError;
    fn try_from(from: ReportedJob) -> Result<Self, ShapeError> {
        Ok(Self {
            index: from.index,
            task: read("task", &from.task)?,
            state: from.state.into(),
            exit: from.exit.map(Into::into),
            exit_code: from.exit_code,
            attempts: from.attempts,
            started: from.started_ms.map(Timestamp::from_millis),
            ended: from.ended_ms.map(Timestamp::from_millis),
            outputs: from.outputs.map(outputs_in).transpose()?,
        })
    }
}

/// The outputs of a job.
#[must_use]
pub fn outputs(job: &core::Job) -> Option<Map<String, Value>> {
    // It is the text of an object: it was one, here or on the node.
    job.outputs.as_ref().and_then(|text| serde_json::from_str(text).ok())
}

fn outputs_in(outputs: Map<String, Value>) -> Result<Arc<str>, ShapeError> {
    let text = Value::Object(outputs).to_string();
    if text.len() > core::MAX_OUTPUT_BYTES {
        return Err(ShapeError::at("outputs", core::OutputsTooLarge::OfTask));
    }
    Ok(text.into())
}

impl From<&core::NodeJobs> for StoredJobs {
    fn from(from: &core::NodeJobs) -> Self {
        Self {
            run: from.run.to_string(),
            node: from.node.to_string(),
            ledger: from.ledger.as_ref().map(ToString::to_string),
            jobs: from.jobs.iter().map(Into::into).collect(),
            closed: from.closed,
            forgotten: from.forgotten,
            failed_for: from.failed_for.get(),
        }
    }
}

impl TryFrom<StoredJobs> for core::NodeJobs {
    type Error = ShapeError;
    fn try_from(from: StoredJobs) -> Result<Self, ShapeError> {
        let jobs = from.jobs.into_iter().map(TryInto::try_into);
        Ok(Self {
            run: read("run", &from.run)?,
            node: read("node", &from.node)?,
            ledger: read_some("ledger", from.ledger.as_deref())?,
            jobs: jobs.collect::<Result<_, ShapeError>>().map_err(|error| error.within("jobs"))?,
            closed: from.closed,
            forgotten: from.forgotten,
            failed_for: AssignmentNumber::new(from.failed_for),
        })
    }
}
