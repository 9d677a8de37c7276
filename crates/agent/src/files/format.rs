//! What a file says: the chosen part of the catalogue in a format that others know, or as a template sees it. The same
//! catalogue always gives the same text.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::instance;
use bellwether_core::catalogue::need::RequiredState;
use bellwether_core::catalogue::selection::CatalogueSelection;
use serde::Serialize;

use crate::config::files::Format;

/// What files that may have comments begin with.
const NOTICE: &str =
    "# Written by bellwether from the catalogue of services; what is changed here is lost.\n";

/// An instance as JSON and templates have it: without reasons and times, which change while nothing else does.
#[derive(Debug, Serialize)]
pub(super) struct InstanceView<'a> {
    node: &'a str,
    name: &'a str,
    /// The first of its addresses.
    address: Option<IpAddr>,
    addresses: BTreeMap<&'a str, &'a [IpAddr]>,
    port: Option<u16>,
    tags: BTreeSet<&'a str>,
    meta: &'a BTreeMap<String, String>,
    level: &'a str,
}

impl<'a> InstanceView<'a> {
    pub(super) fn of(from: &'a instance::Instance) -> Self {
        Self {
            node: from.node.as_str(),
            name: from.name.as_str(),
            address: from.addresses.all().next(),
            addresses: by_interface(&from.addresses),
            port: from.port,
            tags: from.tags.iter().map(|tag| tag.as_str()).collect(),
            meta: &from.meta,
            level: from.level.as_str(),
        }
    }
}

/// Addresses by the interface's name.
pub(super) fn by_interface(
    addresses: &bellwether_core::words::addresses::Addresses,
) -> BTreeMap<&str, &[IpAddr]> {
    addresses.0.iter().map(|(interface, list)| (interface.as_str(), list.as_slice())).collect()
}

/// The chosen part of a catalogue in a format that others know.
///
/// # Errors
/// Why there is no such text.
pub fn text(format: Format, selection: &CatalogueSelection, catalogue: &Catalogue) -> Result<String, String> {
    match format {
        Format::Hiera => Ok(hiera(selection, catalogue)),
        Format::Json => json(selection, catalogue),
        Format::Env => Ok(env(selection, catalogue)),
    }
}

/// Everything at a level.
#[must_use]
pub const fn everything(level: RequiredState) -> CatalogueSelection {
    CatalogueSelection { services: BTreeSet::new(), level, required: Vec::new() }
}

/// `services::SERVICE::INTERFACE: [ADDRESS, …]`, a mapping that hiera reads.
fn hiera(selection: &CatalogueSelection, catalogue: &Catalogue) -> String {
    let mut text = format!("{NOTICE}---\n");
    let begin = text.len();
    for (name, service) in selection.services(catalogue) {
        let mut interfaces: BTreeMap<&str, BTreeSet<IpAddr>> = BTreeMap::new();
        for instance in selection.instances(service) {
            for (interface, list) in &instance.addresses.0 {
                interfaces.entry(interface.as_str()).or_default().extend(list);
            }
        }
        for (interface, addresses) in interfaces {
            let key = plain(&format!("services::{name}::{interface}"));
            let list: Vec<String> = addresses.into_iter().map(scalar).collect();
            text.push_str(&format!("{key}: [{}]\n", list.join(", ")));
        }
    }
    if text.len() == begin {
        // Comments alone are no mapping, and hiera wants one.
        text.push_str("{}\n");
    }
    text
}

/// A key as YAML reads it without quotes if it can be.
fn plain(key: &str) -> String {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    if key.bytes().all(safe) && !key.ends_with(':') {
        key.to_owned()
    } else {
        format!("'{}'", key.replace('\'', "''"))
    }
}

/// An address as YAML reads it: one with colons could be read as something else.
fn scalar(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"{address}\""),
    }
}

#[derive(Serialize)]
struct JsonDocument<'a> {
    services: BTreeMap<&'a str, Vec<InstanceView<'a>>>,
}

fn json(selection: &CatalogueSelection, catalogue: &Catalogue) -> Result<String, String> {
    let services = selection.services(catalogue).into_iter().map(|(name, service)| {
        (name.as_str(), selection.instances(service).map(InstanceView::of).collect::<Vec<_>>())
    });
    let document = JsonDocument { services: services.collect() };
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    Ok(format!("{text}\n"))
}

/// Variables that a shell and systemd's `EnvironmentFile` read alike: every value is words of letters, digits and
/// `.:[]`, one space apart.
fn env(selection: &CatalogueSelection, catalogue: &Catalogue) -> String {
    let mut text = NOTICE.to_owned();
    for (name, service) in selection.services(catalogue) {
        let variable = name.as_str().replace('-', "_").to_ascii_uppercase();
        let (mut addresses, mut endpoints, mut count) = (BTreeSet::new(), BTreeSet::new(), 0_usize);
        for instance in selection.instances(service) {
            count += 1;
            addresses.extend(instance.addresses.all());
            if let (Some(address), Some(port)) = (instance.addresses.all().next(), instance.port) {
                endpoints.insert(std::net::SocketAddr::new(address, port));
            }
        }
        let words = |all: Vec<String>| all.join(" ");
        let addresses = words(addresses.iter().map(ToString::to_string).collect());
        let endpoints = words(endpoints.iter().map(ToString::to_string).collect());
        text.push_str(&format!(
            "SERVICE_{variable}_COUNT={count}\nSERVICE_{variable}_ADDRESSES=\"{addresses}\"\n\
             SERVICE_{variable}_ENDPOINTS=\"{endpoints}\"\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests;
