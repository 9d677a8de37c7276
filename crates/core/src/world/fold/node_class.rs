//! The class of each node (presence, paused, failing, refusing orders, failing instances), which the tally counts.

use super::super::fleet::Fleet;
use super::super::tally::{NodeClass, NodeTally};
use crate::records::node::{Cordon, PresenceState};
use crate::records::registrations::ServiceRegistration;
use crate::records::status::Status;
use crate::words::name::{InstanceName, NodeName, ServiceName};

impl Fleet {
    /// The class of a node; `None` if it is not counted.
    pub(super) fn node_class(&self, name: &NodeName) -> Option<NodeClass> {
        let node = self.active_node(name).filter(|node| node.value.logical.is_none())?;
        let contact = self.presences.get(name).map_or(PresenceState::Never, |kept| kept.value.contact);
        let report = self.reports.get(name);
        let is_failing = report.is_some_and(|kept| kept.value.statuses.values().any(Status::is_failed));
        let failing_instances = self.failing_instances(name).count() as u64;
        Some(NodeClass {
            contact,
            is_paused: self.holds(&node.value),
            is_failing,
            is_refusing: self.order_refusal(name).is_some(),
            failing_instances,
        })
    }

    /// The failing service instances of a node, by service and name; none of a node that is decommissioned, drained or
    /// unreachable.
    pub fn failing_instances(
        &self,
        name: &NodeName,
    ) -> impl Iterator<Item = (&(ServiceName, InstanceName), &ServiceRegistration)> {
        let reports = self.presences.get(name).is_none_or(|kept| match kept.value.contact {
            PresenceState::Up | PresenceState::Suspect => true,
            PresenceState::Unreachable | PresenceState::Never => false,
        });
        let node = self.active_node(name).filter(|_| reports);
        let node = node.filter(|kept| !kept.value.cordon.as_ref().is_some_and(Cordon::is_drained));
        let registrations = node.and_then(|_| self.registrations.get(name));
        let instances = registrations.into_iter().flat_map(|kept| &kept.value.instances);
        let instances = instances
            .filter(move |((service, _), _)| node.is_some_and(|kept| kept.value.may_register(service)));
        instances.filter(|(_, registration)| registration.serving.is_failing())
    }

