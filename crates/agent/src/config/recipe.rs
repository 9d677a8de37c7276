//! Recipes: how one entity is brought to a version on this node, and how its health is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bellwether_core::catalogue::need::Need;
use bellwether_core::local::health::Hysteresis;
use bellwether_core::words::digest::Digest;
use bellwether_core::words::name::{ActionName, CheckName, ServiceName};
use bellwether_core::words::time::Span;

use crate::limits::ResourceLimits;
use crate::users::UserName;

/// Default deadline of a part: long enough to install from a slow mirror.
pub const DEFAULT_TIMEOUT: Span = Span::from_secs(300);

/// Default time between SIGTERM and SIGKILL.
pub const DEFAULT_STOP_TIMEOUT: Span = Span::from_secs(10);

/// Default interval of a check.
pub const DEFAULT_INTERVAL: Span = Span::from_secs(10);

/// Default deadline of one run of a check.
pub const DEFAULT_CHECK_TIMEOUT: Span = Span::from_secs(5);

/// Default interval of revalidation: a manual change of the host is noticed within a quarter of an hour.
pub const DEFAULT_VALIDATE_EVERY: Span = Span::from_secs(600);

/// How one entity is brought to a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// What its versions are on this node.
    pub kind: RecipeKind,
    /// The static part: depends on nothing outside the node.
    pub statics: Vec<Runner>,
    /// Services that must be there before the dynamic part runs.
    pub needs: Vec<Need>,
    /// Services that the dynamic part is made from: it runs again when they change.
    pub follows: BTreeSet<ServiceName>,
    /// Whether an attempt after a failed dynamic part begins with the static part.
    pub from_start: bool,
    /// The dynamic part: may depend on services.
    pub dynamics: Vec<Runner>,
    /// Decides whether the version was applied and works, before the checks are considered.
    pub validation: Vec<Runner>,
    /// Interval of revalidation; `None` without a validation, or for never.
    pub validate_every: Option<Span>,
    /// Deadline of each of the three parts.
    pub timeout: Span,
    /// The user as which its commands and checks run; by default the agent's.
    pub user: Option<UserName>,
    /// The limits of each command, of each check by command and of the process; `None` if there are none.
    pub limits: Option<ResourceLimits>,
    /// The supervised process, if there is one.
    pub process: Option<ProcessRecipe>,
    /// The checks of its health.
    pub checks: BTreeMap<CheckName, CheckRecipe>,
}

/// What an entity's versions are on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipeKind {
    /// Names that its parts interpret.
    Versions,
    /// Revisions of a profile, from which these files are rendered; at least one.
    Files(Vec<ManagedFile>),
    /// Runs of this action; the recipe's parts are empty.
    Action(ActionName, ActionRecipe),
}

/// A file rendered from a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedFile {
    /// Its absolute path; not a link, and in an existing directory.
    pub path: PathBuf,
    /// Its template.
    pub template: Template,
    /// Its mode; by default that of the file it replaces, or 0644 for a new one.
    pub mode: Option<u32>,
    /// Its owner, who may write its directory; by default that of the file it replaces, or the agent's user for a new one.
    pub owner: Option<UserName>,
    /// A command that accepts or refuses the new file; `{path}` in an argument is the path of the new file.
    pub check: Option<Command>,
    /// A command that makes the file's reader read it again.
    pub reload: Option<Command>,
}

/// The source of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// The configuration.
    Text(String),
    /// A file, read for each version.
    File(PathBuf),
}

/// An action of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRecipe {
    /// The command.
    pub command: Command,
    /// Its deadline.
    pub timeout: Span,
    /// Whether it may run again if the agent was stopped while it ran.
    pub idempotent: bool,
}

/// One command: no shell, no inherited environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments; never empty. A program without `/` is looked up in the command's `PATH`.
    pub argv: Vec<String>,
    /// The working directory.
    pub workdir: PathBuf,
    /// Environment variables, besides those that the agent sets.
    pub env: BTreeMap<String, String>,
    /// The file that it reads as its standard input; `None` for an empty one.
    pub stdin: Option<PathBuf>,
}

impl Command {
    /// What it reads as its standard input.
    pub(crate) fn standard_input(&self) -> std::io::Result<Stdio> {
        self.stdin.as_ref().map_or_else(|| Ok(Stdio::null()), |path| File::open(path).map(Stdio::from))
    }

