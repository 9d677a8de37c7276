//! Health in Consul's shapes: an instance with its node and their checks.

use bellwether_core::catalogue::instance::{Instance, Level};
use bellwether_core::words::name::{NodeName, ServiceName, Tag};
use serde::Serialize;

use super::{Node, Service, View, service_of};

/// What Consul calls the check that says whether a node is heard from.
const NODE_CHECK: &str = "serfHealth";

/// An instance with its node and their checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Entry {
    /// Its node.
    pub node: Node,
    /// It.
    pub service: Service,
    /// How both do.
    pub checks: Vec<Check>,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Check {
    /// The node.
    pub node: String,
    /// Which one among those of its node.
    #[serde(rename = "CheckID")]
    pub check_id: String,
    /// What a person reads.
    pub name: String,
    /// `passing`, `warning` or `critical`.
    pub status: &'static str,
    /// Nothing.
    pub notes: String,
    /// What it said.
    pub output: String,
    /// The instance; empty for a check of the node.
    #[serde(rename = "ServiceID")]
    pub service_id: String,
    /// Its service.
    pub service_name: String,
    /// Its tags.
    pub service_tags: Vec<String>,
}

impl View<'_> {
    /// The instances of a service that have all of `tags`; those alone whose checks all pass if `passing`, as Consul
    /// has it: one that warns does not.
    #[must_use]
    pub fn health(&self, name: &ServiceName, (tags, passing): (&[Tag], bool)) -> Vec<Entry> {
        let wanted =
            self.instances(name, tags).filter(|instance| !passing || instance.level == Level::Passing);
        let entry = |instance: &Instance| Entry {
            node: self.node(&instance.node),
            service: service_of(name, instance),
            checks: checks(name, instance),
        };
        wanted.map(entry).collect()
    }

    /// The checks of a node and of what it offers. Of a node that offers nothing nobody here knows whether it is heard from,
    /// so it has none.
    #[must_use]
    pub fn node_health(&self, name: &NodeName) -> Vec<Check> {
        let mut found: Vec<Check> =
            self.offered_by(name).flat_map(|(service, instance)| checks(service, instance)).collect();
        found.sort_by(|one, other| {
            (&one.service_id, &one.check_id).cmp(&(&other.service_id, &other.check_id))
        });
        found.dedup();
        found
    }
}

/// What is known of an instance and its node: when the node is not heard from, what the instance's checks say is not known.
fn checks(service: &ServiceName, instance: &Instance) -> Vec<Check> {
    let (heard, own) = match &instance.level {
        Level::Passing => (true, Some(("passing", ""))),
        Level::Warning { reason } => (true, Some(("warning", &**reason))),
        Level::Failing { reason } => (true, Some(("critical", &**reason))),
        Level::Unreachable => (false, None),
    };
    let (status, output) = if heard {
        ("passing", "Agent alive and reachable")
    } else {
        ("critical", "Agent not live or unreachable")
    };
    let node = Check {
        node: instance.node.to_string(),
        check_id: NODE_CHECK.to_owned(),
        name: "Serf Health Status".to_owned(),
        status,
        notes: String::new(),
        output: output.to_owned(),
        service_id: String::new(),
        service_name: String::new(),
        service_tags: Vec::new(),
    };
    let own = own.map(|(status, output)| Check {
        node: instance.node.to_string(),
        check_id: format!("service:{}", instance.name),
        name: format!("Service '{service}' check"),
        status,
        notes: String::new(),
        output: output.to_owned(),
        service_id: instance.name.to_string(),
        service_name: service.to_string(),
        service_tags: instance.tags.iter().map(Tag::to_string).collect(),
    });
    std::iter::once(node).chain(own).collect()
}
