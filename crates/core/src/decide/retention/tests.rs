use super::*;
use crate::records::event::Event;
use crate::records::hook_answers::HookAnswers;
use crate::records::key::Record;
use crate::words::counter::Revision;
use crate::words::name::{Actor, Namespace};
use crate::words::time::Timestamp;
use crate::world::World;

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn event(number: u64) -> Record {
    Record::Event(Event {
        sequence: Sequence::new(number),
        time: Timestamp::EPOCH,
        actor: Actor::parse("kim").unwrap(),
        kind: "test".into(),
        subject: "test".into(),
        before: None,
        after: None,
        cause: "".into(),
        caused_by: None,
    })
}

/// Applies verdicts until one writes nothing; answers how many there were.
fn settle(world: &mut World, keep: u64) -> usize {
    for pass in 0..100 {
        let verdict = decide(world.fleets.get(&namespace()).unwrap(), keep);
        if verdict.changesets.is_empty() {
            return pass;
        }
        for write in verdict.changesets.into_iter().flat_map(|changeset| changeset.writes) {
            assert!(matches!(write, Write::Delete(_)), "retention deletes only");
            write.apply_to(world, &namespace(), Revision::new(1));
        }
    }
    panic!("it never settles");
}

#[test]
fn the_newest_events_are_kept_and_deciding_again_writes_nothing() {
    let mut world = World::default();
    for number in 1..=2_000 {
        world.put(&namespace(), event(number), Revision::new(1));
    }
    assert_eq!(settle(&mut world, 1_500), 1);
    let fleet = world.fleets.get(&namespace()).unwrap();
    assert_eq!(
        (fleet.oldest_event.get(), fleet.last_event().get(), fleet.events.size()),
        (501, 2_000, 1_500)
    );
    assert_eq!(settle(&mut world, 1_500), 0);
    assert_eq!(settle(&mut world, 100), 3, "a bounded amount at a time");
}

#[test]
fn nothing_is_forgotten_while_there_is_room() {
    let mut world = World::default();
    world.put(&namespace(), event(1), Revision::new(1));
    assert_eq!(settle(&mut world, 1_000), 0);
}

#[test]
fn what_controllers_answered_goes_with_the_entity() {
    let mut world = World::default();
    let name = EntityName::parse("web").unwrap();
    world.put(&namespace(), Record::HookAnswers(name, HookAnswers::default()), Revision::new(1));
    assert_eq!(settle(&mut world, 1_000), 1);
    assert!(world.fleets.get(&namespace()).unwrap().answers.is_empty());
}