    /// The command for one file, whose path replaces `{path}` in the arguments.
    pub(crate) fn about(&self, path: &Path) -> Self {
        let path = path.display().to_string();
        let argv = self.argv.iter().map(|argument| argument.replace("{path}", &path)).collect();
        Self { argv, ..self.clone() }
    }
}

/// One step of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runner {
    /// A command: exit code 0 is success, 75 not yet, anything else a failure.
    Exec(Command),
    /// `puppet apply --detailed-exitcodes`: exit codes 0 and 2 are success, anything else a failure.
    Puppet(Command),
    /// An action on a systemd unit.
    Systemd(SystemdUnit),
    /// Every executable in a directory, in name order, each as by `Exec`.
    Directory(ScriptDirectory),
}

/// An action on a systemd unit, and the wait for its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemdUnit {
    /// The unit's name, with or without its type; never begins with `-`.
    pub name: String,
    /// The action.
    pub action: UnitAction,
    /// The environment of `systemctl`, including the `PATH` in which it is looked up.
    pub env: BTreeMap<String, String>,
}

/// An action on a systemd unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitAction {
    /// Start it, and wait until it is active.
    Start,
    /// Stop it, and wait until it is inactive.
    Stop,
    /// Stop and start it, and wait until it is active.
    Restart,
    /// Reload it, and wait until it is active.
    Reload,
    /// Change nothing; wait until it is active, and fail if it is not activating.
    Active,
}

impl UnitAction {
    /// All actions.
    pub const ALL: [Self; 5] = [Self::Start, Self::Stop, Self::Restart, Self::Reload, Self::Active];

    /// The name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
            Self::Active => "active",
        }
    }
}

/// A directory of executables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptDirectory {
    /// The directory; must exist when the step runs.
    pub path: PathBuf,
    /// The working directory of the executables.
    pub workdir: PathBuf,
    /// Their environment variables, besides those that the agent sets.
    pub env: BTreeMap<String, String>,
}

/// A supervised process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRecipe {
    /// The command; `{version}` in an argument is replaced by the version.
    pub command: Command,
    /// The user as which it runs; by default that of the entity.
    pub user: Option<UserName>,
    /// Time between SIGTERM and SIGKILL.
    pub stop_timeout: Span,
    /// Time between the withdrawal of the entity's service instances and SIGTERM, when the process is replaced.
    pub drain_time: Span,
}

/// One check of an entity or a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRecipe {
    /// What it probes.
    pub probe: Probe,
    /// Time between two probes.
    pub interval: Span,
    /// Deadline of one probe.
    pub timeout: Span,
    /// How many results in a row change the verdict.
    pub hysteresis: Hysteresis,
}

/// What a check probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// A command: exit code 0 passes.
    Exec {
        /// The command.
        command: Command,
        /// The exit code that passes with a warning.
        warning: Option<i32>,
    },
    /// An HTTP GET.
    Http {
        /// Host and port to connect to.
        authority: String,
        /// Path and query to request.
        path: String,
        /// The status that passes; any success if `None`.
        status: Option<u16>,
    },
    /// A TCP connection: passes when it is accepted.
    Tcp {
        /// Host and port to connect to.
        authority: String,
    },
}

impl Probe {
    /// A digest of what is probed, the same across restarts and versions of the agent: results of one probe say nothing about
    /// another.
    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        match self {
            Self::Exec { command, warning } => {
                digest.add(b"exec");
                command.argv.iter().for_each(|argument| digest.add(argument.as_bytes()));
                digest.add(command.workdir.as_os_str().as_encoded_bytes());
                for (name, value) in &command.env {
                    digest.add(name.as_bytes());
                    digest.add(value.as_bytes());
                }
                digest.add(warning.map_or_else(String::new, |code| code.to_string()).as_bytes());
            }
            Self::Http { authority, path, status } => {
                digest.add(b"http");
                digest.add(authority.as_bytes());
                digest.add(path.as_bytes());
                digest.add(status.map_or_else(String::new, |status| status.to_string()).as_bytes());
            }
            Self::Tcp { authority } => {
                digest.add(b"tcp");
                digest.add(authority.as_bytes());
            }
        }
        digest.finish()
    }
}
