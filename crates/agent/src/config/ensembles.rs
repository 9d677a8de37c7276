//! `[ensembles]`: whether this node runs members of ensembles, with which programs, and where their data are.

use std::path::{Path, PathBuf};

use bellwether_rt::config_error::ConfigError;

use super::command::directory;
use super::config_path::ConfigPath;
use super::file::EnsemblesTable;

/// How this node runs members of ensembles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnsembleSettings {
    /// The program of etcd; one without `/` is looked up in the `PATH` of commands.
    pub etcd: String,
    /// Where the directories of members are. They belong to the agent.
    pub dir: PathBuf,
}

/// Reads the section.
pub(super) fn ensembles(
    place: &ConfigPath<'_>,
    table: EnsemblesTable,
    data_dir: &Path,
) -> Result<EnsembleSettings, ConfigError> {
    let etcd = table.etcd.unwrap_or_else(|| "etcd".to_owned());
    if etcd.is_empty() || (etcd.contains('/') && !etcd.starts_with('/')) {
        let reason = format!("{etcd:?} is neither the name of a program nor an absolute path");
        return Err(place.at("etcd").refuse(reason));
    }
    let dir = table.dir.unwrap_or_else(|| data_dir.join("ensembles"));
    let dir = directory(&dir).map_err(|reason| place.at("dir").refuse(reason))?;
    Ok(EnsembleSettings { etcd, dir })
}
