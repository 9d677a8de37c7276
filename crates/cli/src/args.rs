//! The command line as typed: nouns, verbs, flags and their help. The only place that reads the environment.

mod apply;
mod fleet;
mod freeze;
mod local;
mod lock;
mod node;
mod nouns;
mod pause;
mod policy;
mod profile;
mod service;
mod simulate;
mod slot;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use apply::{Apply, FileFlags};
pub(crate) use fleet::{FleetCommand, PendingUpdate, TriggerUpdate, UpdateStatus, VerifyHosts};
pub(crate) use freeze::{FreezeScopeFlags, FreezeVerb, StopEverything};
pub(crate) use local::{CacheServices, PublishService};
pub(crate) use lock::{LockChild, LockRun, LockVerb};
pub(crate) use node::{NodeChoice, NodeLogs, NodeVerb};
pub(crate) use nouns::{
    AgentVerb, ContextVerb, EntityVerb, JoinTokenVerb, OperationFlags, PlanRollout, RolloutVerb,
    ServerConfig, ServerVerb, StartRollout, TokenVerb, WaitFlags,
};
pub(crate) use pause::PauseVerb;
pub(crate) use policy::PolicyFlags;
pub(crate) use profile::{ActionVerb, Change, ProfileVerb};
pub(crate) use service::{AgentDir, Register, ServiceVerb, WaitFor};
pub(crate) use simulate::Simulate;
pub(crate) use slot::SlotVerb;

/// One tool for fleets of machines: say what should be true, every machine decides, every wait has a why.
#[derive(Debug, Parser)]
#[command(name = "bellwether", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to log, like `info` or `bellwether_server=debug`
    #[arg(long, global = true, env = "BELLWETHER_LOG", hide_env_values = true, help_heading = "Global")]
    pub(crate) log: Option<String>,
    /// How to log
    #[arg(long, global = true, value_enum, default_value = "text", help_heading = "Global")]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where to, as whom, and how to print.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global")]
