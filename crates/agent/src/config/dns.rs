//! `[dns]`: where this machine answers for names, what they are called, and who is asked about others.

use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_dns::setting::{Names, Setting};

use super::ConfigError;
use super::check::Place;
use super::file;

/// What DNS on this machine is made of.
pub(super) fn names(
    place: &Place,
    dns: &file::Dns,
    (namespace, node): (&Namespace, &NodeName),
) -> Result<Names, ConfigError> {
    let file::Dns { listen, domain, datacentre, ttl, negative_ttl, forward } = dns.clone();
    let setting = Setting { listen, domain, datacentre, ttl, negative_ttl, forward };
    let checked = setting.check(namespace.as_str(), node.clone());
    checked.map_err(|wrong| place.at(wrong.key).refuse(wrong.reason))
}
