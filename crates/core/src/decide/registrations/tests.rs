use alloc::collections::BTreeSet;
use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::access::NamePattern;
use crate::catalogue::Catalogue;
use crate::catalogue::instance::InstanceState;
use crate::records::annotation::Annotation;
use crate::records::key::{LocatedRecord, Record};
use crate::records::node::{Node, Presence, PresenceState};
use crate::records::registrations::CheckStatus;
use crate::words::addresses::Addresses;
use crate::words::counter::Revision;
use crate::words::label::Labels;
use crate::words::name::Namespace;
use crate::words::time::Span;
use crate::world::World;

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(seconds))
}

fn node(name: &str, decommissioned: bool) -> Record {
    let mark = Annotation { by: "kim".parse().unwrap(), at: at(0), reason: String::new() };
    Record::Node(Node {
        name: name.parse().unwrap(),
        labels: Labels::default(),
        joined_at: at(0),
        key_fingerprint: String::new(),
        next_key_fingerprint: None,
        trust: None,
        pause: None,
        cordon: None,
        decommissioned: decommissioned.then_some(mark),
        rescan: Default::default(),
        logical: None,
        services: vec![NamePattern::Any],
    })
}

fn presence(name: &str, contact: PresenceState, since: u64) -> Record {
    Record::Presence(name.parse().unwrap(), Presence { contact, since: at(since), server: None })
}

fn registrations(node: &str, instances: &[(&str, CheckStatus)]) -> ServiceRegistrations {
    let registration = |serving: &CheckStatus| ServiceRegistration {
        addresses: None,
        port: Some(80),
        tags: BTreeSet::new(),
        meta: BTreeMap::new(),
        entity: None,
        waits_for: BTreeSet::new(),
        serving: serving.clone(),
        since: at(0),
    };
    let key = |service: &str| (service.parse().unwrap(), "one".parse().unwrap());
    ServiceRegistrations {
        node: node.parse().unwrap(),
        addresses: Addresses::default(),
        instances: instances.iter().map(|(service, serving)| (key(service), registration(serving))).collect(),
    }
}

fn failing(reason: &str) -> CheckStatus {
    CheckStatus::Failing { reason: reason.into() }
}

fn put(world: &mut World, record: Record) {
    let revision = world.revision.next();
    world.put(&namespace(), record, revision);
}

/// Absorbs what a node offers; answers the kinds of the events. Absorbing it again does nothing.
fn registration(world: &mut World, new: ServiceRegistrations, now: u64) -> Vec<&'static str> {
    let Some(changeset) = absorb(world.fleets.get(&namespace()).unwrap(), new.clone(), at(now)) else {
        return vec![];
    };
    let revision = world.revision.next();
    for write in changeset.writes {
        write.apply_to(world, &namespace(), revision);
    }
    assert_eq!(absorb(world.fleets.get(&namespace()).unwrap(), new, at(now + 9)), None, "absorbed again");
    changeset.events.iter().map(|event| event.kind).collect()
}

fn level(world: &World, service: &str, node: &str) -> Option<(InstanceState, u64)> {
    let catalogue = &world.fleets.get(&namespace())?.catalogue;
    let service = catalogue.service(&service.parse().ok()?)?;
    let instance = service.instance(&node.parse().ok()?, &"one".parse().ok()?)?;
    Some((instance.level.clone(), instance.since.as_millis() / 1_000))
}

#[test]
fn only_what_changed_is_written_and_told() {
    let mut world = World::default();
    put(&mut world, node("a", false));
    assert_eq!(
        registration(&mut world, registrations("a", &[("web", failing("new"))]), 1),
        ["service.registered"]
    );
    assert_eq!(
        registration(&mut world, registrations("a", &[("web", failing("new"))]), 2),
        Vec::<&str>::new()
    );
    assert_eq!(
        registration(&mut world, registrations("a", &[("web", CheckStatus::Passing)]), 3),
        ["service.passing"]
    );
    assert_eq!(level(&world, "web", "a"), Some((InstanceState::Passing, 3)));
    let both = [("db", CheckStatus::Passing), ("web", CheckStatus::Passing)];
    assert_eq!(registration(&mut world, registrations("a", &both), 4), ["service.registered"]);
    assert_eq!(level(&world, "web", "a"), Some((InstanceState::Passing, 3)), "since then without a break");
    assert_eq!(registration(&mut world, registrations("a", &[]), 5), ["service.deregistered"; 2]);
    assert_eq!(level(&world, "web", "a"), None);
    let fleet = world.fleets.get(&namespace()).unwrap();
    assert!(fleet.catalogue.service(&"web".parse().unwrap()).is_some(), "its name stays known");
}

