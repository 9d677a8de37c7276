use alloc::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::records::key::{LocatedRecord, Record};
use crate::records::node::Node;
use crate::records::registrations::{CheckStatus, ServiceRegistration, ServiceRegistrations};
use crate::records::report::{EntityReport, Report, TargetActivity, TargetHealth};
use crate::words::addresses::Addresses;
use crate::words::counter::{AssignmentNumber, Generation};
use crate::words::name::{Namespace, ServiceName};
use crate::world::World;

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

#[derive(Clone, Copy)]
struct Instance<'a> {
    service: &'a str,
    entity: Option<&'a str>,
    serves: bool,
    waits_for: &'a [&'a str],
}

fn machine(node: &str) -> Record {
    Record::Node(Node {
        name: node.parse().unwrap(),
        labels: Default::default(),
        joined_at: Timestamp::EPOCH,
        key_fingerprint: Default::default(),
        next_key_fingerprint: None,
        trust: None,
        pause: None,
        cordon: None,
        decommissioned: None,
        rescan: Default::default(),
        logical: None,
        services: alloc::vec![crate::access::NamePattern::Any],
    })
}

fn registrations(node: &str, instances: &[Instance<'_>]) -> Record {
    let registration = |instance: &Instance<'_>| {
        let failing = CheckStatus::Failing { reason: "new".into() };
        let registration = ServiceRegistration {
            addresses: None,
            port: None,
            tags: BTreeSet::new(),
            meta: BTreeMap::new(),
            entity: instance.entity.map(|entity| entity.parse().unwrap()),
            waits_for: names(instance.waits_for),
            serving: if instance.serves { CheckStatus::Passing } else { failing },
            since: Timestamp::EPOCH,
        };
        ((instance.service.parse().unwrap(), instance.service.parse().unwrap()), registration)
    };
    let instances = instances.iter().map(registration).collect();
    let (node, addresses) = (node.parse().unwrap(), Addresses::default());
    Record::Registrations(ServiceRegistrations { node, addresses, instances })
}

fn report(node: &str, entities: &[(&str, &[&str])]) -> Record {
    let entity = |(name, waits_for): &(&str, &[&str])| {
        let report = EntityReport {
            answered_at: Default::default(),
            soaked: None,
            soak_failure: None,
            agent_restarted: false,
            running: None,
            answering: AssignmentNumber::ZERO,
            activity: TargetActivity::Nothing,
            health: TargetHealth::NoChecks,
            healthy_since: None,
            waits_for: names(waits_for),
            step: None,
        };
        (name.parse().unwrap(), report)
    };
    Record::Report(Report {
        node: node.parse().unwrap(),
        received_at: Timestamp::EPOCH,
        agent_version: Default::default(),
        generation: Generation::ZERO,
        ledger: None,
        ledger_since: Default::default(),
        sequence: 0,
        entities: entities.iter().map(entity).collect(),
        features: Default::default(),
        deleted: BTreeMap::new(),
        statuses: BTreeMap::new(),
    })
}

fn names(texts: &[&str]) -> BTreeSet<ServiceName> {
    texts.iter().map(|service| service.parse().unwrap()).collect()
}

struct Play(World);

impl Play {
    fn put(&mut self, record: Record) {
        let revision = self.0.revision.next();
        self.0.put(&namespace(), record, revision);
    }

    /// A node that runs `entity`, offers the service of the same name, and lacks these.
    fn node(&mut self, node: &str, entity: &str, serves: bool, waits_for: &[&str]) {
        let instance = Instance { service: entity, entity: Some(entity), serves, waits_for: &[] };
        self.machine(node, &[instance], &[(entity, waits_for)]);
    }

    /// A node that offers a service which belongs to no entity and lacks these.
    fn service(&mut self, node: &str, service: &str, waits_for: &[&str]) {
        let instance = Instance { service, entity: None, serves: waits_for.is_empty(), waits_for };
        self.machine(node, &[instance], &[]);
    }

