//! Targets in the format of Prometheus' HTTP service discovery: one group for each instance, so that each has
//! its own labels.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bellwether_core::catalogue::CatalogueService;
use bellwether_core::catalogue::instance::Instance;
use bellwether_core::words::name::{Namespace, ServiceName, Tag};
use serde::{Deserialize, Serialize};

/// Prefix of every label. After relabelling, Prometheus drops labels that begin with two underscores.
const PREFIX: &str = "__meta_bellwether_";

/// Targets with the same labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TargetGroup {
    /// Address and port of each target, as `host:port`.
    pub targets: Vec<String>,
    /// Labels of the targets; every name begins with `__meta_bellwether_`.
    pub labels: BTreeMap<String, String>,
}

/// The instances of a service that have all of `tags`, whether or not they are functional, so that Prometheus
/// can scrape instances that fail. An instance without a port or an address cannot be scraped and is left
/// out.
#[must_use]
pub fn groups(
    namespace: &Namespace,
    name: &ServiceName,
    service: &CatalogueService,
    tags: &[Tag],
) -> Vec<TargetGroup> {
    let wanted = service.instances().filter(|instance| tags.iter().all(|tag| instance.tags.contains(tag)));
    wanted.filter_map(|instance| group(namespace, name, instance)).collect()
}

fn group(namespace: &Namespace, service: &ServiceName, instance: &Instance) -> Option<TargetGroup> {
    let target = SocketAddr::new(instance.addresses.preferred()?, instance.port?);
    let tags: Vec<&str> = instance.tags.iter().map(Tag::as_str).collect();
    let mut labels = BTreeMap::new();
    let mut set = |name: &str, value: &str| labels.insert(format!("{PREFIX}{name}"), value.to_owned());
    for (key, value) in &instance.meta {
        set(&format!("meta_{}", plain(key)), value);
    }
    for tag in &tags {
        set(&format!("tag_{}", plain(tag)), "true");
    }
    // With a comma at both ends, a pattern matches a tag without regard to its position in the list.
    let list = if tags.is_empty() { String::new() } else { format!(",{},", tags.join(",")) };
    set("tags", &list);
    set("namespace", namespace.as_str());
    set("service", service.as_str());
    set("node", instance.node.as_str());
    set("instance", instance.name.as_str());
    set("status", instance.level.as_str());
    Some(TargetGroup { targets: vec![target.to_string()], labels })
}

/// Text as part of a label name: each character that is not allowed becomes `_`.
fn plain(word: &str) -> String {
    word.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}
