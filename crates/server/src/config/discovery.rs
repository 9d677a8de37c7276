//! The table `[discovery]`: where lists of members of clusters may be.

use std::path::PathBuf;

use bellwether_rt::config_error::ConfigError;
use serde::Deserialize;

use crate::discovery::settings::DiscoverySettings;
use crate::sinks::settings::SinkSettings;

/// The table `[discovery]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    directory: Option<PathBuf>,
}

impl Table {
    pub(super) fn check(self, sinks: &SinkSettings) -> Result<DiscoverySettings, ConfigError> {
        if let Some(directory) = self.directory.as_ref().filter(|directory| !directory.is_absolute()) {
            let reason = format!("{} is not an absolute path", directory.display());
            return Err(ConfigError::value("discovery.directory", reason));
        }
        Ok(DiscoverySettings::beside(sinks, self.directory))
    }
}