#[test]
fn what_a_silent_node_offers_does_not_serve_and_what_a_decommissioned_one_offered_is_gone() {
    let mut world = World::default();
    put(&mut world, node("a", false));
    put(&mut world, presence("a", PresenceState::Up, 0));
    registration(&mut world, registrations("a", &[("web", CheckStatus::Passing)]), 1);
    put(&mut world, presence("a", PresenceState::Suspect, 5));
    assert_eq!(level(&world, "web", "a"), Some((InstanceState::Passing, 1)), "quiet is not silent");
    put(&mut world, presence("a", PresenceState::Unreachable, 15));
    assert_eq!(level(&world, "web", "a"), Some((InstanceState::Unreachable, 15)));
    put(&mut world, presence("a", PresenceState::Up, 20));
    assert_eq!(level(&world, "web", "a"), Some((InstanceState::Passing, 1)));
    put(&mut world, node("a", true));
    assert_eq!(level(&world, "web", "a"), None);
    assert_eq!(
        registration(&mut world, registrations("a", &[("web", failing("late"))]), 30),
        ["service.failing"]
    );
    assert_eq!(level(&world, "web", "a"), None, "no ghost");
}

fn step() -> impl Strategy<Value = (u8, u8, u8)> {
    (0..6_u8, 0..3_u8, 0..8_u8)
}

proptest! {
    #[test]
    fn a_copy_that_takes_in_what_it_lacks_is_the_catalogue_and_so_is_one_that_was_loaded(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut world = World::default();
        put(&mut world, node("n0", false));
        let (mut copy, mut seen) = (Catalogue::default(), Revision::ZERO);
        for (number, (what, which, how)) in (1_u64..).zip(steps) {
            let name = alloc::format!("n{which}");
            match what {
                0 => put(&mut world, node(&name, how == 0)),
                1 => {
                    let contact = [PresenceState::Up, PresenceState::Suspect, PresenceState::Unreachable, PresenceState::Never];
                    put(&mut world, presence(&name, contact[usize::from(how % 4)], number));
                }
                2 => {
                    let fleet = world.fleets.get(&namespace()).unwrap();
                    let last = fleet.catalogue_log.last();
                    match fleet.catalogue_log.after(seen) {
                        Some(changes) => changes.for_each(|change| copy.take(change)),
                        None => {
                            copy = Catalogue::default();
                            fleet.catalogue.whole().for_each(|change| copy.take(&change));
                        }
                    }
                    seen = last;
                    prop_assert_eq!(&copy, &fleet.catalogue);
                }
                _ => {
                    let serving = |bit: u8| if how & bit == 0 { CheckStatus::Passing } else { failing("x") };
                    let all = [("web", serving(1)), ("db", serving(2))];
                    let some = if how & 4 == 0 { &all[..] } else { &all[..1] };
                    drop(registration(&mut world, registrations(&name, some), number));
                }
            }
        }
        let fleet = world.fleets.get(&namespace()).unwrap();
        let mut records: Vec<(Record, Revision)> = Vec::new();
        records.extend(fleet.registrations.values().map(|kept| (Record::Registrations(ServiceRegistrations::clone(&kept.value)), kept.revision)));
        records.extend(fleet.services.values().map(|kept| (Record::Service(KnownService::clone(&kept.value)), kept.revision)));
        records.extend(fleet.nodes.values().map(|kept| (Record::Node(Node::clone(&kept.value)), kept.revision)));
        let presences = fleet.presences.iter();
        records.extend(presences.map(|(name, kept)| (Record::Presence(name.clone(), (*kept.value).clone()), kept.revision)));
        let records = records.into_iter().map(|(record, at)| (LocatedRecord::Namespaced(namespace(), record), at));
        let loaded = World::load(records, world.revision);
        let loaded = loaded.fleets.get(&namespace()).unwrap();
        prop_assert_eq!(&loaded.catalogue, &fleet.catalogue);
        if let Some(changes) = loaded.catalogue_log.after(seen) {
            changes.for_each(|change| copy.take(change));
            prop_assert_eq!(&copy, &loaded.catalogue, "a copy from before the restart lacks something");
        }
    }
}

