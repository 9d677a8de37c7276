//! The verbs for fleets run by version: short, scriptable, each with exit codes of its own meaning.

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::local::{CacheServices, PublishService};
use super::server::AgentDir;

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Roll a version out to every node, under the policy of the entity
    TriggerUpdate(TriggerUpdate),
    /// Print the version that every node is to run; without a server, the one that this node is to run
    CurrentVersion(PendingUpdate),
    /// Check whether this node needs an update; exit 0 yes, 1 no, 2 unknown with a local version, 3 unknown
    PendingUpdate(PendingUpdate),
    /// Print the version that this node runs
    LocalVersion(PendingUpdate),
    /// Print each version with the nodes that run it
    RunningVersions {
        #[command(flatten)]
        of: EntityChoice,
    },
    /// Print the nodes that run a version; exit 1 if there are none, 2 if the only ones are silent
    HostsAtVersion(HostsAtVersion),
    /// Verify that nodes run a version; exit 0 if all do, 1 if not, 2 if none is wrong and some are silent
    VerifyHosts(VerifyHosts),
    /// Check that a version is the only one running; exit 0 yes, 1 no
    CheckSingleVersion {
        /// Version
        version: String,
        /// Print the nodes that run another version
        #[arg(short, long)]
        verbose: bool,
        #[command(flatten)]
        of: EntityChoice,
    },
    /// Set a status of this node, or of another one
    UpdateStatus(UpdateStatus),
    /// Delete a status of this node, or of another one
    DeleteStatus(DeleteStatus),
    /// List failed statuses and failing service instances of all nodes; exit 0 if there are none, 1 if there are some
    GetFailures {
        /// Print only the names of the nodes that failed
        #[arg(long)]
        hosts: bool,
    },
    /// Register a service of this node, and pass its check if it has a TTL
    PublishService(PublishService),
    /// Write the service catalogue, as this node's agent knows it, to a file
    CacheServices(CacheServices),
    /// Check this node's checks, services and files; exit 0 if all are healthy, 1 with the reasons if not
    LocalHealth {
        #[command(flatten)]
        here: AgentDir,
    },
}

/// Which entity's version.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EntityChoice {
    /// Entity name
    #[arg(short, long, default_value = "system")]
    pub(crate) entity: String,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TriggerUpdate {
    /// Version
    pub(crate) version: String,
    #[command(flatten)]
    pub(crate) of: EntityChoice,
    /// Update every node at once: without batches, stages, domains and the limit on unavailable targets
    #[arg(long)]
    pub(crate) all_at_once: bool,
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PendingUpdate {
    #[command(flatten)]
    pub(crate) of: EntityChoice,
    #[command(flatten)]
    pub(crate) agent: AgentDir,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HostsAtVersion {
    /// Version
    pub(crate) version: String,
    #[command(flatten)]
    pub(crate) of: EntityChoice,
    /// Longest time that a node may have been suspect or unreachable for its last report to count; if absent, the report of a
    /// suspect node counts and that of an unreachable one does not
    #[arg(long, value_name = "TIME")]
    pub(crate) max_age: Option<Span>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct VerifyHosts {
    /// Version
    pub(crate) version: String,
    /// Node names; `-` reads them from stdin; every node if absent
    #[arg(value_name = "NODE")]
    pub(crate) hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) of: EntityChoice,
    /// Longest time that a node may have been suspect or unreachable for its last report to count; if absent, the report of a
    /// suspect node counts and that of an unreachable one does not
    #[arg(long, value_name = "TIME")]
    pub(crate) max_age: Option<Span>,
    #[command(flatten)]
    pub(crate) agent: AgentDir,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct UpdateStatus {
    /// Status category, a name of your choice; the agent alone sets provision, configure, validate, files and orders
    pub(crate) category: String,
    /// State: success, failed, running or pending
    pub(crate) state: String,
    /// Node name, set through the control plane; this node, through its agent, if absent
    #[arg(long)]
    pub(crate) node: Option<String>,
    /// Reason, one line
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    /// Time that the status holds without being set again, like 10m; unlimited if absent
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentDir,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DeleteStatus {
    /// Status category; the agent alone sets provision, configure, validate, files and orders
    pub(crate) category: String,
    /// Node name, deleted at the control plane; this node, through its agent, if absent
    #[arg(long)]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentDir,
}
