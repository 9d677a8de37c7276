//! The command line as typed: nouns, verbs, flags and their help. The only place that reads the environment.

mod access;
mod apply;
mod authorities;
mod cluster;
mod consent;
mod demo;
mod doctor;
mod ensemble;
mod entity;
mod events;
mod filter;
mod fleet;
mod freeze;
mod global;
mod help;
mod job;
mod list;
mod local;
mod lock;
mod namespace;
mod node;
mod node_choice;
mod number;
mod param;
mod pause;
mod policy;
mod profile;
mod reaction;
mod rollout;
mod schedule;
mod secret;
mod server;
mod service;
mod simulate;
mod sink;
mod slot;
mod subject;
mod workflow;

use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

pub(crate) use access::{AuditVerb, AuthVerb, ContextVerb, JoinTokenVerb, RoleVerb, TokenVerb};
pub(crate) use apply::{Apply, DocumentKind, Export, FileFlags};
pub(crate) use authorities::CaVerb;
pub(crate) use cluster::{ClusterFlags, ClusterVerb};
pub(crate) use consent::Consent;
pub(crate) use demo::{Demo, DemoService, Dev};
pub(crate) use doctor::{DebugVerb, Doctor};
pub(crate) use ensemble::{EnsembleFlags, EnsembleVerb, NamedOsd};
pub(crate) use entity::{EntityVerb, SetEntity};
pub(crate) use events::Events;
pub(crate) use filter::{FilterVerb, SetFilter};
pub(crate) use fleet::{
    DeleteStatus, FleetCommand, HostsAtVersion, PendingUpdate, TriggerUpdate, UpdateStatus, VerifyHosts,
};
pub(crate) use freeze::{FreezeScopeFlags, FreezeVerb, StopEverything};
pub(crate) use global::{Global, LogFormat, Output};
pub(crate) use help::ENVIRONMENT;
pub(crate) use job::{JobName, JobVerb, TasksOf, TasksVerb};
pub(crate) use list::ListFlags;
pub(crate) use local::{CacheServices, PublishService};
pub(crate) use lock::{LockChild, LockRun, LockVerb};
pub(crate) use namespace::NamespaceVerb;
pub(crate) use node::{DrainNodes, LogOf, NodeLogs, NodeVerb};
pub(crate) use node_choice::NodeChoice;
pub(crate) use param::{NodeParamsVerb, ParamVerb, ParamsChange};
pub(crate) use pause::PauseVerb;
pub(crate) use policy::PolicyFlags;
pub(crate) use profile::{ActionVerb, Change, Expected, ProfileVerb};
pub(crate) use reaction::{ReactionFlags, ReactionVerb};
pub(crate) use rollout::{OperationFlags, PlanRollout, RolloutVerb, StartRollout, WaitFlags};
pub(crate) use schedule::{ScheduleFlags, ScheduleVerb};
pub(crate) use secret::{SecretVerb, SetSecret};
pub(crate) use server::{AgentDir, AgentVerb, ServerConfig, ServerJoin, ServerVerb};
pub(crate) use sink::{SinkFlags, SinkVerb};

pub(crate) use service::{CheckFlags, Register, ServiceCheck, ServiceVerb, WaitFor};
pub(crate) use simulate::Simulate;
pub(crate) use slot::SlotVerb;
pub(crate) use workflow::{
    RunFlags, RunName, RunVerb, RunWorkflow, StageName, StageVerb, StartFlags, TaskName, TaskVerb, UndoRun,
    WorkflowName, WorkflowVerb,
};

