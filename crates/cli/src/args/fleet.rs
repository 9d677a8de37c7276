//! The verbs of fleets run by version: short, scriptable, with exit codes that mean something.

use clap::Subcommand;

use super::local::{CacheServices, PublishService};
use super::service::AgentDir;

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Set the version that every machine is to run
    TriggerUpdate(TriggerUpdate),
    /// Print the version that every machine is to run
    CurrentVersion {
        #[command(flatten)]
        of: EntityChoice,
    },
    /// Tell whether a machine needs an update: 0 yes, 1 no, 2 cannot tell but it runs something, 3 cannot tell
    PendingUpdate(PendingUpdate),
    /// Print the version that this machine runs
    LocalVersion(PendingUpdate),
    /// Print which machines run which version
    RunningVersions {
        #[command(flatten)]
        of: EntityChoice,
    },
    /// Print the machines that run a version
    HostsAtVersion(HostsAtVersion),
    /// Tell whether machines run a version: 0 all of them, 1 not all
    VerifyHosts(VerifyHosts),
    /// Tell whether a version is the only one that runs: 0 yes, 1 no
    CheckSingleVersion {
        /// The version
        version: String,
        /// Print the machines that run something else
        #[arg(short, long)]
        verbose: bool,
        #[command(flatten)]
        of: EntityChoice,
    },
    /// Set this machine's state in a category, or another's
    UpdateStatus(UpdateStatus),
    /// Tell whether any machine has a failed status: 0 none, 1 some; silent ones are told apart
    GetFailures {
        /// Print only the names of machines that failed
        #[arg(long)]
        hosts: bool,
    },
    /// Offer a service from this machine
    PublishService(PublishService),
    /// Write what the fleet offers, as this machine's agent knows it, into a file
    CacheServices(CacheServices),
    /// Tell whether this machine's checks, services and files are fine: 0 yes, 1 no, with the reasons
    LocalHealth {
        #[command(flatten)]
        here: AgentDir,
    },
}

/// Which entity's version.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EntityChoice {
    /// The entity whose version is meant
    #[arg(short, long, default_value = "system")]
    pub(crate) entity: String,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TriggerUpdate {
    /// The version
    pub(crate) version: String,
    #[command(flatten)]
    pub(crate) of: EntityChoice,
    /// Why, for whoever reads the history
    #[arg(long, default_value = "")]
    pub(crate) why: String,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PendingUpdate {
    #[command(flatten)]
    pub(crate) of: EntityChoice,
    /// Directory of this machine's agent
    #[arg(
        long,
        env = "BELLWETHER_AGENT_DIR",
        default_value = "/var/lib/bellwether/agent",
        value_name = "DIR"
    )]
    pub(crate) data_dir: std::path::PathBuf,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HostsAtVersion {
    /// The version
    pub(crate) version: String,
    #[command(flatten)]
    pub(crate) of: EntityChoice,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct VerifyHosts {
    /// The version
    pub(crate) version: String,
    /// The machines; `-` reads names from stdin; every machine if none is given
    pub(crate) hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) of: EntityChoice,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UpdateStatus {
    /// The category, a name of yours; configure and validate are the agent's own
    pub(crate) category: String,
    /// success, failed, running or pending
    pub(crate) state: String,
    /// Another machine, through the control plane; this one, through its agent, if absent
    #[arg(long)]
    pub(crate) node: Option<String>,
    /// One line for whoever asks why
    #[arg(long, alias = "why", default_value = "")]
    pub(crate) reason: String,
    /// For how long it holds without being set again, like 10m; for ever if absent
    #[arg(long)]
    pub(crate) lifetime: Option<String>,
    /// Directory of this machine's agent
    #[arg(
        long,
        env = "BELLWETHER_AGENT_DIR",
        default_value = "/var/lib/bellwether/agent",
        value_name = "DIR"
    )]
    pub(crate) data_dir: std::path::PathBuf,
}
