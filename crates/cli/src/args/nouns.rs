//! Nouns and their verbs.

use std::path::PathBuf;

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::PolicyFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum ServerVerb {
    /// Make an installation: its authority, its store and the first admin token
    Init {
        #[command(flatten)]
        config: ServerConfig,
    },
    /// List the servers of the control plane, and who leads
    List,
    /// Carry everything over into another store; no server may use either meanwhile
    Migrate {
        #[command(flatten)]
        config: ServerConfig,
        /// The configuration of a server that keeps everything where it is to go
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
    /// Write everything into a file; of a store of a server's own while that server does not run
    Backup {
        #[command(flatten)]
        config: ServerConfig,
        /// The file, which must not be there yet; `-` writes to stdout
        file: PathBuf,
    },
    /// Say what a backup holds, and whether it is whole
    Inspect {
        /// The file; `-` reads stdin
        file: PathBuf,
    },
    /// Put a backup into an empty store
    Restore {
        #[command(flatten)]
        config: ServerConfig,
        /// The file
        file: PathBuf,
    },
    /// Run the server
    Run {
        #[command(flatten)]
        config: ServerConfig,
        /// Only check the configuration
        #[arg(long)]
        check: bool,
        /// Stop when the process that started this one ends
        #[arg(long, hide = true)]
        die_with_parent: bool,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerConfig {
    /// The configuration file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where the store and keys are kept, instead of what the file says
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The address to listen on, instead of what the file says
    #[arg(long)]
    pub(crate) listen: Option<std::net::SocketAddr>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentVerb {
    /// Let this machine join the server that --server names, with a join token
    Join {
        /// File with the join token; `-` reads it from stdin
        #[arg(long, value_name = "FILE")]
        token_file: PathBuf,
        /// The name to join under
        #[arg(long)]
        name: String,
        /// A label to start with, KEY=VALUE; may be given again
        #[arg(long)]
        label: Vec<String>,
        /// Where the agent keeps its identity and memory
        #[arg(long, default_value = "/var/lib/bellwether/agent", value_name = "DIR")]
        data_dir: PathBuf,
    },
    /// Run the agent
    Run {
        /// The configuration file
        #[arg(short, long, default_value = "/etc/bellwether/agent.toml", value_name = "FILE")]
        config: PathBuf,
        /// Only check the configuration
        #[arg(long)]
        check: bool,
        /// Stop when the process that started this one ends
        #[arg(long, hide = true)]
        die_with_parent: bool,
    },
    /// Show what this machine's agent is doing
    Status {
        /// Where the agent keeps its identity and memory
        #[arg(
            long,
            env = "BELLWETHER_AGENT_DIR",
            default_value = "/var/lib/bellwether/agent",
            value_name = "DIR"
        )]
        data_dir: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum JoinTokenVerb {
    /// Make one and print it, once: it lets one machine in, once
    Create {
        /// The one name it may join under
        #[arg(long)]
        node: Option<String>,
        /// How long it works, at most 1h
        #[arg(long)]
        expires_in: Option<Span>,
    },
    /// List them
    List,
    /// Revoke one
    Delete {
        /// The first characters of its id
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Make one and print it, once
    Create {
        /// Its name; what events call whoever shows it
        name: String,
        /// viewer, operator or admin
        #[arg(long, default_value = "viewer")]
        role: String,
        /// How long it works; for ever if absent
        #[arg(long)]
        expires_in: Option<Span>,
    },
    /// List them
    List,
    /// Delete one
    Delete {
        /// Its name
        name: String,
    },
    /// Say who this one is
    Whoami,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextVerb {
    /// List contexts; the current one is marked
    List,
    /// Make one the current one
    Use {
        /// Its name
        name: String,
    },
    /// Add or replace one, from --server, --ca and a token file
    Set {
        /// Its name
        name: String,
        /// File with the token; `-` reads it from stdin
        #[arg(long, value_name = "FILE")]
        token_file: PathBuf,
    },
    /// Remove one
    Delete {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum EntityVerb {
    /// List entities
    List,
    /// Show one
    Get {
        /// Its name
        name: String,
    },
    /// Make one, or change its selector and policy
    Set {
        /// Its name
        name: String,
        /// Which nodes are its targets, like role=web; `all` for every node
        #[arg(long, conflicts_with_all = ["external", "silent_after", "let_go_after"])]
        selector: Option<String>,
        /// Its targets are what controllers report over the API, instead of nodes
        #[arg(long, conflicts_with_all = ["profile", "action"])]
        external: bool,
        /// External targets that are not reported for so long are unreachable [default: 5m]
        #[arg(long, value_name = "TIME")]
        silent_after: Option<String>,
        /// External targets that are not reported for so long are no targets any more [default: 1h]
        #[arg(long, value_name = "TIME")]
        let_go_after: Option<String>,
        /// The profile whose revisions are its versions; only for a new one
        #[arg(long, conflicts_with = "action")]
        profile: Option<String>,
        /// The action that its versions are runs of; only for a new one
        #[arg(long)]
        action: Option<String>,
        #[command(flatten)]
        policy: Box<PolicyFlags>,
    },
    /// Delete one and its history; targets stay as they are
    Delete {
        /// Its name
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct StartRollout {
    /// The entity
    pub(crate) entity: String,
    /// The version; with a profile, PROFILE@REVISION, or its newest if absent; with an action, absent
    pub(crate) version: Option<String>,
    /// Why, for whoever reads the history
    #[arg(long, default_value = "")]
    pub(crate) why: String,
    /// Only if the world is still as this plan saw it: the token of `rollout plan`
    #[arg(long, value_name = "TOKEN")]
    pub(crate) plan: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
    #[command(flatten)]
    pub(crate) wait: WaitFlags,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlanRollout {
    /// The entity
    pub(crate) entity: String,
    /// The version, as for `rollout start`
    pub(crate) version: Option<String>,
    /// How long a target is taken to need for the change; 30s if absent
    #[arg(long)]
    pub(crate) apply_time: Option<Span>,
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,
}

/// Whether to stay until it has ended.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WaitFlags {
    /// Show it live until it ends or waits for a person
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Give up after this long
    #[arg(long)]
    pub(crate) timeout: Option<Span>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RolloutVerb {
    /// Move an entity's targets to a version
    Start(Box<StartRollout>),
    /// Say what a rollout would bring: batches, the earliest end, how far a bad version would get
    Plan(Box<PlanRollout>),
    /// Say in one line where it stands; the exit code says it too
    Status {
        /// The entity
        entity: String,
        /// Stay until it ends or waits for a person
        #[arg(long)]
        wait: bool,
        /// Give up after this long
        #[arg(long)]
        timeout: Option<Span>,
    },
    /// Show it as a tree: batches as branches, targets as leaves
    Get {
        /// The entity
        entity: String,
        #[command(flatten)]
        wait: WaitFlags,
    },
    /// Show where every entity stands
    List,
    /// List an entity's rollouts, newest first
    History {
        /// The entity
        entity: String,
    },
    /// Hand out nothing more for now
    Pause(OperationFlags),
    /// Go on; what it had paused for is let pass
    Resume(OperationFlags),
    /// Let the stage begin that waits for a person
    Approve {
        #[command(flatten)]
        act: OperationFlags,
        /// The stage, from 1, so that no other is approved by mistake
        #[arg(long)]
        stage: Option<u32>,
    },
    /// Stop, and leave targets as they are
    Abort(OperationFlags),
    /// Take everything back to last known good
    Undo(OperationFlags),
    /// Try a bad version again, on purpose
    Retry {
        #[command(flatten)]
        act: OperationFlags,
        /// The version; the last known bad one if absent
        #[arg(long)]
        version: Option<String>,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OperationFlags {
    /// The entity
    pub(crate) entity: String,
    /// Why, for whoever reads the history
    #[arg(long, default_value = "")]
    pub(crate) why: String,
}
