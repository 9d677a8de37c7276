//! `task`, `stage` and `workflow` as typed.

use bellwether_api::v1::run::BusyNodes;
use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;
use super::policy::PolicyFlags;
use super::rollout::WaitFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum TaskVerb {
    /// List tasks
    List(ListFlags),
    /// Show a task with its steps
    Get {
        #[command(flatten)]
        of: TaskName,
    },
    /// Delete a task; stages that name it stay
    Delete {
        #[command(flatten)]
        of: TaskName,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum StageVerb {
    /// List stages of workflows
    List(ListFlags),
    /// Show a stage with its tasks
    Get {
        #[command(flatten)]
        of: StageName,
    },
    /// Delete a stage; workflows that name it stay
    Delete {
        #[command(flatten)]
        of: StageName,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowVerb {
    /// List workflows
    List(ListFlags),
    /// Run a workflow on nodes, as a rollout: in batches, with its limits, pauses and freezes
    ///
    /// The nodes are chosen now, and each runs the tasks as they are now. Nodes run tasks only if their agent's configuration
    /// allows it.
    Run(Box<RunWorkflow>),
    /// Show a workflow with its stages and tasks
    Get {
        #[command(flatten)]
        of: WorkflowName,
    },
    /// Delete a workflow; its stages and tasks stay
    Delete {
        #[command(flatten)]
        of: WorkflowName,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RunWorkflow {
    #[command(flatten)]
    pub(crate) of: WorkflowName,
    /// Filter of the nodes that run it, like 'role=web and not cordoned'; `all` matches every node of the namespace
    #[arg(short = 'l', long)]
    pub(crate) filter: String,
    #[command(flatten)]
    pub(crate) run: RunFlags,
}

/// How a workflow is run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RunFlags {
    /// Task at which it begins; those before it are no part of the run
    #[arg(long, value_name = "STAGE/TASK")]
    pub(crate) from: Option<String>,
    #[command(flatten)]
    pub(crate) start: StartFlags,
}

/// How a run is started, whatever it runs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StartFlags {
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) busy: BusyFlags,
    /// Show what would run, and on how many nodes; nothing is started, and nothing ended
    #[arg(long, conflicts_with = "watch")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) wait: WaitFlags,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
}

/// What becomes of the runs that are in progress on the nodes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct BusyFlags {
    /// Have nodes leave the runs that are in progress on them; a job that runs there is ended
    #[arg(long, conflicts_with = "queue")]
    force: bool,
    /// Have nodes begin it after the runs that are in progress on them
    #[arg(long)]
    queue: bool,
}

impl BusyFlags {
    /// What was chosen; `None` has the run refused.
    pub(crate) fn chosen(&self) -> Option<BusyNodes> {
        match (self.force, self.queue) {
            (true, _) => Some(BusyNodes::Switch),
            (false, true) => Some(BusyNodes::Queue),
            (false, false) => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunVerb {
    /// List runs of workflows
    List {
        #[command(flatten)]
        flags: ListFlags,
        /// Node: only runs that have not ended on it are listed
        #[arg(long, value_name = "NODE")]
        node: Option<String>,
    },
    /// Show a run with its tasks; `rollout status RUN` tells what it does on which node
    Get {
        #[command(flatten)]
        of: RunName,
    },
    /// Undo a run: run the `rollback` of its workflow on the nodes that began a task of it
    ///
    /// A run that is in progress is aborted first. The tasks are those that the workflow had when the run was started.
    Undo(Box<UndoRun>),
    /// Delete a run that has ended, with its history
    Delete {
        #[command(flatten)]
        of: RunName,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UndoRun {
    #[command(flatten)]
    pub(crate) of: RunName,
    #[command(flatten)]
    pub(crate) start: StartFlags,
}

/// The run that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RunName {
    /// Run name
    #[arg(value_name = "RUN", value_parser = super::subject::run)]
    pub(crate) name: String,
}

/// The task that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TaskName {
    /// Task name
    #[arg(value_name = "TASK")]
    pub(crate) name: String,
}

/// The stage that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StageName {
    /// Stage name
    #[arg(value_name = "STAGE")]
    pub(crate) name: String,
}

/// The workflow that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WorkflowName {
    /// Workflow name
    #[arg(value_name = "WORKFLOW")]
    pub(crate) name: String,
}
