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
    /// The recipes of entities on this node.
    pub entities: BTreeMap<EntityName, Recipe>,
    /// The actions of this node.
    pub actions: BTreeMap<ActionName, ActionRecipe>,
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

/// What happens to supervised processes when the agent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExit {
    /// They keep running; the next agent adopts them.
    #[default]
    Leave,
    /// They are stopped, each with its own stop timeout.
    Stop,
}