#[test]
fn a_copy_that_is_too_far_behind_is_told_so() {
    use crate::catalogue::log::{CatalogueChange, CatalogueLog, KEPT};
    let mut log = CatalogueLog::begin(Revision::new(10));
    assert!(log.after(Revision::new(9)).is_none());
    assert_eq!(log.after(Revision::new(10)).unwrap().count(), 0);
    for number in 0..KEPT as u64 + 1 {
        log.add(Revision::new(11 + number), CatalogueChange::ServiceKnown("web".parse().unwrap()));
    }
    assert!(log.after(Revision::new(10)).is_none());
    assert_eq!(log.after(Revision::new(11)).unwrap().count(), KEPT);
}

#[test]
fn what_a_node_may_not_register_is_not_in_the_catalogue_until_it_may() {
    let mut world = World::default();
    let Record::Node(node) = node("a", false) else { panic!("a node") };
    let services =
        |patterns: &[&str]| patterns.iter().map(|text| NamePattern::parse(text).unwrap()).collect();
    put(&mut world, Record::Node(Node { services: services(&["web-*"]), ..node.clone() }));
    let both = [("mysql", CheckStatus::Passing), ("web-eu", CheckStatus::Passing)];
    assert_eq!(
        registration(&mut world, registrations("a", &both), 1),
        ["service.refused", "service.registered"]
    );
    assert_eq!(level(&world, "mysql", "a"), None);
    assert_eq!(level(&world, "web-eu", "a"), Some((InstanceState::Passing, 1)));
    let fleet = world.fleets.get(&namespace()).unwrap();
    assert!(fleet.catalogue.service(&"mysql".parse().unwrap()).is_none());

    put(&mut world, Record::Node(Node { services: services(&["mysql"]), ..node.clone() }));
    assert_eq!(level(&world, "mysql", "a"), Some((InstanceState::Passing, 1)), "as soon as it may");
    assert_eq!(level(&world, "web-eu", "a"), None, "as soon as it may not");
    put(&mut world, Record::Node(Node { services: Vec::new(), ..node }));
    assert_eq!(level(&world, "mysql", "a"), None);
    assert_eq!(registration(&mut world, registrations("a", &[]), 2), Vec::<&str>::new());
}

/// Names of services from one number to another.
fn many(numbers: core::ops::Range<u16>) -> ServiceRegistrations {
    let names: Vec<String> = numbers.map(|number| format!("s{number}")).collect();
    let each: Vec<(&str, CheckStatus)> =
        names.iter().map(|name| (name.as_str(), CheckStatus::Passing)).collect();
    registrations("web-1", &each)
}

#[test]
fn any_registrations_are_absorbed_in_parts_that_fit_into_a_transaction() {
    let mut world = World::default();
    put(&mut world, node("web-1", false));
    for target in [many(0..256), many(0..255), many(256..512), many(300..310), many(0..0)] {
        let mut parts = 0;
        loop {
            let fleet = world.fleets.get(&namespace()).unwrap();
            let (part, is_all) = next_part(fleet, &target);
            assert!(part.instances.len() <= 256);
            let changeset = absorb(fleet, part, at(1)).unwrap();
            assert!(changeset.writes.len() + changeset.events.len() <= 100);
            for write in changeset.writes {
                let revision = world.revision.next();
                write.apply_to(&mut world, &namespace(), revision);
            }
            parts += 1;
            if is_all {
                break;
            }
        }
        assert!(parts <= 12, "{parts}");
        let fleet = world.fleets.get(&namespace()).unwrap();
        let kept = &fleet.registrations.get(&target.node).unwrap().value.instances;
        assert!(kept.keys().eq(target.instances.keys()));
    }
}
