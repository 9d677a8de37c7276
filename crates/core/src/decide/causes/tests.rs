use alloc::string::ToString;

use super::*;
use crate::records::event::Event;
use crate::words::counter::Revision;
use crate::words::name::Namespace;
use crate::words::time::Timestamp;
use crate::world::World;
use crate::world::fleet::EVENTS_IN_MEMORY;

fn namespace() -> Namespace {
    "default".parse().unwrap()
}

/// A world with these events, each `KIND SUBJECT`, numbered from 1.
fn world(events: &[&str]) -> World {
    let mut world = World::default();
    for (number, text) in (1_u64..).zip(events) {
        let (kind, subject) = text.split_once(' ').unwrap();
        let event = Event {
            sequence: Sequence::new(number),
            time: Timestamp::EPOCH,
            actor: "kim".parse().unwrap(),
            kind: kind.into(),
            subject: subject.into(),
            before: None,
            after: None,
            cause: "".into(),
            caused_by: None,
        };
        world.put(&namespace(), Record::Event(event), Revision::new(number));
    }
    world
}

/// What leads to new events, each `ACTOR KIND SUBJECT`.
fn found(world: &World, new: &[(&str, &'static str, &str)]) -> Vec<Option<CausedBy>> {
    let events: Vec<_> = new
        .iter()
        .map(|(actor, kind, subject)| {
            let subject = subject.to_string();
            let draft = EventDraft { kind, subject, before: None, after: None, cause: "".into() };
            (Actor::parse(actor).unwrap(), draft)
        })
        .collect();
    causes(world.fleets.get(&namespace()).unwrap(), &events, core::iter::empty())
}

fn by(number: u64) -> Option<CausedBy> {
    Some(CausedBy::Event(Sequence::new(number)))
}

#[test]
fn a_rollout_begins_because_of_the_request_and_goes_on_because_of_its_targets() {
    let world = world(&["rollout.requested entity/web", "rollout.started rollout/web/1"]);
    let started = [("bellwether", "rollout.started", "rollout/web/1")];
    assert_eq!(found(&world, &started), [by(1)]);
    let failed = [
        ("bellwether", "target.failed", "target/web/web-1"),
        ("bellwether", "rollout.rolling_back", "rollout/web/1"),
        ("bellwether", "rollout.batch", "rollout/web/1"),
    ];
    let found = found(&world, &failed);
    assert_eq!(found[1..], [Some(CausedBy::Earlier(0)), Some(CausedBy::Earlier(1))]);
}

#[test]
fn what_a_run_starts_names_it_and_what_a_schedule_starts_the_last_change_of_the_schedule() {
    let world = world(&["schedule.created schedule/nightly", "run.started entity/backup-2"]);
    let new = [
        ("schedule/nightly", "run.started", "entity/backup-3"),
        ("job/backup-2/web-1/0", "profile.live_changed", "profile/shop"),
        ("kim", "run.started", "entity/backup-4"),
    ];
    assert_eq!(found(&world, &new), [by(1), by(2), None]);
}

#[test]
fn a_store_is_unknown_because_its_node_is_unreachable_and_not_because_it_once_was() {
    let mut events = alloc::vec!["node.unreachable node/db-1"];
    let unknown = [("bellwether", "store.unknown", "store/db-1/kv")];
    assert_eq!(found(&world(&events), &unknown), [by(1)]);
    events.push("node.up node/db-1");
    assert_eq!(found(&world(&events), &unknown), [None]);
}

#[test]
fn an_event_that_is_no_longer_in_memory_is_no_cause_and_costs_no_memory() {
    let mut events = alloc::vec!["node.unreachable node/db-1"];
    events.resize(EVENTS_IN_MEMORY + 1, "node.suspect node/db-2");
    let world = world(&events);
    assert_eq!(found(&world, &[("bellwether", "store.unknown", "store/db-1/kv")]), [None]);
    let fleet = world.fleets.get(&namespace()).unwrap();
    assert_eq!(fleet.event_index.newest("node/db-1", |_| true), None);
}
