//! Recipes: how one entity is brought to a version on this machine, and how one tells that it is well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bellwether_core::catalogue::need::Need;
use bellwether_core::local::health::Hysteresis;
use bellwether_core::words::name::{ActionName, CheckName, ServiceName};
use bellwether_core::words::time::Span;

/// How long a part may take when nothing else is said: installs from a slow mirror fit.
pub const DEFAULT_TIMEOUT: Span = Span::from_secs(300);

/// How long a process has to end after SIGTERM.
pub const DEFAULT_STOP_TIMEOUT: Span = Span::from_secs(10);

/// How often a check runs.
pub const DEFAULT_INTERVAL: Span = Span::from_secs(10);

/// How long one run of a check may take.
pub const DEFAULT_CHECK_TIMEOUT: Span = Span::from_secs(5);

/// How often what runs is validated again: a machine that somebody changed by hand is noticed within a quarter of an hour.
pub const DEFAULT_VALIDATE_EVERY: Span = Span::from_secs(600);

/// How one entity is brought to a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// What its versions are, here.
    pub kind: RecipeKind,
    /// Depends on nothing outside the node.
    pub statics: Vec<Runner>,
    /// What must be there before the dynamic part runs.
    pub needs: Vec<Need>,
    /// Services that the dynamic part is made from: it runs again when they change.
    pub follows: BTreeSet<ServiceName>,
    /// May depend on services.
    pub dynamics: Vec<Runner>,
    /// Says whether the version is there and well, before the checks are asked.
    pub validation: Vec<Runner>,
    /// How often the validation of what runs is repeated; never without.
    pub validate_every: Option<Span>,
    /// How long each of the three parts may take as a whole.
    pub timeout: Span,
    /// The program that is kept running, if there is one.
    pub process: Option<ProcessRecipe>,
    /// What is asked all the time.
    pub checks: BTreeMap<CheckName, CheckRecipe>,
}

/// What an entity's versions are on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecipeKind {
    /// Whatever its parts make of them.
    Versions,
    /// Revisions of a profile, and these files rendered from them; at least one.
    Files(Vec<ManagedFile>),
    /// Runs of this action; its other parts are empty.
    Action(ActionName, ActionRecipe),
}

/// A file that is rendered from a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedFile {
    /// Where it is. Never a link; its directory must be there.
    pub path: PathBuf,
    /// What it is rendered from.
    pub template: Template,
    /// Its mode; if none is said, what it had, or 0644 for a new one.
    pub mode: Option<u32>,
    /// Says whether the new file may take the old one's place; `{path}` in an argument stands for the new one's.
    pub check: Option<Command>,
    /// Makes whoever reads the file read it again.
    pub reload: Option<Command>,
}

/// Where a template comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// It stands in the configuration.
    Text(String),
    /// It is a file of its own, read anew for each version.
    File(PathBuf),
}

/// Something this machine can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRecipe {
    /// What runs.
    pub command: Command,
    /// How long it may take.
    pub timeout: Span,
    /// Whether it may run again when the agent was stopped while it ran.
    pub idempotent: bool,
}

/// One command: no shell, no inherited environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments; never empty. A program without `/` is looked up in the command's `PATH`.
    pub argv: Vec<String>,
    /// Where it runs.
    pub workdir: PathBuf,
    /// Its environment beyond the documented variables.
    pub env: BTreeMap<String, String>,
}

impl Command {
    /// The command for one file: `{path}` in an argument stands for it.
    pub(crate) fn about(&self, path: &Path) -> Self {
        let path = path.display().to_string();
        let argv = self.argv.iter().map(|argument| argument.replace("{path}", &path)).collect();
        Self { argv, ..self.clone() }
    }
}

/// One thing that a part of an entity does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runner {
    /// A command: exit code 0 is done, 75 not yet, anything else failed.
    Exec(Command),
    /// `puppet apply --detailed-exitcodes`: exit codes 0 and 2 are done, anything else failed.
    Puppet(Command),
    /// Something done to a systemd unit.
    Systemd(SystemdUnit),
    /// Every executable in a directory, in name order, as by `Exec`.
    Directory(ScriptDirectory),
}

/// Something done to a systemd unit, and waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemdUnit {
    /// Its name, with or without its kind; never begins with `-`.
    pub name: String,
    /// What is done.
    pub action: UnitAction,
    /// The environment `systemctl` is looked up and run in.
    pub env: BTreeMap<String, String>,
}

/// What is done to a systemd unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitAction {
    /// Start it, and wait until it is active.
    Start,
    /// Stop it, and wait until it is inactive.
    Stop,
    /// Stop and start it, and wait until it is active.
    Restart,
    /// Make it read its configuration again, and wait until it is active.
    Reload,
    /// Do nothing to it; wait until it is active, and fail if it is not on its way there.
    Active,
}

impl UnitAction {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Start, Self::Stop, Self::Restart, Self::Reload, Self::Active];

    /// The word for it.
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
    /// The directory; must exist when it is its turn.
    pub path: PathBuf,
    /// Where they run.
    pub workdir: PathBuf,
    /// Their environment beyond the documented variables.
    pub env: BTreeMap<String, String>,
}

/// A program that is kept running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRecipe {
    /// What runs; `{version}` in an argument stands for the version.
    pub command: Command,
    /// How long it has to end after SIGTERM.
    pub stop_timeout: Span,
}

/// One thing that is asked all the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRecipe {
    /// What is asked.
    pub probe: Probe,
    /// How often.
    pub interval: Span,
    /// How long an answer may take.
    pub timeout: Span,
    /// How many answers in a row turn the verdict.
    pub hysteresis: Hysteresis,
}

/// What a check asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// A command: exit code 0 passes.
    Exec {
        /// What runs.
        command: Command,
        /// The exit code that passes with a warning.
        warning: Option<i32>,
    },
    /// An HTTP GET.
    Http {
        /// Host and port to connect to.
        authority: String,
        /// Path and query to ask for.
        path: String,
        /// The status that passes; any success if none is named.
        status: Option<u16>,
    },
    /// A TCP connection: being accepted passes.
    Tcp {
        /// Host and port to connect to.
        authority: String,
    },
}
