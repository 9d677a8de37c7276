//! The tables `[secret_providers.NAME]`: programs that read secrets from elsewhere.

use std::collections::BTreeMap;

use bellwether_core::words::name::ProviderName;
use bellwether_core::words::time::Span;
use bellwether_rt::config_error::ConfigError;
use serde::Deserialize;

use crate::secrets::provider::{DEFAULT_CACHE, DEFAULT_TIMEOUT, ProviderSpec};

const KEY: &str = "secret_providers";

/// One of the tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    command: Vec<String>,
    timeout: Option<String>,
    cache: Option<String>,
}

/// Checks all tables.
pub(super) fn all(
    tables: BTreeMap<String, Table>,
) -> Result<BTreeMap<ProviderName, ProviderSpec>, ConfigError> {
    tables.into_iter().map(|(name, table)| one(&name, table)).collect()
}

fn one(name: &str, table: Table) -> Result<(ProviderName, ProviderSpec), ConfigError> {
    let refuse = |reason: String| ConfigError::value(KEY, format!("{name}: {reason}"));
    let named = ProviderName::parse(name).map_err(|error| ConfigError::value(KEY, error.to_string()))?;
    if table.command.is_empty() {
        return Err(refuse("command is empty; write the program and its arguments".to_owned()));
    }
    let span = |key: &str, text: Option<String>, default: Span| match text {
        None => Ok(default),
        Some(text) => text.parse().map_err(|error| refuse(format!("{key}: {error}"))),
    };
    let spec = ProviderSpec {
        command: table.command,
        timeout: span("timeout", table.timeout, DEFAULT_TIMEOUT)?,
        cache: span("cache", table.cache, DEFAULT_CACHE)?,
    };
    Ok((named, spec))
}
