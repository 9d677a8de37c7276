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
    let dns = dns.clone();
    let setting = DnsSettings {
        listen: dns.listen,
        domain: dns.domain,
        datacentre: dns.datacentre,
        ttl: dns.ttl,
        negative_ttl: dns.negative_ttl,
        forward: dns.forward,
        allow: dns.allow,
        answers_per_second: dns.answers_per_second,
    };
    let checked = setting.check(namespace.as_str(), node.clone());
    checked.map_err(|wrong| place.at(wrong.key).refuse(wrong.reason))
}