    /// The tally of all nodes, counted from scratch.
    pub(super) fn count_nodes(&self) -> NodeTally {
        let mut tally = NodeTally::default();
        for name in self.nodes.keys() {
            tally.moved(None, self.node_class(name));
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::records::annotation::Annotation;
    use crate::records::key::{Key, LocatedRecord, Record};
    use crate::records::node::{Drain, Node, Presence};
    use crate::records::pause::NodePause;
    use crate::records::registrations::{CheckStatus, ServiceRegistrations};
    use crate::records::report::Report;
    use crate::records::status::{ORDERS, StatusState};
    use crate::words::addresses::Addresses;
    use crate::words::counter::{Generation, Revision};
    use crate::words::label::Labels;
    use crate::words::name::{Actor, Category, Namespace, PauseName};
    use crate::words::selector::Selector;
    use crate::words::time::Timestamp;
    use crate::world::World;

    const NODES: [&str; 3] = ["db-1", "web-1", "web-2"];

    fn namespace() -> Namespace {
        Namespace::parse("default").unwrap()
    }

    fn name(which: usize) -> NodeName {
        NodeName::parse(NODES[which]).unwrap()
    }

    fn mark() -> Annotation {
        Annotation { by: Actor::parse("kim").unwrap(), at: Timestamp::EPOCH, reason: "disk".into() }
    }

    fn registrations(node: NodeName, passing: bool) -> ServiceRegistrations {
        let key = ("web".parse().unwrap(), "one".parse().unwrap());
        let serving = if passing { CheckStatus::Passing } else { CheckStatus::Failing { reason: "".into() } };
        let registration = ServiceRegistration {
            addresses: None,
            port: None,
            tags: BTreeSet::new(),
            meta: BTreeMap::new(),
            entity: None,
            waits_for: BTreeSet::new(),
            serving,
            since: Timestamp::EPOCH,
        };
        ServiceRegistrations {
            node,
            addresses: Addresses::default(),
            instances: BTreeMap::from([(key, registration)]),
        }
    }

    /// A node; `how` says which of its forms.
    fn machine(name: NodeName, how: usize) -> Node {
        let is = |bit: usize| how & bit != 0;
        Node {
            name,
            labels: Labels::default(),
            joined_at: Timestamp::EPOCH,
            key_fingerprint: "".into(),
            next_key_fingerprint: None,
            trust: None,
            pause: is(1).then(mark),
            cordon: is(1).then(|| Cordon {
                annotation: mark(),
                drain: is(4).then_some(Drain::Drained(Timestamp::EPOCH)),
            }),
            decommissioned: is(2).then(mark),
            rescan: Default::default(),
            logical: None,
            services: alloc::vec![crate::access::NamePattern::Any],
        }
    }

    /// A change of one kind; `how` says which of its forms.
    fn change(kind: usize, which: usize, how: usize) -> (Key, Option<Record>) {
        let (name, is) = (name(which), |bit: usize| how & bit != 0);
        let gone = is(4) && is(2);
        let put = |record: Record| (record.key(), Some(record));
        match kind {
            0 if gone => (Key::Node(name), None),
            0 => put(Record::Node(machine(name, how))),
            1 if gone => (Key::Presence(name), None),
            1 => {
                let contact = [
                    PresenceState::Never,
                    PresenceState::Up,
                    PresenceState::Suspect,
                    PresenceState::Unreachable,
                ][how % 4];
                put(Record::Presence(name, Presence { contact, since: Timestamp::EPOCH, server: None }))
            }
            2 if gone => (Key::Report(name), None),
            2 => {
                let state = if is(1) { StatusState::Failed } else { StatusState::Success };
                let status = Status { silent: is(2), ..Status::new(state, Timestamp::EPOCH, "".into()) };
                put(Record::Report(Report {
                    node: name,
                    received_at: Timestamp::EPOCH,
                    agent_version: "1".into(),
                    generation: Generation::ZERO,
                    ledger: None,
                    ledger_since: Default::default(),
                    sequence: 0,
                    entities: BTreeMap::new(),
                    features: Default::default(),
                    deleted: BTreeMap::new(),
                    statuses: BTreeMap::from([(Category::parse(["disk", ORDERS][how / 4]).unwrap(), status)]),
                }))
            }
            3 if gone => (Key::Registrations(name), None),
            3 => put(Record::Registrations(registrations(name, is(1)))),
            _ => {
                let name = PauseName::parse(["all", "some"][which % 2]).unwrap();
                let nodes = Selector::parse(["all", "name in (web-1,web-2)"][which % 2]).unwrap();
                let pause =
                    NodePause { name: name.clone(), nodes, annotation: mark(), labels: Labels::default() };
                if is(2) { put(Record::Pause(pause)) } else { (Key::Pause(name), None) }
            }
        }
    }

    proptest! {
        #[test]
        fn a_tally_grown_by_any_changes_is_what_counting_all_nodes_says(
            changes in prop::collection::vec((0..5_usize, 0..3_usize, 0..8_usize), 0..60),
        ) {
            let mut world = World::default();
            let mut kept: Vec<Record> = Vec::new();
            for (number, (kind, which, how)) in changes.into_iter().enumerate() {
                let revision = Revision::new(number as u64 + 1);
                let (key, record) = change(kind, which, how);
                                kept.retain(|record| record.key() != key);
                match record {
                    Some(record) => {
                        kept.push(record.clone());
                        world.put(&namespace(), record, revision);
                    }
                    None => world.delete(&namespace(), &key, revision),
                }
                let fleet = world.fleets.get(&namespace()).unwrap();
                prop_assert_eq!(&fleet.tally, &fleet.count_nodes());
            }
            let grown = world.fleets.get(&namespace()).map(|fleet| fleet.tally.clone()).unwrap_or_default();
            let records = kept.into_iter().map(|record| (LocatedRecord::Namespaced(namespace(), record), Revision::new(1)));
            let loaded = World::load(records, world.revision);
            let loaded = loaded.fleets.get(&namespace()).map(|fleet| fleet.tally.clone()).unwrap_or_default();
            prop_assert_eq!(grown, loaded);
        }
    }
}
