//! The agent's configuration, checked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::{ActionName, EntityName, Namespace, NodeName, ProbeName};
use bellwether_dns::settings::DnsConfig;

use super::data_store::StoreProbe;
use super::ensembles::EnsembleSettings;
use super::files::CatalogueFile;
use super::recipe::{ActionRecipe, Recipe};
use super::services::DefinedService;
use crate::http::settings::CatalogueHttp;

/// Default data directory.
pub const DEFAULT_DATA_DIR: &str = "/var/lib/bellwether/agent";

/// The agent's configuration, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// This node's name.
    pub name: NodeName,
    /// The namespace it belongs to; by default `default`.
    pub namespace: Namespace,
    /// Server addresses, `https://host:port`, at least one. The agent uses one of them, and the next one when it does not answer.
    pub servers: Vec<String>,
    /// The directory of the ledger, the node's key and logs; used by this agent only.
    pub data_dir: PathBuf,
    /// What happens to supervised processes when the agent ends.
    pub services_on_exit: OnExit,
    /// Whether this node runs the tasks of workflows, which come from the control plane.
    pub allows_tasks: bool,
    /// Whether this node's agent offers to host logical nodes: the managers of clusters.
    pub hosts_logical: bool,
    /// The commands that end a boot of this machine.
    pub boot_commands: BootCommands,
    /// The recipes of entities on this node.
    pub entities: BTreeMap<EntityName, Recipe>,
    /// The actions of this node.
    pub actions: BTreeMap<ActionName, ActionRecipe>,
    /// The probes of data stores of this node.
    pub probes: BTreeMap<ProbeName, StoreProbe>,
    /// How this node runs members of ensembles; `None` if it runs none.
    pub ensembles: Option<EnsembleSettings>,
    /// The services of this node, from the files.
    pub services: Vec<DefinedService>,
    /// Definitions of services that cannot be used, by file, with the reason: the agent runs without them.
    pub refused_definitions: BTreeMap<PathBuf, String>,
    /// The addresses of this node, instead of those of its interfaces.
    pub addresses: Option<Addresses>,
    /// The files written from the catalogue.
    pub files: Vec<CatalogueFile>,
    /// DNS on this node, if it is served.
    pub names: Option<DnsConfig>,
    /// Discovery over HTTP on this node, if it is served.
    pub http: Option<CatalogueHttp>,
}

/// The commands that end a boot of this machine, for tasks that ask for it: program and arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootCommands {
    /// It reboots.
    pub reboot: Vec<String>,
    /// It is powered off.
    pub power_off: Vec<String>,
}

impl Default for BootCommands {
    fn default() -> Self {
        let systemctl = |verb: &str| vec!["systemctl".to_owned(), verb.to_owned()];
        Self { reboot: systemctl("reboot"), power_off: systemctl("poweroff") }
    }
}

/// What happens to supervised processes when the agent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExit {
    /// They keep running; the next agent adopts them.
    #[default]
    Leave,
    /// They are stopped, each with its own stop timeout.
    Stop,
}
