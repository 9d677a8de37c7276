//! `[dns]`: where this node answers DNS, its zone, and its upstream resolvers.

use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_dns::settings::{DnsConfig, DnsSettings};
use bellwether_rt::config_error::ConfigError;

use super::config_path::ConfigPath;
use super::file;

/// The DNS configuration of this node.
pub(super) fn names(
    place: &ConfigPath,
    dns: &file::DnsTable,
    namespace: &Namespace,
    node: &NodeName,
) -> Result<DnsConfig, ConfigError> {
    let file::DnsTable { listen, domain, datacentre, ttl, negative_ttl, forward } = dns.clone();
    let setting = DnsSettings { listen, domain, datacentre, ttl, negative_ttl, forward };
    let checked = setting.check(namespace.as_str(), node.clone());
    checked.map_err(|wrong| place.at(wrong.key).refuse(wrong.reason))
}
