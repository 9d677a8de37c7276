//! `[dns]`: where this machine answers for names, what they are called, and who is asked about others.

use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_dns::settings::{DnsConfig, DnsSettings};

use super::config_path::ConfigPath;
use super::error::ConfigError;
use super::file;

/// What DNS on this machine is made of.
pub(super) fn names(
    place: &ConfigPath,
    dns: &file::DnsTable,
    (namespace, node): (&Namespace, &NodeName),
) -> Result<DnsConfig, ConfigError> {
    let file::DnsTable { listen, domain, datacentre, ttl, negative_ttl, forward } = dns.clone();
    let setting = DnsSettings { listen, domain, datacentre, ttl, negative_ttl, forward };
    let checked = setting.check(namespace.as_str(), node.clone());
    checked.map_err(|wrong| place.at(wrong.key).refuse(wrong.reason))
}
