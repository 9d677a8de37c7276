//! `job` as typed.

use clap::Subcommand;

use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum JobVerb {
    /// List jobs: tasks of runs on nodes
    List {
        #[command(flatten)]
        flags: ListFlags,
        /// Run whose jobs are listed; of every run if absent
        #[arg(long, value_name = "RUN", value_parser = super::subject::run)]
        run: Option<String>,
        /// Node whose jobs are listed; on every node if absent
        #[arg(long, value_name = "NODE")]
        node: Option<String>,
    },
    /// Run a task again that failed on a node, with its params as they are now
    ///
    /// The run must be in progress or paused. A run that the failure paused goes on by itself once the task is complete, unless more have
    /// failed than are tolerated; `rollout resume` has it go on before.
    Retry {
        #[command(flatten)]
        of: JobName,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Show the tasks of the run on a node, or change those that it has not begun
    ///
    /// Tasks that the node executes, or has executed, stay as they are. A change that says what the list is already changes nothing.
    #[command(subcommand)]
    Tasks(TasksVerb),
    /// Print what a job wrote, from its node
    ///
    /// The log stays on the node. Lines are printed whole, without the values of secrets.
    Logs {
        #[command(flatten)]
        of: JobName,
        /// Print new lines until the job has ended; exit 1 if it did not finish
        #[arg(short = 'f', long)]
        follow: bool,
        /// Byte of the log to begin at
        #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = super::number::whole::<u64>)]
        offset: u64,
    },
    /// Show a job
    Get {
        #[command(flatten)]
        of: JobName,
        /// Print the texts of its steps alone, as the run has them
        #[arg(long)]
        script: bool,
    },
}

/// The run on a node whose tasks are shown or changed.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TasksOf {
    /// Node name
    #[arg(value_name = "NODE")]
    pub(crate) node: String,
    /// Run; needed if several have not ended on the node
    #[arg(long, value_name = "RUN", value_parser = super::subject::run)]
    pub(crate) run: Option<String>,
}

/// How the tasks of a run on a node are shown or changed.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TasksVerb {
    /// List the tasks of the run on a node, with their states
    List {
        #[command(flatten)]
        of: TasksOf,
    },
    /// Add tasks, one after the other
    Add {
        #[command(flatten)]
        of: TasksOf,
        /// Task to add, as TASK or STAGE/TASK; without a stage, it is of the stage of the task before it
        #[arg(value_name = "TASK", required = true)]
        tasks: Vec<String>,
        /// Number of tasks that stay before them, counted from the first one that was not begun; all if absent
        #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
        at: Option<u32>,
        /// Reason, kept in the events
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Remove tasks, in the order in which they are in the list
    Remove {
        #[command(flatten)]
        of: TasksOf,
        /// Task to remove, as TASK or STAGE/TASK; one is removed each time that it is named
        #[arg(value_name = "TASK", required = true)]
        tasks: Vec<String>,
        /// Reason, kept in the events
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
}

/// The job that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct JobName {
    /// Job: RUN/NODE/INDEX, or RUN/NODE for the last one of the run on the node
    #[arg(value_name = "JOB", value_parser = super::subject::job)]
    pub(crate) name: String,
}