/// Orchestrate a fleet of machines: versions, configuration, services and locks
#[derive(Debug, Parser)]
#[command(name = "bellwether", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a demo: a fleet of real processes, a good rollout, a bad one rolled back
    Demo(Demo),
    /// Run a server and an agent in one process on loopback, for experiments
    Dev(Dev),
    /// Set up, run, back up and restore servers of a control plane
    #[command(subcommand)]
    Server(ServerVerb),
    /// Join a machine as a node, run its agent, show the agent's state
    #[command(subcommand)]
    Agent(AgentVerb),
    /// Manage join tokens for new nodes
    #[command(subcommand)]
    JoinToken(JoinTokenVerb),
    /// Manage API tokens
    #[command(subcommand)]
    Token(TokenVerb),
    /// Manage roles: named lists of what a token may do
    #[command(subcommand)]
    Role(RoleVerb),
    /// Show the audit log of a server: who asked for which change
    #[command(subcommand)]
    Audit(AuditVerb),
    /// Show what the token in use may do
    #[command(subcommand)]
    Auth(AuthVerb),
    /// List namespaces; delete empty ones. The first object in a namespace creates it
    #[command(subcommand)]
    Namespace(NamespaceVerb),
    /// Manage connection contexts (server, CA, credentials)
    #[command(subcommand)]
    Context(ContextVerb),
    /// Check this machine's server and agent, and the connection; say what is wrong and what to do next
    ///
    /// Exits 1 if anything failed. Run it as root, or as the user of the service that is checked.
    Doctor(Doctor),
    /// Collect what is needed to find a fault
    #[command(subcommand)]
    Debug(DebugVerb),
    /// Show a summary of the fleet
    Status,
    /// Manage nodes: labels, pauses, cordons, decommissioning
    #[command(subcommand)]
    Node(NodeVerb),
    /// Manage entities: what is rolled out, to which targets, under which policy
    #[command(subcommand)]
    Entity(EntityVerb),
    /// Save filters under names, for use in other filters as @NAME
    #[command(subcommand)]
    Filter(FilterVerb),
    /// Show the params of nodes, and where they come from
    #[command(subcommand)]
    Param(ParamVerb),
    /// Manage profiles: versioned parameter sets that nodes render files from
    #[command(subcommand)]
    Profile(ProfileVerb),
    /// Manage secrets: values that params name, encrypted where they are stored
    #[command(subcommand)]
    Secret(SecretVerb),
    /// Show services and their health; register services of this node
    #[command(subcommand)]
    Service(ServiceVerb),
    /// Wait until a service has enough instances, then run a command
    Wait(WaitFor),
    /// Show the actions that this machine's agent offers
    #[command(subcommand)]
    Action(ActionVerb),
    /// Start, follow and control rollouts
    #[command(subcommand)]
    Rollout(RolloutVerb),
    /// Freeze targets so that none starts updating
    #[command(subcommand)]
    Freeze(FreezeVerb),
    /// Pause nodes by selector, those that join later too
    #[command(subcommand)]
    Pause(PauseVerb),
    /// Show tasks: scripts and files that nodes run and write
    #[command(subcommand)]
    Task(TaskVerb),
    /// Show stages: tasks in order, and the profiles that they read
    #[command(subcommand)]
    Stage(StageVerb),
    /// Show workflows, stages in order, and run them on nodes
    #[command(subcommand)]
    Workflow(WorkflowVerb),
    /// Manage schedules: workflows that run at times of a calendar
    #[command(subcommand)]
    Schedule(Box<ScheduleVerb>),
    /// Manage reactions: workflows that are run when a condition is true
    #[command(subcommand)]
    Reaction(Box<ReactionVerb>),
    /// Manage sinks: webhooks and files that receive the events of the namespace
    #[command(subcommand)]
    Sink(Box<SinkVerb>),
    /// Show runs of workflows
    #[command(subcommand)]
    Run(RunVerb),
    /// Manage clusters: nodes that share a live profile and have roles
    #[command(subcommand)]
    Cluster(Box<ClusterVerb>),
    /// Manage ensembles: distributed services whose members are added, replaced and removed on nodes
    #[command(subcommand)]
    Ensemble(Box<EnsembleVerb>),
    /// Show jobs: what the tasks of runs do on nodes
    #[command(subcommand)]
    Job(JobVerb),
    /// Manage slots: how many machines may do something at once, like reboot
    #[command(subcommand)]
    Slot(SlotVerb),
    /// Run commands under a lock, one machine at a time
    #[command(subcommand)]
    Lock(LockVerb),
    /// Stop every rollout and rollback at once; lift the stop with --off
    StopEverything(StopEverything),
    /// Create or change the objects in files; nothing is changed unless all of them can be
    Apply(Apply),
    /// Show what `apply` would change, field by field; exit 1 if anything
    Diff {
        #[command(flatten)]
        from: FileFlags,
    },
    /// Print the objects of the namespace as documents for `apply`, or write them to files
    Export(Export),
    /// Simulate policies on a simulated fleet in virtual time; works offline
    Simulate(Box<Simulate>),
    /// Explain what a node, entity, run, service, target, cluster, ensemble or slot waits for
    Why {
        /// Object: NAME, node/NAME, entity/NAME, run/NAME, job/RUN/NODE, service/NAME, target/ENTITY/NAME, cluster/NAME, ensemble/NAME,
        /// store/NODE/PROBE, reaction/NAME, sink/NAME or slot/NAME
        subject: String,
    },
    /// Describe one object: its fields, its last events, and what it waits for
    Describe {
        /// Object: NAME, node/NAME, entity/NAME, service/NAME, target/ENTITY/NAME, rollout/ENTITY, freeze/NAME, pause/NAME,
        /// slot/NAME, profile/NAME, cluster/NAME, ensemble/NAME, store/NODE/PROBE, filter/NAME, schedule/NAME, reaction/NAME, sink/NAME, run/NAME, job/RUN/NODE, task/NAME, stage/NAME or
        /// workflow/NAME
        subject: String,
    },
    /// Explain a field: its meaning, default and an example; works offline
    Explain {
        /// Field path, like policy, policy.batch or entity.selector; every field if absent
        #[arg(value_name = "PATH")]
        field: Option<String>,
    },
    /// List events in order; follow new ones with --watch
    Events(Events),
    #[command(flatten)]
    Fleet(FleetCommand),
    /// Print the completion script of a shell
    Completions {
        /// Shell: bash, elvish, fish, powershell or zsh
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(["bash", "elvish", "fish", "powershell", "zsh"]))]
        shell: String,
    },
    /// Write the manual pages to a directory
    Man {
        /// Directory, created if needed
        directory: PathBuf,
    },
    /// Run the command of `lock run` so that it ends with the lock's holder
    #[command(hide = true)]
    LockChild(LockChild),
    /// Run the HTTP service that the demo's agents supervise
    #[command(hide = true)]
    DemoService(DemoService),
}

