//! Health in the JSON shapes of Consul's API: an instance with its node and the checks of both.

use bellwether_core::catalogue::instance::{Instance, InstanceState};
use bellwether_core::words::name::{NodeName, ServiceName, Tag};
use serde::Serialize;

use super::{Node, Service, View, service_of};

/// Consul's name of the check whether a node is alive.
const NODE_CHECK: &str = "serfHealth";

/// An instance with its node and the checks of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Entry {
    /// The node.
    pub node: Node,
    /// The instance.
    pub service: Service,
    /// Checks of the node and of the instance.
    pub checks: Vec<Check>,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Check {
    /// Node name.
    pub node: String,
    /// Check ID, unique on the node.
    #[serde(rename = "CheckID")]
    pub check_id: String,
    /// Check name.
    pub name: String,
    /// `passing`, `warning` or `critical`.
    pub status: &'static str,
    /// Always empty.
    pub notes: String,
    /// Output of the check.
    pub output: String,
    /// ID of the instance; empty for a check of the node.
    #[serde(rename = "ServiceID")]
    pub service_id: String,
    /// Service name; empty for a check of the node.
    pub service_name: String,
    /// Tags of the instance.
    pub service_tags: Vec<String>,
}

impl View<'_> {
    /// The instances of a service that have all of `tags`; with `passing`, only those whose checks all pass.
    /// As in Consul, an instance with a warning check does not pass.
    #[must_use]
    pub fn health(&self, name: &ServiceName, tags: &[Tag], passing: bool) -> Vec<Entry> {
        let wanted = self
            .instances(name, tags)
            .filter(|instance| !passing || instance.level == InstanceState::Passing);
        let entry = |instance: &Instance| Entry {
            node: self.node(&instance.node),
            service: service_of(name, instance),
            checks: checks(name, instance),
        };
        wanted.map(entry).collect()
    }

    /// The checks of a node and of its instances. A node without instances has no checks: the catalogue does
    /// not contain its connection state.
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

/// The checks of an instance and its node. While the node is unreachable, the result of the instance's checks
/// is not known.
fn checks(service: &ServiceName, instance: &Instance) -> Vec<Check> {
    let (heard, own) = match &instance.level {
        InstanceState::Passing => (true, Some(("passing", ""))),
        InstanceState::Warning { reason } => (true, Some(("warning", &**reason))),
        InstanceState::Failing { reason } => (true, Some(("critical", &**reason))),
        InstanceState::Unreachable => (false, None),
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use bellwether_core::catalogue::Catalogue;
    use bellwether_core::words::addresses::Addresses;
    use bellwether_core::words::time::Timestamp;

    use super::*;
    use crate::v1::http_sd::groups;

    /// A service with one instance of each status, each on its own node, with IPv6; the instance that warns
    /// has no port.
    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        let warning = InstanceState::Warning { reason: "check disk: 91% full".into() };
        let failing = InstanceState::Failing { reason: "check port: refused".into() };
        let levels = [InstanceState::Passing, warning, failing, InstanceState::Unreachable];
        for (number, level) in (1..).zip(levels) {
            let address = format!("fd00::{number}").parse().unwrap();
            let instance = Instance {
                name: "web".parse().unwrap(),
                node: format!("web-{number}").parse().unwrap(),
                addresses: Addresses(BTreeMap::from([("eth0".parse().unwrap(), vec![address])])),
                port: (number != 2).then_some(80),
                tags: BTreeSet::new(),
                meta: BTreeMap::new(),
                level,
                since: Timestamp::EPOCH,
            };
            catalogue.put(&"web".parse().unwrap(), instance);
        }
        catalogue
    }

    #[test]
    fn every_level_has_its_checks_and_an_unreachable_node_has_only_that_one() {
        let (catalogue, datacentre) = (catalogue(), "default".parse().unwrap());
        let view = View { catalogue: &catalogue, datacentre: &datacentre };
        let entries = view.health(&"web".parse().unwrap(), &[], false);
        let said = entries.iter().map(|entry| {
            let checks = entry.checks.iter().map(|check| format!("{}={}", check.check_id, check.status));
            checks.collect::<Vec<_>>().join(" ")
        });
        let expected = [
            "serfHealth=passing service:web=passing",
            "serfHealth=passing service:web=warning",
            "serfHealth=passing service:web=critical",
            "serfHealth=critical",
        ];
        assert_eq!(said.collect::<Vec<_>>(), expected);
        assert_eq!(view.health(&"web".parse().unwrap(), &[], true).len(), 1, "what warns does not pass");
        let output = entries.get(1).and_then(|entry| entry.checks.get(1)).map(|check| check.output.as_str());
        assert_eq!(output, Some("check disk: 91% full"));
        assert!(view.node_health(&"nobody".parse().unwrap()).is_empty());
    }

    #[test]
    fn a_target_without_a_port_is_left_out_and_one_by_ipv6_has_brackets() {
        let catalogue = catalogue();
        let name = "web".parse().unwrap();
        let groups = groups(&"default".parse().unwrap(), &name, catalogue.service(&name).unwrap(), &[]);
        let level =
            |group: &crate::v1::http_sd::TargetGroup| group.labels["__meta_bellwether_status"].clone();
        let found: Vec<String> =
            groups.iter().map(|group| format!("{} {}", group.targets.join(","), level(group))).collect();
        assert_eq!(found, ["[fd00::1]:80 passing", "[fd00::3]:80 failing", "[fd00::4]:80 unreachable"]);
    }
}
