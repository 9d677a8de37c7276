//! Jobs: each the execution of one task of a run on one node. Written only for the node's own agent: when it takes the inputs of a
//! task, and when its report is absorbed.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::words::counter::AssignmentNumber;
use crate::words::name::{EntityName, LedgerId, NodeName, TaskName};
use crate::words::time::Timestamp;

/// Most bytes of the outputs of one task, as JSON: they are read into the params of what follows, and are no place for files.
pub const MAX_OUTPUT_BYTES: usize = 16 << 10;

/// Most bytes of the outputs of all tasks of a run on one node, as JSON: with the jobs themselves they are one record.
pub const MAX_RUN_OUTPUT_BYTES: usize = 64 << 10;

/// The jobs of one run on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeJobs {
    /// The run.
    pub run: EntityName,
    /// The node.
    pub node: NodeName,
    /// The ledger that has them; `None` if the agent reports none.
    pub ledger: Option<LedgerId>,
    /// The jobs, each index at most once, in the order of the tasks.
    pub jobs: Vec<Job>,
    /// Whether the node was told that no further task follows: its task list does not change any more.
    pub closed: bool,
    /// Whether the ledger does not know jobs that it told of: it was set back, or files of it were removed. Nothing of the run begins again.
    pub forgotten: bool,
    /// The newest assignment of the run that failed on the node, as a report said; zero if none did. A person who asked for it before did not ask for
    /// what failed under it.
    pub failed_for: AssignmentNumber,
}

/// The execution of one task on one node. Times are by the agent's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Index of the task in the run, from 0.
    pub index: u32,
    /// The task.
    pub task: TaskName,
    /// What became of it.
    pub state: JobState,
    /// How it said that the run goes on; `None` before that.
    pub exit: Option<JobExit>,
    /// Exit code of its last script; `None` if it has none, as after a signal.
    pub exit_code: Option<i32>,
    /// Times that it was begun.
    pub attempts: u32,
    /// When it was last begun.
    pub started: Option<Timestamp>,
    /// When it last ended.
    pub ended: Option<Timestamp>,
    /// The outputs that the task wrote: a JSON object as text, at most [`MAX_OUTPUT_BYTES`]. `None` if it wrote none, or is not complete.
    pub outputs: Option<Arc<str>>,
}

/// Outputs that are larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputsTooLarge {
    /// Those of the task.
    OfTask,
    /// Those of all tasks of the run on the node, with the task's own.
    OfRun,
}

impl fmt::Display for OutputsTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfTask => {
                write!(
                    f,
                    "the outputs of the task have more than {MAX_OUTPUT_BYTES} bytes, which is the most for one task"
                )
            }
            Self::OfRun => write!(
                f,
                "the outputs of all tasks of the run on this node have more than {MAX_RUN_OUTPUT_BYTES} bytes, which is the most for one run"
            ),
        }
    }
}

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// How a job said that the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// Whether the task is done with, so that the next one follows and it never begins again.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        match self {
            Self::Finished | Self::Skipped => true,
            Self::Created
            | Self::Running
            | Self::Incomplete
            | Self::Failed
            | Self::Cancelled
            | Self::Lost => false,
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

impl Job {
    /// A job that has not begun.
    #[must_use]
    pub const fn created(index: u32, task: TaskName) -> Self {
        Self {
            index,
            task,
            state: JobState::Created,
            exit: None,
            exit_code: None,
            attempts: 0,
            started: None,
            ended: None,
            outputs: None,
        }
    }
}

impl NodeJobs {
    /// The same jobs; those that something was still to happen with are in this state, and nobody saw their end.
    #[must_use]
    pub fn with_open_ones(mut self, state: JobState) -> Self {
        for job in self.jobs.iter_mut().filter(|job| job.state.is_open()) {
            job.state = state;
        }
        self
    }

    /// Number of tasks that the node executes or has executed: they are the first ones of its list.
    #[must_use]
    pub fn begun(&self) -> usize {
        let last = self.jobs.iter().map(|job| job.index).max();
        last.map_or(0, |index| usize::try_from(index).unwrap_or(usize::MAX).saturating_add(1))
    }

    /// Number of bytes of the outputs of all its jobs.
    #[must_use]
    pub fn output_bytes(jobs: &[Job]) -> usize {
        jobs.iter().filter_map(|job| job.outputs.as_ref()).map(|outputs| outputs.len()).sum()
    }

    /// The job that the node is at: the last one.
    #[must_use]
    pub fn present(&self) -> Option<&Job> {
        self.jobs.last()
    }
}
