//! What an agent finds in its data directory before it starts: that it is its own, and whose node it is.

use std::path::{Path, PathBuf};

use super::error::RunError;
use crate::config::Config;
use crate::disk;
use crate::identity::{Identity, own_files};

/// Makes the data directory and that of the logs, which it answers; refuses one that others can use.
pub(super) fn directories(data_dir: &Path) -> Result<PathBuf, RunError> {
    let logs = data_dir.join("logs");
    for dir in [data_dir, &logs] {
        disk::private_dir(dir).map_err(|source| RunError::Directory { dir: dir.to_owned(), source })?;
    }
    own_files(data_dir).check()?;
    Ok(logs)
}

/// Whether this node has joined, under the configured name, and what it has is its own.
///
/// # Errors
/// [`RunError::Another`] if it joined under another name; [`RunError::NotPrivate`], [`RunError::Identity`].
pub fn has_joined(config: &Config) -> Result<bool, RunError> {
    own_files(&config.data_dir).check()?;
    match identity(config) {
        Ok(_) => Ok(true),
        Err(RunError::NotJoined { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn identity(config: &Config) -> Result<Identity, RunError> {
    let dir = config.data_dir.clone();
    let identity = Identity::load(&dir)?.ok_or(RunError::NotJoined { dir })?;
    if identity.node == config.name && identity.namespace == config.namespace {
        return Ok(identity);
    }
    Err(RunError::Another {
        configured: format!("{}/{}", config.namespace, config.name),
        joined: format!("{}/{}", identity.namespace, identity.node),
    })
}
