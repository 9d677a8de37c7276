//! The table `[sinks]`: where sinks may send events.

use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::words::address_range::AddressRange;
use bellwether_rt::config_error::ConfigError;
use serde::Deserialize;

use crate::sinks::addresses::AddressRules;
use crate::sinks::settings::SinkSettings;

/// The table `[sinks]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    directory: Option<PathBuf>,
    allow_addresses: Option<Vec<String>>,
    ca_file: Option<PathBuf>,
}

impl Table {
    pub(super) fn check(self) -> Result<SinkSettings, ConfigError> {
        if let Some(directory) = self.directory.as_ref().filter(|directory| !directory.is_absolute()) {
            let reason = format!("{} is not an absolute path", directory.display());
            return Err(ConfigError::value("sinks.directory", reason));
        }
        let allowed = ranges("sinks.allow_addresses", self.allow_addresses)?;
        let addresses = Arc::new(AddressRules::of_sinks(allowed));
        Ok(SinkSettings { directory: self.directory, addresses, ca_file: self.ca_file })
    }
}

/// The addresses of a list.
pub(super) fn ranges(key: &str, list: Option<Vec<String>>) -> Result<Vec<AddressRange>, ConfigError> {
    let ranges = list.unwrap_or_default();
    let read = ranges.iter().map(|text| text.parse()).collect::<Result<_, String>>();
    read.map_err(|reason| ConfigError::value(key, reason))
}