pub(crate) struct Global {
    /// The server's address, like https://control.example:7420
    #[arg(long, global = true, env = "BELLWETHER_SERVER")]
    pub(crate) server: Option<String>,
    /// File with the token to show; BELLWETHER_TOKEN may hold the token itself
    #[arg(long = "with-token-file", global = true, env = "BELLWETHER_TOKEN_FILE", value_name = "FILE")]
    pub(crate) with_token_file: Option<PathBuf>,
    /// File with the CA certificate that the server's must come from
    #[arg(long, global = true, env = "BELLWETHER_CA", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// The context to use instead of the current one
    #[arg(long, global = true, env = "BELLWETHER_CONTEXT")]
    pub(crate) context: Option<String>,
    /// The namespace
    #[arg(short, long, global = true, env = "BELLWETHER_NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// How to print
    #[arg(short, long, global = true, value_enum, default_value = "table")]
    pub(crate) output: Output,
    /// Read the present: everything that was committed before, or an error when the server cannot make sure
    #[arg(long, global = true)]
    pub(crate) consistent: bool,
    /// The file that contexts are kept in
    #[arg(long, global = true, env = "BELLWETHER_CONFIG", hide = true)]
    pub(crate) contexts_file: Option<PathBuf>,
    /// The home directory, for the contexts file
    #[arg(long, global = true, env = "HOME", hide = true, hide_env = true)]
    pub(crate) home: Option<PathBuf>,
    /// Print without colour
    #[arg(long, global = true, env = "NO_COLOR", hide_env_values = true,
          value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) no_color: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Columns for people
    Table,
    /// More columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Names alone, one a line
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See the main thing: a fleet of real processes, a good rollout, a bad one rolled back; ends by itself
    Demo(Demo),
    /// Run a server and an agent in one process on loopback, to try things
    Dev(Dev),
    /// Make or run a control plane
    #[command(subcommand)]
    Server(ServerVerb),
    /// Join or run a node's agent
    #[command(subcommand)]
    Agent(AgentVerb),
    /// Let machines join
    #[command(subcommand)]
    JoinToken(JoinTokenVerb),
    /// Let people and programs in
    #[command(subcommand)]
    Token(TokenVerb),
    /// Where commands go, and as whom
    #[command(subcommand)]
    Context(ContextVerb),
    /// One screen about the fleet
    Status,
    /// Machines
    #[command(subcommand)]
    Node(NodeVerb),
    /// Things that change on many targets
    #[command(subcommand)]
    Entity(EntityVerb),
    /// Bags of params that nodes render their files from, every change a revision
    #[command(subcommand)]
    Profile(ProfileVerb),
    /// What machines offer to others, and whether it serves
    #[command(subcommand)]
    Service(ServiceVerb),
    /// Wait until so many instances of a service serve, then run something
    Wait(WaitFor),
    /// What this machine's catalogue can do
    #[command(subcommand)]
    Action(ActionVerb),
    /// Moving an entity's targets to a version
    #[command(subcommand)]
    Rollout(RolloutVerb),
    /// Keeping targets from taking their turn, for a while or until somebody ends it
    #[command(subcommand)]
    Freeze(FreezeVerb),
    /// Nodes that start nothing new, by selector, those that join later too
    #[command(subcommand)]
    Pause(PauseVerb),
    /// What only so many machines may do at once, like reboot, and who does
    #[command(subcommand)]
    Slot(SlotVerb),
    /// Taking turns between commands on any machines: a lock is a slot of one
    #[command(subcommand)]
    Lock(LockVerb),
    /// Hand out nothing more, rollbacks included, within one pass; lift it with --off
    StopEverything(StopEverything),
    /// Make entities, freezes, pauses, profiles and slots what documents in files say, all of them or none
    Apply(Apply),
    /// Show what `apply` would change, field by field; exits 1 if anything would
    Diff {
        #[command(flatten)]
        from: FileFlags,
    },
    /// Print everything in the namespace that `apply` takes, as documents
    Export,
    /// Try policies on a made-up fleet in virtual time: how long it takes, what a bad version does; asks no server
    Simulate(Box<Simulate>),
    /// Why something waits: NAME, node/NAME, entity/NAME, service/NAME, target/ENTITY/NAME or slot/NAME
    Why {
        /// What to ask about
        subject: String,
    },
    /// Everything about something: NAME, node/NAME, entity/NAME, service/NAME, target/ENTITY/NAME, rollout/ENTITY, freeze/NAME,
    /// pause/NAME, slot/NAME or profile/NAME
    Describe {
        /// What
        subject: String,
    },
    /// What a field means, its default and an example: policy, policy.batch, freeze.lasts, entity.selector
    Explain {
        /// The field, or what it is part of; everything if absent
        field: Option<String>,
    },
    /// What happened, in order
    Events(Events),
    #[command(flatten)]
    Fleet(FleetCommand),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a directory
    Man {
        /// The directory
        directory: PathBuf,
    },
    /// What `lock run` runs its command by, so that it ends with it
    #[command(hide = true)]
    LockChild(LockChild),
    /// The small HTTP service that the demo's agents supervise
    #[command(hide = true)]
    DemoService(DemoService),
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Demo {
    /// How many agents
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(6..=100))]
    pub(crate) nodes: u16,
    /// Which node is lost on the way is drawn by this
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
    /// Leave everything running at the end, until Ctrl-C
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Dev {
    /// Where to keep the data; a fresh directory that is removed at the end if absent
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address of the plain HTTP listener
    #[arg(long, default_value = "127.0.0.1:7421")]
    pub(crate) plain: std::net::SocketAddr,
    /// Address of the TLS listener
    #[arg(long, default_value = "127.0.0.1:7420")]
    pub(crate) listen: std::net::SocketAddr,
    /// Address on which the node answers DNS
    #[arg(long, default_value = "127.0.0.1:8600")]
    pub(crate) dns: std::net::SocketAddr,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Events {
    /// Go on with new ones as they happen
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Only those after this number
    #[arg(long)]
    pub(crate) after: Option<u64>,
    /// How many at most, 1 to 1000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Only those about this, like node/web-1 or entity/web
    #[arg(long)]
    pub(crate) about: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DemoService {
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) address: std::net::IpAddr,
    #[arg(long)]
    pub(crate) port: u16,
    #[arg(long, env = "BELLWETHER_VERSION")]
    pub(crate) version_served: String,
}

/// The token in the environment. There is no flag for it: a secret on a command line can be read by every process.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub(crate) fn token_in_environment() -> Option<String> {
    std::env::var("BELLWETHER_TOKEN").ok().filter(|token| !token.is_empty())
}

/// Where this process is to die, for tests.
#[cfg(feature = "failpoints")]
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub(crate) fn fail_points_in_environment() -> String {
    std::env::var("FAILPOINTS").unwrap_or_default()
}

impl Command {
    /// Whether it runs until it is stopped, and so logs what it does.
    pub(crate) const fn runs_long(&self) -> bool {
        matches!(self, Self::Server(ServerVerb::Run { .. }) | Self::Agent(AgentVerb::Run { .. }))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_fits_together() {
        super::Args::command().debug_assert();
    }
}
