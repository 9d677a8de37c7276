//! The agent's configuration, checked.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::{ActionName, EntityName, Namespace, NodeName};
use bellwether_dns::settings::DnsConfig;

use super::files::CatalogueFile;
use super::recipe::{ActionRecipe, Recipe};
use super::services::DefinedService;
use crate::http::CatalogueHttp;

/// Where the agent keeps what it knows when nothing else is said.
pub const DEFAULT_DATA_DIR: &str = "/var/lib/bellwether/agent";

/// The agent's configuration, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// This node's name.
    pub name: NodeName,
    /// The namespace it belongs to; `default` if not said.
    pub namespace: Namespace,
    /// Servers to call, `https://host:port`, at least one. One of them is called, and the next when it does not answer.
    pub servers: Vec<String>,
    /// Where the ledger, the node's key and logs are. Nobody else's.
    pub data_dir: PathBuf,
    /// What happens to supervised processes when the agent ends.
    pub services_on_exit: OnExit,
    /// How each entity is brought to a version here.
    pub entities: BTreeMap<EntityName, Recipe>,
    /// What this node can do when it is told to: its catalogue.
    pub actions: BTreeMap<ActionName, ActionRecipe>,
    /// What this node offers, from the files.
    pub services: Vec<DefinedService>,
    /// Where this node is reached, if that is not what its interfaces have.
    pub addresses: Option<Addresses>,
    /// What is written from the catalogue.
    pub files: Vec<CatalogueFile>,
    /// DNS on this node, if it answers any.
    pub names: Option<DnsConfig>,
    /// Discovery over HTTP on this node, if it answers any.
    pub http: Option<CatalogueHttp>,
}

/// What happens to supervised processes when the agent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExit {
    /// They go on; the next agent adopts them.
    #[default]
    Leave,
    /// They are stopped, each with its own stop timeout.
    Stop,
}
