use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;
use crate::decide::registrations::absorb;
use crate::records::event::Event;
use crate::records::node::Node;
use crate::records::registrations::{CheckStatus, ServiceRegistration, ServiceRegistrations};
use crate::words::addresses::Addresses;
use crate::words::counter::{Revision, Sequence};
use crate::words::label::Labels;
use crate::words::name::Namespace;
use crate::world::World;

const DAY: u64 = 86_400;

struct Bench {
    world: World,
    revision: u64,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self { world: World::default(), revision: 0 };
        let node = Node {
            name: "web-1".parse().unwrap(),
            labels: Labels::default(),
            key_fingerprint: "00".to_string(),
            next_key_fingerprint: None,
            trust: None,
            joined_at: Timestamp::EPOCH,
            pause: None,
            cordon: None,
            decommissioned: None,
            rescan: Default::default(),
            logical: None,
            services: alloc::vec![crate::access::NamePattern::Any],
        };
        bench.apply(Changeset { writes: vec![Write::put(Record::Node(node))], events: vec![] });
        bench
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&namespace()).unwrap()
    }

    fn apply(&mut self, changeset: Changeset) -> Vec<&'static str> {
        self.revision += 1;
        let revision = Revision::new(self.revision);
        for write in changeset.writes {
            write.apply_to(&mut self.world, &namespace(), revision);
        }
        let kinds = changeset.events.iter().map(|event| event.kind).collect();
        for draft in changeset.events {
            let event = Event {
                sequence: Sequence::new(self.revision),
                time: Timestamp::EPOCH,
                actor: "bellwether".parse().unwrap(),
                kind: draft.kind.into(),
                subject: draft.subject,
                before: draft.before,
                after: draft.after,
                cause: draft.cause,
                caused_by: None,
            };
            self.world.put(&namespace(), Record::Event(event), revision);
        }
        kinds
    }

    /// Registers these services, and only these.
    fn register(&mut self, services: &[&str], day: u64) {
        let registration = ServiceRegistration {
            addresses: None,
            port: None,
            tags: BTreeSet::new(),
            meta: BTreeMap::new(),
            entity: None,
            waits_for: BTreeSet::new(),
            serving: CheckStatus::Passing,
            since: Timestamp::EPOCH,
        };
        let key = |name: &&str| ((*name).parse().unwrap(), (*name).parse().unwrap());
        let instances = services.iter().map(|name| (key(name), registration.clone())).collect();
        let (node, addresses) = ("web-1".parse().unwrap(), Addresses::default());
        let new = ServiceRegistrations { node, addresses, instances };
        let changeset = absorb(self.fleet(), new, at(day)).unwrap();
        self.apply(changeset);
    }

    /// Decides until nothing more is written; the kinds of the events, and the wake.
    fn settle(&mut self, day: u64) -> (Vec<&'static str>, Option<Timestamp>) {
        let mut kinds = Vec::new();
        for _ in 0..4 {
            let verdict = decide(self.fleet(), SERVICES_KEPT, at(day));
            if verdict.changesets.is_empty() {
                return (kinds, verdict.wake);
            }
            for changeset in verdict.changesets {
                kinds.extend(self.apply(changeset));
            }
        }
        panic!("it never settles");
    }

    fn known(&self) -> Vec<&str> {
        let names: Vec<&str> = self.fleet().services.keys().map(ServiceName::as_str).collect();
        let catalogue: Vec<&str> = self.fleet().catalogue.services().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, catalogue);
        names
    }
}

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn at(day: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(day * DAY))
}

#[test]
fn a_service_without_instances_is_forgotten_after_seven_days() {
    let mut bench = Bench::new();
    bench.register(&["db", "web"], 1);
    assert_eq!(bench.settle(1), (vec![], None));
    bench.register(&["web"], 2);
    assert_eq!(bench.settle(2), (vec![], Some(at(9))));
    assert_eq!(bench.settle(8), (vec![], Some(at(9))));
    assert_eq!(bench.known(), ["db", "web"]);
    assert_eq!(bench.settle(9), (vec!["service.forgotten"], None));
    assert_eq!(bench.known(), ["web"]);
    bench.register(&["db", "web"], 10);
    assert_eq!((bench.settle(10), bench.known()), ((vec![], None), vec!["db", "web"]));
}

#[test]
fn a_name_that_was_known_for_less_than_an_hour_is_forgotten_after_one() {
    let mut bench = Bench::new();
    bench.register(&["tried"], 1);
    bench.register(&[], 1);
    let (kinds, wake) = bench.settle(1);
    assert_eq!((kinds, wake), (vec![], Some(at(1).plus(SHORT_LIVED))));
    assert_eq!((bench.settle(2).0, bench.known()), (vec!["service.forgotten"], vec![]));
}

#[test]
fn an_instance_in_time_keeps_its_service() {
    let mut bench = Bench::new();
    bench.register(&["db"], 1);
    bench.register(&[], 2);
    assert_eq!(bench.settle(2).1, Some(at(9)));
    bench.register(&["db"], 8);
    assert_eq!(bench.settle(9), (vec![], None));
    bench.register(&[], 10);
    assert_eq!(bench.settle(10).1, Some(at(17)), "the time counts from the last instance");
}

#[test]
fn a_registration_at_the_moment_of_forgetting_wins() {
    let mut bench = Bench::new();
    bench.register(&["db"], 1);
    bench.register(&[], 1);
    bench.settle(1);
    let verdict = decide(bench.fleet(), SERVICES_KEPT, at(8));
    bench.register(&["db"], 8);
    for changeset in verdict.changesets {
        assert_eq!(bench.apply(changeset), ["service.forgotten"]);
    }
    assert!(bench.fleet().catalogue.service(&"db".parse().unwrap()).is_some());
    assert_eq!((bench.settle(8), bench.known()), ((vec![], None), vec!["db"]));
}

#[test]
fn a_world_that_is_loaded_knows_when_a_service_was_last_forgotten() {
    let mut bench = Bench::new();
    bench.register(&["db"], 1);
    bench.register(&[], 1);
    bench.settle(1);
    assert_eq!(bench.settle(8).0, ["service.forgotten"]);
    assert_eq!(bench.fleet().service_forgotten_at, Revision::new(bench.revision));
    assert_eq!(bench.fleet().catalogue_log.last(), Revision::new(bench.revision));
}
