//! Opens the store that the configuration names.

use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;

use super::error::RunError;
use crate::config::Config;

/// Opens the store that the configuration names.
pub(crate) async fn open_store(config: &Config, tasks: &Tasks) -> Result<Store, RunError> {
    Ok(match &config.etcd {
        None => Store::embedded(&config.data_dir.join("store"), tasks)?,
        Some(etcd) => Store::etcd(etcd.settings(), tasks).await?,
    })
}

/// Opens the store that the configuration names, to read it: a store in the data directory is left as it is, and may be read-only.
pub(crate) async fn open_store_to_look(config: &Config, tasks: &Tasks) -> Result<Store, RunError> {
    match &config.etcd {
        None => Ok(Store::embedded_to_look(&config.data_dir.join("store"), tasks)?),
        Some(_) => open_store(config, tasks).await,
    }
}