    fn machine(&mut self, node: &str, instances: &[Instance<'_>], entities: &[(&str, &[&str])]) {
        if !self.fleet().nodes.contains_key(&node.parse().unwrap()) {
            self.put(machine(node));
        }
        self.put(report(node, entities));
        self.put(registrations(node, instances));
    }

    fn fleet(&self) -> &Fleet {
        static NONE: std::sync::LazyLock<Fleet> = std::sync::LazyLock::new(Fleet::default);
        self.0.fleets.get(&namespace()).unwrap_or(&NONE)
    }

    /// Decides, takes it in, and makes sure that deciding again writes nothing; answers what was told.
    fn step(&mut self) -> Vec<(&'static str, alloc::string::String)> {
        let verdict = decide(self.fleet(), Timestamp::EPOCH);
        let events = verdict.changesets.iter().flat_map(|changeset| &changeset.events);
        let events = events.map(|event| (event.kind, event.after.clone().unwrap_or_default())).collect();
        for write in verdict.changesets.into_iter().flat_map(|changeset| changeset.writes) {
            let revision = self.0.revision.next();
            write.apply_to(&mut self.0, &namespace(), revision);
        }
        let again = decide(self.fleet(), Timestamp::EPOCH);
        assert!(again.changesets.is_empty(), "deciding again wrote {:?}", again.changesets);
        events
    }
}

#[test]
fn two_that_wait_for_each_other_are_told_once_and_once_again_when_it_is_over() {
    let mut play = Play(World::default());
    play.node("web-1", "app", false, &["db"]);
    assert_eq!(play.step(), []);
    play.node("db-1", "db", false, &["app"]);
    let wait_cycle = "app (on web-1) waits for db, db (on db-1) waits for app";
    assert_eq!(play.step(), [("wait.cycle_started", wait_cycle.into())]);
    play.node("web-2", "app", false, &["db"]);
    assert_eq!(play.step(), [], "one more in the same circle is no news");
    play.node("db-1", "db", false, &[]);
    assert_eq!(play.step(), [("wait.cycle_ended", wait_cycle.into())]);
}

#[test]
fn a_longer_circle_is_found_once_and_a_chain_is_none() {
    let mut play = Play(World::default());
    play.node("a", "a", false, &["b"]);
    play.node("b", "b", false, &["c"]);
    play.node("c", "c", false, &["d"]);
    assert_eq!(play.step(), []);
    play.node("c", "c", false, &["a", "d"]);
    let events = play.step();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].1.starts_with("a (on a) waits for b, b (on b) waits for c, c (on c) waits for a"));
}

#[test]
fn while_somebody_else_may_come_to_serve_nobody_is_stuck() {
    let mut play = Play(World::default());
    play.node("web-1", "app", false, &["db"]);
    play.node("db-1", "db", false, &["app"]);
    play.node("db-2", "db", false, &[]);
    assert_eq!(play.step(), [], "db-2 waits for nothing");
    play.node("db-2", "db", false, &["app"]);
    assert_eq!(play.step().len(), 1);
}

#[test]
fn one_that_waits_for_itself_is_a_circle_too() {
    let mut play = Play(World::default());
    play.node("db-1", "db", false, &["db"]);
    assert_eq!(play.step(), [("wait.cycle_started", "db (on db-1) waits for db".into())]);
}

#[test]
fn services_without_an_entity_are_told_by_their_own_name() {
    let mut play = Play(World::default());
    play.service("shop-1", "shop", &["bank"]);
    assert_eq!(play.step(), [], "no node registers bank yet");
    play.service("bank-1", "bank", &["shop"]);
    let wait_cycle = "service bank (on bank-1) waits for shop, service shop (on shop-1) waits for bank";
    assert_eq!(play.step(), [("wait.cycle_started", wait_cycle.into())]);
    play.service("bank-1", "bank", &[]);
    assert_eq!(play.step(), [("wait.cycle_ended", wait_cycle.into())]);
}

#[test]
fn a_circle_may_go_through_entities_and_services() {
    let mut play = Play(World::default());
    play.node("app-1", "app", false, &["cache"]);
    play.service("cache-1", "cache", &["db"]);
    assert_eq!(play.step(), []);
    play.node("db-1", "db", false, &["app"]);
    let wait_cycle =
        "app (on app-1) waits for cache, service cache (on cache-1) waits for db, db (on db-1) waits for app";
    assert_eq!(play.step(), [("wait.cycle_started", wait_cycle.into())]);
    // An instance with needs of its own, of an entity that waits as well, is behind both.
    let both = Instance { service: "cache", entity: Some("mem"), serves: false, waits_for: &["db"] };
    play.machine("cache-1", &[both], &[("mem", &["disk"])]);
    assert_eq!(play.step(), [], "that mem may go on helps nobody");
    let free = Instance { waits_for: &[], ..both };
    play.machine("cache-1", &[free], &[("mem", &["disk"])]);
    assert_eq!(play.step().len(), 1, "now cache may come to serve");
}

