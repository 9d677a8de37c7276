//! Opens the store that the configuration names.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bellwether_rt::tasks::Tasks;
use bellwether_store::{EtcdSettings, Store};

use super::error::RunError;
use crate::config::Config;

/// Opens the store that the configuration names.
pub(crate) async fn open_store(config: &Config, tasks: &Tasks) -> Result<Store, RunError> {
    Ok(match &config.etcd {
        None => Store::embedded(&config.data_dir.join("store"), tasks)?,
        Some(etcd) => Store::etcd(etcd.settings(&config.data_dir), tasks).await?,
    })
}

/// Opens the store that the configuration names, to read it: a store in the data directory is left as it is, and may be read-only.
pub(crate) async fn open_store_to_look(config: &Config, tasks: &Tasks) -> Result<Store, RunError> {
    match &config.etcd {
        None => Ok(Store::embedded_to_look(&config.data_dir.join("store"), tasks)?),
        // Whoever looks need not be able to write there.
        Some(etcd) => {
            let settings = EtcdSettings { follow_every: None, ..etcd.settings(&config.data_dir) };
            Ok(Store::etcd(settings, tasks).await?)
        }
    }
}

/// The directory of the embedded store; `None` if there is none.
///
/// # Errors
/// [`RunError`] when nobody can say: this user may not look, or the data directory is a file.
pub(crate) fn own_store(data_dir: &Path) -> Result<Option<PathBuf>, RunError> {
    let store = data_dir.join("store");
    match std::fs::metadata(&store) {
        Ok(found) if found.is_dir() => Ok(Some(store)),
        Err(source) if source.kind() == ErrorKind::PermissionDenied => {
            Err(RunError::NotAllowed { path: data_dir.to_owned(), source })
        }
        Err(source) if source.kind() == ErrorKind::NotADirectory => {
            Err(RunError::NotDirectory { dir: data_dir.to_owned() })
        }
        Ok(_) | Err(_) => Ok(None),
    }
}
