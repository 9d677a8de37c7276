//! Services that an entity's dynamic part needs: texts like `2 of db`, or tables.

use std::collections::BTreeSet;

use bellwether_core::catalogue::need::{Need, OnTimeout, RequiredState};
use bellwether_rt::config_error::ConfigError;
use serde::Deserialize;

use super::config_path::ConfigPath;

/// Most needs of one entity.
const MOST: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NeedsTable {
    service: String,
    count: Option<u32>,
    level: Option<String>,
    timeout: Option<String>,
    on_timeout: Option<String>,
}

/// Reads all needs; each names another service.
pub(super) fn needs(place: &ConfigPath, values: &[toml::Value]) -> Result<Vec<Need>, ConfigError> {
    if values.len() > MOST {
        return Err(place.refuse(format!("more than {MOST} needs")));
    }
    let (mut needs, mut named) = (Vec::new(), BTreeSet::new());
    for value in values {
        let need = match value {
            toml::Value::String(text) => place.read(text)?,
            toml::Value::Table(table) => {
                let table: Result<NeedsTable, _> = table.clone().try_into();
                of_table(place, &table.map_err(|error| place.refuse(error.message()))?)?
            }
            toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => {
                return Err(place.refuse("write texts like \"2 of db\", or tables with a service"));
            }
        };
        if !named.insert(need.service.clone()) {
            return Err(place.refuse(format!("{} is named twice", need.service)));
        }
        needs.push(need);
    }
    Ok(needs)
}

fn of_table(place: &ConfigPath, table: &NeedsTable) -> Result<Need, ConfigError> {
    let service = place.at("service").read(&table.service)?;
    let count = table.count.unwrap_or(1);
    if count == 0 {
        return Err(place.at("count").refuse("must be at least 1"));
    }
    let level = table.level.as_deref().map(|text| {
        let known = RequiredState::parse(text);
        known.ok_or_else(|| place.at("level").refuse(format!("{text:?} is not functional or addressable")))
    });
    let on_timeout = match table.on_timeout.as_deref() {
        None | Some("fail") => OnTimeout::Fail,
        Some("wait") => OnTimeout::Wait,
        Some(other) => return Err(place.at("on_timeout").refuse(format!("{other:?} is not fail or wait"))),
    };
    if table.on_timeout.is_some() && table.timeout.is_none() {
        return Err(place.at("on_timeout").refuse("set timeout as well"));
    }
    let timeout = table
        .timeout
        .as_deref()
        .map(|text| place.at("timeout").span(Some(text), bellwether_core::words::time::Span::ZERO));
    let (at, timeout) = (level.transpose()?.unwrap_or_default(), timeout.transpose()?);
    Ok(Need { service, count, at, timeout, on_timeout })
}
