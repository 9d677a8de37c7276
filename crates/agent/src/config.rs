//! The agent's configuration: one TOML file and a `conf.d` beside it, every value checked before anything starts.

mod command;
mod dns;
mod file;
pub mod files;
mod http;
mod kinds;
mod needs;
pub mod recipe;
mod runner;
pub mod service;
pub mod services;
pub(crate) mod validate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::{ActionName, EntityName, Namespace, NodeName};
use bellwether_dns::settings::DnsConfig;

use crate::http::CatalogueHttp;
use files::CatalogueFile;
use recipe::{ActionRecipe, Recipe};
use services::DefinedService;

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

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is not TOML, or has a key that does not exist.
    #[error("read {path}: {reason}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        reason: String,
    },
    /// A value is not allowed.
    #[error("use {key} in {path}: {reason}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Which key, like `entity.web.timeout`.
        key: String,
        /// Why not.
        reason: String,
    },
}

impl Config {
    /// The configuration in `path`, with every `*.toml` of the directory `conf.d` beside it, in name order.
    ///
    /// A section (`[agent]`, `[entity.NAME]`, `[action.NAME]`) stands in one file; in two it is refused.
    ///
    /// # Errors
    /// [`ConfigError`] naming the file, the key and the reason.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let mut whole = file::ConfigTables::default();
        whole.add(path)?;
        for more in file::conf_d(path)? {
            whole.add(&more)?;
        }
        validate::check(path, whole)
    }
}

#[cfg(test)]
mod tests;