/// The whole command line, with help grouped by purpose and the global options listed once.
pub(crate) fn command() -> clap::Command {
    help::arranged(Args::command())
}

/// The short help of the command that these words lead to, for a command line that ends before its verb.
pub(crate) fn short_help(words: impl Iterator<Item = std::ffi::OsString>) -> String {
    let mut command = command();
    command.build();
    for word in words {
        if let Some(inner) = command.find_subcommand(&word) {
            command = inner.clone();
        }
    }
    command.render_help().to_string()
}

/// The commands that a command line without its noun may mean.
pub(crate) fn commands_meant(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let found = commands_named(verb);
    (!found.is_empty()).then(|| found.join("   or: "))
}

/// The commands below a noun that have this name, in the order of the nouns' names; none for a name of the first level.
fn commands_named(verb: &str) -> Vec<String> {
    let command = command();
    if command.find_subcommand(verb).is_some() {
        return Vec::new();
    }
    let nouns = command.get_subcommands().filter(|noun| noun.find_subcommand(verb).is_some());
    let mut found: Vec<String> =
        nouns.map(|noun| format!("{} {} {verb}", command.get_name(), noun.get_name())).collect();
    found.sort();
    found
}

/// The token in the environment. There is no flag for it: a secret on a command line can be read by every process.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub(crate) fn token_in_environment() -> Option<String> {
    std::env::var("BELLWETHER_TOKEN").ok()
}

/// Whether this file with a token is named by the environment, and not on the command line.
pub(crate) fn is_token_file_of_environment(path: &Path) -> bool {
    std::env::var_os("BELLWETHER_TOKEN_FILE").is_some_and(|of| of == path.as_os_str())
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
mod tests;
