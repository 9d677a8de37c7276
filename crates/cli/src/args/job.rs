//! `job` as typed.

use clap::Subcommand;

use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum JobVerb {
    /// List jobs: tasks of runs on nodes
    List {
        #[command(flatten)]
        flags: ListFlags,
        /// Only those of this run
        #[arg(long, value_name = "RUN")]
        run: Option<String>,
        /// Only those on this node
        #[arg(long, value_name = "NODE")]
        node: Option<String>,
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

/// The job that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct JobName {
    /// Job: RUN/NODE/INDEX, or RUN/NODE for the last one of the run on the node
    #[arg(value_name = "JOB")]
    pub(crate) name: String,
}
