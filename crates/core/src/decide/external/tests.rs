use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::records::entity::Entity;
use crate::records::key::{AnyKey, Key, LocatedRecord, Record};
use crate::records::policy::Policy;
use crate::words::counter::Revision;
use crate::words::name::Namespace;
use crate::words::selector::Selector;
use crate::world::World;

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(seconds))
}

fn name(text: &str) -> (EntityName, TargetName) {
    (EntityName::parse("shop").unwrap(), TargetName::parse(text).unwrap())
}

fn staleness(silent: u64, gone: u64) -> StalenessLimits {
    StalenessLimits { unreachable_after: Span::from_secs(silent), remove_after: Span::from_secs(gone) }
}

fn entity(staleness: StalenessLimits) -> Record {
    let entity = Entity::new(name("a").0, Selector::all(), Policy::DEFAULT);
    Record::Entity(Entity { source: TargetSource::External(staleness), ..entity })
}

fn reported(target: &str, seconds: u64) -> Record {
    let (entity, target) = name(target);
    let external = ExternalTarget {
        reported_at: at(seconds),
        healthy_since: Some(at(seconds)),
        ..ExternalTarget::default()
    };
    Record::ExternalTarget(entity, target, external)
}

fn put(world: &mut World, record: Record) {
    let revision = world.revision.next();
    world.put(&namespace(), record, revision);
}

/// Decides once, takes in the verdict, and makes sure that deciding again writes nothing; answers the events' kinds.
fn step(world: &mut World, now: Timestamp) -> Vec<&'static str> {
    let verdict = decide(world.fleets.get(&namespace()).unwrap(), at(0), now);
    let kinds =
        verdict.changesets.iter().flat_map(|changeset| &changeset.events).map(|event| event.kind).collect();
    for write in verdict.changesets.into_iter().flat_map(|changeset| changeset.writes) {
        let revision = world.revision.next();
        write.apply_to(world, &namespace(), revision);
    }
    let again = decide(world.fleets.get(&namespace()).unwrap(), at(0), now);
    assert!(again.changesets.is_empty(), "deciding again wrote {:?}", again.changesets);
    assert!(again.wake.is_none_or(|wake| wake > now), "it would wake at once, again and again");
    kinds
}

fn targets(world: &World) -> usize {
    let fleet = world.fleets.get(&namespace()).unwrap();
    fleet.boards.get(&name("a").0).unwrap().targets().filter(|target| target.observation.is_some()).count()
}

#[test]
fn a_target_that_is_not_reported_falls_silent_and_is_released() {
    let mut world = World::default();
    put(&mut world, entity(staleness(300, 3_600)));
    put(&mut world, reported("blue/1", 0));
    put(&mut world, reported("blue/2", 100));
    assert_eq!(targets(&world), 2);
    assert_eq!(step(&mut world, at(299)), Vec::<&str>::new());
    assert_eq!(step(&mut world, at(300)), ["target.silent"]);
    assert_eq!(step(&mut world, at(400)), ["target.silent"]);
    put(&mut world, reported("blue/2", 500));
    assert_eq!(step(&mut world, at(3_600)), ["target.silent", "target.released"]);
    assert_eq!(targets(&world), 1);
    // Nobody looked at it from 500 on: it must be seen silent for as long as any other before it is removed.
    assert_eq!(step(&mut world, at(6_899)), Vec::<&str>::new());
    assert_eq!(step(&mut world, at(6_900)), ["target.released"]);
    let fleet = world.fleets.get(&namespace()).unwrap();
    assert_eq!((targets(&world), decide(fleet, at(0), at(9_000)).wake), (0, None));
}

#[test]
fn shorter_patience_counts_at_once() {
    let mut world = World::default();
    put(&mut world, entity(staleness(300, 3_600)));
    put(&mut world, reported("1", 0));
    assert_eq!(step(&mut world, at(60)), Vec::<&str>::new());
    put(&mut world, entity(staleness(30, 60)));
    assert_eq!(step(&mut world, at(60)), ["target.silent"]);
    assert_eq!(step(&mut world, at(90)), ["target.released"]);
    assert_eq!(targets(&world), 0);
}

#[test]
fn after_a_time_without_a_server_nobody_is_silent_before_it_could_report() {
    let mut world = World::default();
    put(&mut world, entity(staleness(300, 3_600)));
    put(&mut world, reported("1", 0));
    let fleet = world.fleets.get(&namespace()).unwrap();
    let early = decide(fleet, at(9_000), at(9_299));
    assert_eq!((early.changesets.len(), early.wake), (0, Some(at(9_300))));
    let late = decide(fleet, at(9_000), at(9_300));
    assert_eq!(late.changesets[0].events[0].kind, "target.silent", "none is removed that was never silent");
}

#[test]
fn a_removed_entity_leaves_nothing_to_do_and_its_reports_are_removed_too() {
    let mut world = World::default();
    put(&mut world, entity(staleness(300, 3_600)));
    put(&mut world, reported("1", 0));
    world.delete(&namespace(), &Key::Entity(name("1").0), Revision::new(9));
    assert_eq!(step(&mut world, at(9_000)), Vec::<&str>::new());
    let fleet = world.fleets.get(&namespace()).unwrap();
    let orphans = crate::decide::retention::decide(fleet, 10);
    let (entity, target) = name("1");
    let left: Vec<AnyKey> =
        orphans.changesets.iter().flat_map(|changeset| &changeset.writes).map(Write::key).collect();
    assert_eq!(left, [AnyKey::from(Key::ExternalTarget(entity, target))]);
}

proptest! {
    #[test]
    fn what_is_due_is_the_same_folded_and_loaded(
        steps in proptest::collection::vec((0..4_u8, 0..4_u8, 0..500_u64), 1..40),
    ) {
        let (mut world, mut now) = (World::default(), 0);
        put(&mut world, entity(staleness(300, 900)));
        for (what, which, pause) in steps {
            now += pause;
            match what {
                0 => put(&mut world, entity(staleness(100 + u64::from(which), 900))),
                1 => drop(step(&mut world, at(now))),
                _ => put(&mut world, reported(&alloc::format!("t{which}"), now)),
            }
            let fleet = world.fleets.get(&namespace()).unwrap();
            let externals = fleet.externals.iter().map(|((entity, target), kept)| {
                let record = Record::ExternalTarget(entity.clone(), target.clone(), ExternalTarget::clone(&kept.value));
                (LocatedRecord::Namespaced(namespace(), record), kept.revision)
            });
            let entities = fleet.entities.values();
            let entities = entities.map(|kept| {
                (LocatedRecord::Namespaced(namespace(), Record::Entity(Entity::clone(&kept.value))), kept.revision)
            });
            // Records come in the order of their keys' text, which is none of these.
            let loaded = World::load(externals.chain(entities), world.revision);
            let loaded = loaded.fleets.get(&namespace()).unwrap();
            prop_assert_eq!(&loaded.overdue, &fleet.overdue);
            prop_assert_eq!(decide(loaded, at(0), at(now)), decide(fleet, at(0), at(now)));
            let seen = |fleet: &Fleet| -> Vec<_> {
                let board = fleet.boards.get(&name("a").0).unwrap();
                board.targets().map(|target| (target.name.clone(), target.observation.cloned())).collect()
            };
            prop_assert_eq!(seen(loaded), seen(fleet));
        }
    }
}
