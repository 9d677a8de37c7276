//! The agent's configuration: one TOML file and a `conf.d` beside it, every value checked before anything starts.

mod command;
mod config_path;
pub mod data_store;
mod dns;
pub mod ensembles;
mod error;
mod file;
pub mod files;
mod http;
mod kinds;
mod needs;
mod probe;
pub mod recipe;
mod runner;
pub mod service;
pub mod services;
mod settings;
pub(crate) mod validate;

use std::path::Path;

use bellwether_rt::config_error::ConfigError;

pub use settings::{BootCommands, Config, DEFAULT_DATA_DIR, OnExit};

impl Config {
    /// Whether an entity has files that are rendered from params.
    #[must_use]
    pub fn renders_files(&self) -> bool {
        self.entities.values().any(|recipe| matches!(recipe.kind, recipe::RecipeKind::Files(_)))
    }

    /// The configuration in `path`, with every `*.toml` of the directory `conf.d` beside it, in name order.
    ///
    /// A section (`[agent]`, `[entity.NAME]`, `[action.NAME]`) may be in one file only.
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
