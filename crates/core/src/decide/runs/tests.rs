//! A run that was aborted before its rollout began.

use super::*;
use crate::records::annotation::Annotation;
use crate::records::entity::Entity;
use crate::records::key::Record;
use crate::records::policy::Policy;
use crate::records::progress::Progress;
use crate::records::run::Run;
use crate::rollout::operations;
use crate::words::name::Namespace;
use crate::words::selector::Selector;
use crate::world::World;

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(seconds))
}

fn put(world: &mut World, record: Record) {
    let revision = world.revision.next();
    world.put(&Namespace::parse("default").unwrap(), record, revision);
    world.revision = revision;
}

#[test]
fn a_run_that_is_aborted_before_its_rollout_began_has_ended_and_is_forgotten_in_time() {
    let (name, by) =
        (EntityName::parse("work-7").unwrap(), |time| Annotation::of("kim".parse().unwrap(), time));
    let run = Run {
        name: name.clone(),
        workflow: "work".parse().unwrap(),
        digest: Default::default(),
        tasks: Default::default(),
        contents: "{}".into(),
        features: Default::default(),
        rollback: None,
        undoes: None,
        undo: None,
        annotation: by(at(10)),
    };
    let none = Progress::default();
    let entity = Entity::new(name.clone(), Selector::all(), Policy::DEFAULT);
    let asked = operations::start(&entity, &none, "work@7".parse().unwrap(), by(at(10))).unwrap();
    let aborted = operations::abort(&asked, &none, by(at(20))).unwrap();
    let mut world = World::default();
    put(&mut world, Record::Run(run));
    put(&mut world, Record::Entity(aborted.clone()));
    let ended = |world: &World| world.fleets.values().next().unwrap().run_ended(&name);
    assert_eq!(ended(&world), None, "nobody decided on it yet");
    let handled = Progress { handled: aborted.last_request(), ..Progress::default() };
    put(&mut world, Record::Progress(name.clone(), handled));
    assert_eq!(ended(&world), Some(at(20)));
    let fleet = world.fleets.values().next().unwrap();
    assert_eq!(decide(fleet, Span::from_secs(60), at(79)).wake, Some(at(80)));
    assert_eq!(decide(fleet, Span::from_secs(60), at(80)).changesets.len(), 1);
}
