//! `cluster`, as typed.

use bellwether_api::v1::cluster::ClusterMode;
use bellwether_core::words::time::Span;
use clap::Subcommand;
use clap::builder::TypedValueParser;

use super::consent::Consent;
use super::list::ListFlags;
use super::workflow::RunFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// Create a cluster, and the live profile that its members share
    Create {
        #[command(flatten)]
        of: ClusterName,
        #[command(flatten)]
        change: ClusterFlags,
        /// Live profile that the members share, created if there is none [default: the cluster's name]
        #[arg(long, value_name = "PROFILE")]
        profile: Option<String>,
    },
    /// Change a cluster: its filter, its number of leaders, how they are chosen
    Set {
        #[command(flatten)]
        of: ClusterName,
        #[command(flatten)]
        change: ClusterFlags,
        /// Change only if this is its revision; else exit 6 and change nothing
        #[arg(long, value_name = "REVISION", value_parser = super::number::whole::<u64>)]
        if_revision: Option<u64>,
    },
    /// List clusters
    List(ListFlags),
    /// Show a cluster with its leaders and members
    Get {
        #[command(flatten)]
        of: ClusterName,
        /// Show it live until Ctrl-C
        #[arg(short = 'w', long)]
        watch: bool,
    },
    /// Show the data stores of a cluster, as its members' own agents probe them
    View {
        #[command(flatten)]
        of: OwnCluster,
        /// Show it live until Ctrl-C
        #[arg(short = 'w', long)]
        watch: bool,
        /// Number of an event: the data stores as they were after it, as far as events tell
        #[arg(long, value_name = "EVENT", conflicts_with = "watch")]
        at: Option<u64>,
    },
    /// List the members of a cluster, and its manager, with their roles; or accept that members are gone
    Members {
        #[command(flatten)]
        of: OwnCluster,
        /// Role of the members to list: leader, worker, manager, or unknown for those that are listed and no nodes
        #[arg(long, value_name = "ROLE", value_parser = ["leader", "worker", "manager", "unknown"])]
        role: Option<String>,
        /// Acceptance that members are gone: those that the list does not have any more leave
        #[arg(long, conflicts_with = "role")]
        accept: bool,
        /// Reason for --accept, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, requires = "accept")]
        reason: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Run a workflow on the cluster's manager [default: the manager's own workflow]
    Run {
        #[command(flatten)]
        of: ClusterName,
        /// Workflow name
        #[arg(value_name = "WORKFLOW")]
        workflow: Option<String>,
        #[command(flatten)]
        run: RunFlags,
    },
    /// Run a workflow on members of the cluster that a filter matches
    StartWorkflow {
        /// Workflow name
        #[arg(value_name = "WORKFLOW")]
        workflow: String,
        /// Filter of the members that run it, like 'cluster/leader Eq true'; `all` matches every member
        #[arg(long, value_name = "FILTER")]
        on: String,
        /// Cluster name; in a job of a cluster, that one
        #[arg(long, value_name = "CLUSTER", env = "BELLWETHER_CLUSTER", hide_env = true)]
        cluster: String,
        #[command(flatten)]
        run: RunFlags,
    },
    /// Wait until the workflows of members are complete: exit 1 if one fails with --fail-on-failure, 3 after the timeout, 8 if the
    /// manager was made not runnable
    Wait {
        #[command(flatten)]
        of: OwnCluster,
        /// Wait until the workflows are complete, which is all there is to wait for
        #[arg(long)]
        workflow_complete: bool,
        /// Filter of the members to wait for [default: all]
        #[arg(long, value_name = "FILTER")]
        on: Option<String>,
        /// Time after which the wait ends with exit 3
        #[arg(long, value_name = "TIME")]
        timeout: Option<Span>,
        /// End with exit 1 once the workflow of a member fails
        #[arg(long)]
        fail_on_failure: bool,
    },
    /// Delete a cluster: its roles end; its members and its profile stay
    Delete {
        #[command(flatten)]
        of: ClusterName,
        #[command(flatten)]
        consent: Consent,
    },
}

/// The cluster that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ClusterName {
    /// Cluster name
    #[arg(value_name = "CLUSTER")]
    pub(crate) name: String,
}

/// The cluster that a command is about; in a job of a cluster, that one.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OwnCluster {
    /// Cluster name; in a job of a cluster, that one
    #[arg(value_name = "CLUSTER", env = "BELLWETHER_CLUSTER", hide_env = true)]
    pub(crate) name: String,
}

/// What a cluster is to be.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ClusterFlags {
    /// Filter of the members over names, labels, facts, params and profiles, like role=db [default: the nodes that read the profile]
    #[arg(short = 'l', long)]
    pub(crate) filter: Option<String>,
    /// URL of a list of the members in the JSON of Prometheus' HTTP service discovery: those that the filter matches are members
    #[arg(long, value_name = "URL", conflicts_with_all = ["discover_file", "no_discovery"])]
    pub(crate) discover_url: Option<String>,
    /// Path of such a list below the directory that the configuration of the server names
    #[arg(long, value_name = "PATH", conflicts_with = "no_discovery")]
    pub(crate) discover_file: Option<String>,
    /// Interval between two reads of the list, 1s to 24h [default: 60s]
    #[arg(long, value_name = "TIME", conflicts_with = "no_discovery")]
    pub(crate) discover_every: Option<Span>,
    /// No list of members: the filter alone says who they are
    #[arg(long)]
    pub(crate) no_discovery: bool,
    /// Number of leaders, 0 to 64 [default: 1]
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
    pub(crate) leaders: Option<u32>,
    /// Field by which members are preferred as leaders, like fact.cores, or -fact.cores for the largest [default: a random choice]
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    pub(crate) prefer: Option<String>,
    /// Time after which another member takes the place of an unreachable leader [default: 60s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) replace_after: Option<Span>,
    /// Workflow of the cluster's manager
    #[arg(long, value_name = "WORKFLOW")]
    pub(crate) manager_workflow: Option<String>,
    /// Mode of the control plane with the members' data stores: active, observe (nothing is started) or disabled (no view, no events) [default: active]
    #[arg(long, value_name = "MODE", value_parser = clap::builder::PossibleValuesParser::new(ClusterMode::WORDS).map(mode))]
    pub(crate) mode: Option<ClusterMode>,
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}

/// The mode of a name that was checked.
fn mode(name: String) -> ClusterMode {
    ClusterMode::ALL.iter().copied().find(|mode| mode.as_str() == name).unwrap_or_default()
}
