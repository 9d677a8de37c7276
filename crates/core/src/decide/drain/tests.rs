use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::records::annotation::Annotation;
use crate::records::node::{Cordon, DrainBudget, Presence, PresenceState};
use crate::records::registrations::{CheckStatus, ServiceRegistration, ServiceRegistrations};
use crate::words::addresses::Addresses;
use crate::words::label::Labels;
use crate::words::name::{Namespace, ServiceName};
use crate::words::percent::{Amount, Percent};
use crate::words::time::Span;
use crate::world::World;

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(seconds))
}

/// A namespace of nodes with services, and the kinds and causes of what was decided.
#[derive(Default)]
struct Setup {
    world: World,
    events: Vec<String>,
}

impl Setup {
    fn put(&mut self, record: Record) {
        let revision = self.world.revision.next();
        self.world.put(&Namespace::parse("default").unwrap(), record, revision);
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&Namespace::parse("default").unwrap()).unwrap()
    }

    /// A node that is up, with one instance of each of these services; `true` is a healthy one.
    fn node(&mut self, name: &str, services: &[(&str, bool)]) {
        self.cordon(name, None);
        let presence = Presence { contact: PresenceState::Up, since: at(0), server: None };
        self.put(Record::Presence(name.parse().unwrap(), presence));
        let failing = CheckStatus::Failing { reason: "refused".into() };
        let registration = |healthy: bool| ServiceRegistration {
            addresses: None,
            port: None,
            tags: BTreeSet::new(),
            meta: BTreeMap::new(),
            entity: None,
            waits_for: BTreeSet::new(),
            serving: if healthy { CheckStatus::Passing } else { failing.clone() },
            since: at(0),
        };
        let instances = services.iter().map(|(service, healthy)| {
            ((service.parse().unwrap(), "one".parse().unwrap()), registration(*healthy))
        });
        self.put(Record::Registrations(ServiceRegistrations {
            node: name.parse().unwrap(),
            addresses: Addresses::default(),
            instances: instances.collect(),
        }));
    }

    fn cordon(&mut self, name: &str, cordon: Option<Cordon>) {
        self.put(Record::Node(Node {
            name: name.parse().unwrap(),
            labels: Labels::default(),
            joined_at: at(0),
            key_fingerprint: String::new(),
            next_key_fingerprint: None,
            trust: None,
            pause: None,
            cordon,
            decommissioned: None,
            rescan: Default::default(),
            logical: None,
            services: alloc::vec![crate::access::NamePattern::Any],
        }));
    }

    fn drain(&mut self, name: &str, max_unavailable: Amount, deadline: u64) {
        let annotation = Annotation { by: "kim".parse().unwrap(), at: at(0), reason: "disk".into() };
        let budget = DrainBudget { max_unavailable, deadline: at(deadline) };
        self.cordon(name, Some(Cordon { annotation, drain: Some(Drain::Waiting(budget)) }));
    }

    /// Decides once and applies the verdict; answers when the decider wants to run again.
    fn decide(&mut self, watched: u64, now: u64) -> Option<Timestamp> {
        let verdict = decide(self.fleet(), at(watched), at(now));
        for changeset in verdict.changesets {
            for write in changeset.writes {
                let revision = self.world.revision.next();
                write.apply_to(&mut self.world, &Namespace::parse("default").unwrap(), revision);
            }
            self.events.extend(changeset.events.iter().map(|event| {
                let name = event.subject.strip_prefix("node/").unwrap();
                format!("{} {name}: {}", event.kind, event.cause)
            }));
        }
        verdict.wake
    }

    fn drained(&self) -> Vec<&str> {
        let drained = |cordon: &Cordon| cordon.is_drained();
        let nodes =
            self.fleet().nodes.values().filter(|kept| kept.value.cordon.as_ref().is_some_and(drained));
        nodes.map(|kept| kept.value.name.as_str()).collect()
    }

    fn unavailable(&self, service: &str) -> usize {
        let service = self.fleet().catalogue.service(&service.parse::<ServiceName>().unwrap());
        service.map_or(0, |service| service.addressable() - service.functional())
    }

    fn waits(&self, name: &str) -> Option<String> {
        self.fleet().why_drain_waits(&name.parse().unwrap())
    }
}

const NAMES: [&str; 6] = ["n1", "n2", "n3", "n4", "n5", "n6"];