#[test]
fn everyone_who_is_in_a_circle_is_named_in_one() {
    let mut play = Play(World::default());
    play.service("hub", "hub", &["a", "b", "c"]);
    for spoke in ["a", "b", "c"] {
        play.service(spoke, spoke, &["hub"]);
    }
    play.service("outside", "outside", &["hub"]);
    let events: Vec<_> = play.step().into_iter().map(|(_, wait_cycle)| wait_cycle).collect();
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(
        !events.iter().any(|wait_cycle| wait_cycle.contains("outside")),
        "it waits for a circle, and is in none"
    );
}

#[test]
fn a_machine_that_waits_like_others_has_nothing_looked_for_anew() {
    let mut play = Play(World::default());
    play.node("web-1", "app", false, &["db"]);
    play.node("db-1", "db", false, &["app"]);
    assert_eq!(play.step().len(), 1);
    let before = play.fleet().waits.wait_cycles().clone();
    let is_same = |play: &Play| alloc::sync::Arc::ptr_eq(&before, play.fleet().waits.wait_cycles());
    for number in 2..100 {
        play.node(&alloc::format!("web-{number}"), "app", false, &["db"]);
        assert!(is_same(&play));
    }
    play.service("else-1", "else", &[]);
    assert!(is_same(&play), "what serves and lacks nothing has nothing to do with it");
    let app = Instance { service: "app", entity: Some("app"), serves: true, waits_for: &[] };
    play.put(registrations("web-42", &[app]));
    play.put(report("web-42", &[("app", &[])]));
    assert!(is_same(&play), "others still wait");
    play.node("web-1", "app", true, &[]);
    assert_eq!(play.step(), [], "the cycle is the same, and there is no event");
    let wait_cycle = play.fleet().wait_cycles.as_ref().unwrap().value.0.first().unwrap().to_string();
    assert_eq!(wait_cycle, "app (on web-10) waits for db, db (on db-1) waits for app", "where it waits now");
}

/// Names that things of random fleets have.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A random machine: its instances, and what its entities lack.
#[derive(Debug, Clone)]
struct Random {
    node: usize,
    instances: BTreeMap<usize, (Option<usize>, bool, BTreeSet<usize>)>,
    entities: BTreeMap<usize, BTreeSet<usize>>,
}

fn random() -> impl Strategy<Value = Random> {
    let waits_for = || proptest::collection::btree_set(0..NAMES.len(), 0..3);
    let instance = (proptest::option::of(0..NAMES.len()), proptest::bool::weighted(0.1), waits_for());
    let instances = proptest::collection::btree_map(0..NAMES.len(), instance, 0..3);
    let entities = proptest::collection::btree_map(0..NAMES.len(), waits_for(), 0..3);
    (0..6_usize, instances, entities).prop_map(|(node, instances, entities)| Random {
        node,
        instances,
        entities,
    })
}

fn texts(numbers: &BTreeSet<usize>) -> Vec<&'static str> {
    numbers.iter().map(|number| NAMES[*number]).collect()
}

fn records(of: &Random) -> [Record; 2] {
    let node = alloc::format!("node-{}", of.node);
    let waits_for: Vec<_> = of.instances.values().map(|(_, _, waits_for)| texts(waits_for)).collect();
    let instance =
        |((service, (entity, serves, _)), waits_for): ((&usize, &(Option<usize>, bool, _)), _)| Instance {
            service: NAMES[*service],
            entity: entity.map(|entity| NAMES[entity]),
            serves: *serves,
            waits_for,
        };
    let instances: Vec<_> =
        of.instances.iter().zip(waits_for.iter().map(Vec::as_slice)).map(instance).collect();
    let entities: Vec<_> =
        of.entities.iter().map(|(name, waits_for)| (NAMES[*name], texts(waits_for))).collect();
    let entities: Vec<_> = entities.iter().map(|(name, waits_for)| (*name, waits_for.as_slice())).collect();
    [report(&node, &entities), registrations(&node, &instances)]
}

