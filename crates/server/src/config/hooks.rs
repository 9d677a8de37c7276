//! The tables `[hooks]` and `[hook_tokens]`: what hooks may be called, and with which tokens.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::words::name::Actor;
use bellwether_rt::config_error::ConfigError;
use serde::Deserialize;

use super::sinks::ranges;
use crate::hooks::settings::{HookSettings, HookToken};
use crate::hooks::url_prefix::UrlPrefix;
use crate::sinks::addresses::AddressRules;

/// How a token is written.
const FORM: &str =
    "write { file = \"/path/of/the/token\", urls = [\"https://host/path\"] }: it is sent to these URLs alone";

/// The table `[hooks]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    ca_file: Option<PathBuf>,
    allow_addresses: Option<Vec<String>>,
}

/// One token of `[hook_tokens]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenTable {
    file: PathBuf,
    urls: Vec<String>,
}

impl Table {
    pub(super) fn check(self, tokens: BTreeMap<String, toml::Value>) -> Result<HookSettings, ConfigError> {
        let allowed = ranges("hooks.allow_addresses", self.allow_addresses)?;
        let tokens = tokens.into_iter().map(token).collect::<Result<_, _>>()?;
        Ok(HookSettings {
            tokens,
            ca_file: self.ca_file,
            addresses: Arc::new(AddressRules::of_hooks(allowed)),
        })
    }
}

fn token((name, value): (String, toml::Value)) -> Result<(Actor, HookToken), ConfigError> {
    let refused = |reason: String| ConfigError::value("hook_tokens", reason);
    let actor = Actor::parse(&name).map_err(|error| refused(error.to_string()))?;
    let TokenTable { file, urls } = value.try_into().map_err(|_| refused(format!("{name}: {FORM}")))?;
    if urls.is_empty() {
        return Err(refused(format!("{name}: urls is empty; name at least one URL that it is sent to")));
    }
    let urls = urls.iter().map(|url| url.parse().map_err(|reason| refused(format!("{name}: {reason}"))));
    Ok((actor, HookToken { file, urls: urls.collect::<Result<Vec<UrlPrefix>, _>>()? }))
}