#[test]
fn of_six_nodes_of_a_service_one_is_drained_at_a_time() {
    let mut setup = Setup::default();
    for name in NAMES {
        setup.node(name, &[("shop", true)]);
    }
    for name in NAMES {
        setup.drain(name, Amount::Count(1), 3_600);
    }
    assert_eq!(setup.decide(0, 1), Some(at(3_600)));
    assert_eq!(setup.drained(), ["n1"]);
    assert_eq!(
        setup.waits("n2").unwrap(),
        "1 of 6 instances of service shop is unavailable, at most 1 may be"
    );
    assert_eq!(setup.events, ["node.drained n1: drained by kim: disk"]);

    setup.cordon("n1", None);
    setup.decide(0, 2);
    assert_eq!(setup.drained(), ["n2"], "the next one follows when the first is back");
}

#[test]
fn nodes_that_serve_nothing_or_only_what_is_down_already_are_drained_at_once() {
    let mut setup = Setup::default();
    setup.node("n1", &[]);
    setup.node("n2", &[("shop", false)]);
    setup.node("n3", &[("shop", true)]);
    for name in ["n1", "n2", "n3"] {
        setup.drain(name, Amount::Count(1), 3_600);
    }
    setup.decide(0, 1);
    assert_eq!(setup.drained(), ["n1", "n2"]);
    assert!(setup.waits("n3").unwrap().starts_with("1 of 2 instances of service shop"));
}

#[test]
fn a_drain_that_still_waits_at_its_deadline_is_given_up_and_the_node_stays_cordoned() {
    let mut setup = Setup::default();
    setup.node("n1", &[("shop", true)]);
    setup.node("n2", &[("shop", false)]);
    setup.drain("n1", Amount::Count(1), 60);
    assert_eq!(setup.decide(0, 59), Some(at(60)));
    assert_eq!(setup.decide(0, 60), None);
    assert_eq!(setup.drained(), [""; 0]);
    let node = setup.fleet().active_node(&"n1".parse().unwrap()).unwrap();
    assert_eq!(node.value.cordon.as_ref().unwrap().line(), "cordoned by kim: disk");
    assert_eq!(
        setup.events,
        ["node.drain_failed n1: deadline of the drain passed: 1 of 2 instances of service shop is \
          unavailable, at most 1 may be; requested by kim: disk"]
    );
}

#[test]
fn after_an_outage_nothing_is_decided_before_every_node_could_report() {
    let mut setup = Setup::default();
    setup.node("n1", &[("shop", true)]);
    setup.drain("n1", Amount::Count(1), 60);
    assert_eq!(setup.decide(130, 100), Some(at(130)));
    assert_eq!(setup.events, [""; 0], "neither drained nor given up");
    setup.decide(130, 130);
    assert_eq!(setup.drained(), ["n1"], "tried once more before it is given up");
}

proptest! {
    /// However many drains are requested: no service has more unavailable instances than the budget allows, unless it
    /// had before; and a drain waits only for a reason.
    #[test]
    fn drains_keep_to_the_budget_and_wait_for_a_reason(
        has in prop::collection::vec(prop::collection::vec(prop::option::of(any::<bool>()), 3), NAMES.len()),
        requested in prop::collection::vec(any::<bool>(), NAMES.len()),
        most in prop_oneof![
            (1_u32..4).prop_map(Amount::Count),
            (1_u8..=100).prop_filter_map("a percentage", |percent| Percent::new(percent).map(Amount::Share)),
        ],
    ) {
        let mut setup = Setup::default();
        let services = ["a", "b", "c"];
        for (name, has) in NAMES.iter().zip(&has) {
            let own = services.iter().zip(has).filter_map(|(service, has)| Some((*service, (*has)?)));
            setup.node(name, &own.collect::<Vec<_>>());
        }
        let before = services.map(|service| setup.unavailable(service));
        for (name, _) in NAMES.iter().zip(&requested).filter(|(_, requested)| **requested) {
            setup.drain(name, most, 60);
        }
        setup.decide(0, 1);
        let settled = setup.events.len();
        setup.decide(0, 2);
        prop_assert_eq!(setup.events.len(), settled, "one pass decides all that it can");
        for (service, before) in services.iter().zip(before) {
            let name = service.parse::<ServiceName>().unwrap();
            let total = setup.fleet().catalogue.service(&name).map_or(0, |service| service.addressable());
            let allowed = usize::try_from(most.of_at_least_one(total as u64)).unwrap();
            prop_assert!(setup.unavailable(service) <= before.max(allowed), "{service}");
        }
        for name in setup.fleet().drains.iter() {
            prop_assert!(setup.fleet().why_drain_waits(name).is_some(), "{name} waits without a reason");
        }
        setup.decide(0, 60);
        prop_assert!(setup.fleet().drains.is_empty(), "none waits beyond its deadline");
    }
}