/// Lets whoever can go on do so, one after the other, until nobody can, and answers whether somebody who waits is left.
fn is_anybody_left(machines: &BTreeMap<usize, Random>) -> bool {
    let mut machines = machines.clone();
    loop {
        let down: BTreeSet<usize> = machines
            .values()
            .flat_map(|of| of.instances.iter().filter(|(_, (_, serves, _))| !serves).map(|(name, _)| *name))
            .collect();
        // Somebody who can come to serve does; all that wait for it are served then.
        let mut served = BTreeSet::new();
        for of in machines.values() {
            for (service, (entity, serves, waits_for)) in &of.instances {
                let waits =
                    entity.and_then(|entity| of.entities.get(&entity)).is_some_and(|all| !all.is_empty());
                if !serves && waits_for.is_empty() && !waits {
                    served.insert(*service);
                }
            }
        }
        let mut turned = false;
        for of in machines.values_mut() {
            let instances = of.instances.values_mut().filter(|(_, serves, _)| !serves);
            for waits_for in of.entities.values_mut().chain(instances.map(|(_, _, waits_for)| waits_for)) {
                let before = waits_for.len();
                waits_for.retain(|service| down.contains(service) && !served.contains(service));
                turned |= waits_for.len() != before;
            }
        }
        if !turned {
            return machines.values().any(|of| {
                let own =
                    of.instances.values().filter(|(_, serves, _)| !serves).any(|(_, _, all)| !all.is_empty());
                own || of.entities.values().any(|waits_for| !waits_for.is_empty())
            });
        }
    }
}

/// Every member waits for what it is said to, and what it waits for is behind the next one.
fn check(wait_cycle: &WaitCycle, machines: &BTreeMap<usize, Random>) {
    let number = |name: &str| NAMES.iter().position(|other| *other == name).unwrap();
    let nexts = wait_cycle.members.iter().cycle().skip(1);
    for (member, next) in wait_cycle.members.iter().zip(nexts) {
        let lacked = number(member.waits_for.as_str());
        let of =
            machines.values().find(|of| alloc::format!("node-{}", of.node) == member.node.as_str()).unwrap();
        let waits_for = match &member.who {
            Waiter::Entity(name) => &of.entities[&number(name.as_str())],
            Waiter::Service(name) => &of.instances[&number(name.as_str())].2,
        };
        assert!(waits_for.contains(&lacked), "{wait_cycle}");
        let is_behind = |of: &Random| match (&next.who, of.instances.get(&lacked)) {
            (Waiter::Entity(name), Some((Some(entity), false, _))) => *entity == number(name.as_str()),
            (Waiter::Service(name), Some((_, false, waits_for))) => {
                *name == member.waits_for && !waits_for.is_empty()
            }
            (_, _) => false,
        };
        assert!(machines.values().any(is_behind), "{wait_cycle}");
    }
}

proptest! {
    #[test]
    fn a_circle_is_found_exactly_when_somebody_waits_who_can_never_go_on(all in proptest::collection::vec(random(), 1..24)) {
        let mut play = Play(World::default());
        let mut machines = BTreeMap::new();
        for number in 0..6 {
            play.put(machine(&alloc::format!("node-{number}")));
        }
        for random in all {
            for record in records(&random) {
                play.put(record);
            }
            machines.insert(random.node, random);
            play.step();
            let events = play.fleet().wait_cycles.iter().flat_map(|kept| &kept.value.0);
            events.for_each(|wait_cycle| check(wait_cycle, &machines));
            let found = play.fleet().waits.wait_cycles();
            prop_assert_eq!(!found.is_empty(), is_anybody_left(&machines));
            // Loaded at once it is as it was folded one by one.
            let nodes = (0..6).map(|number| machine(&alloc::format!("node-{number}")));
            let all = nodes.chain(machines.values().flat_map(records));
            let all = all.map(|record| (LocatedRecord::Namespaced(namespace(), record), crate::words::counter::Revision::new(1)));
            let loaded = World::load(all, crate::words::counter::Revision::new(1));
            prop_assert_eq!(found, loaded.fleets.get(&namespace()).unwrap().waits.wait_cycles());
        }
    }
}
