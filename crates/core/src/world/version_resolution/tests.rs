use super::*;
use crate::records::annotation::Annotation;
use crate::records::key::Record;
use crate::records::policy::Policy;
use crate::records::profile::Profile;
use crate::records::progress::Progress;
use crate::words::counter::Revision;
use crate::words::label::Labels;
use crate::words::name::{Actor, Namespace};
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::world::World;

fn name<T: core::str::FromStr<Err: core::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

fn entity(kind: EntityKind) -> Entity {
    Entity { kind, ..Entity::new(name("web"), Selector::all(), Policy::DEFAULT) }
}

/// A world with profile `web` at revisions `first` to `last`, and one entity of it.
fn world(first: u64, last: u64) -> World {
    let (profile, by): (ProfileName, Actor) = (name("web"), name("kim"));
    let annotation = Annotation::of(by, Timestamp::EPOCH);
    let mut world = World::default();
    let namespace: Namespace = name("default");
    let mut put = |record| world.put(&namespace, record, Revision::new(1));
    let newest = ProfileRevisionNumber::new(last);
    put(Record::Profile(Profile {
        name: profile.clone(),
        newest,
        deleted: false,
        live: false,
        annotation: annotation.clone(),
        labels: Labels::default(),
    }));
    for number in (first..=last).map(ProfileRevisionNumber::new) {
        let (profile, annotation) = (profile.clone(), annotation.clone());
        put(Record::ProfileRevision(ProfileRevision {
            profile,
            number,
            params: "{}".into(),
            secrets: Default::default(),
            annotation,
        }));
    }
    put(Record::Entity(entity(EntityKind::Profile(profile))));
    world
}

fn fleet(world: &World) -> &Fleet {
    world.fleets.get(&name::<Namespace>("default")).unwrap()
}

#[test]
fn a_profiles_version_is_the_one_asked_for_or_the_newest() {
    let world = world(3, 7);
    let web = entity(EntityKind::Profile(name("web")));
    let ask = |asked: Option<&str>| {
        let asked = asked.map(|asked| Version::parse(asked).unwrap());
        resolve(fleet(&world), &web, asked.as_ref()).map(|version| version.to_string())
    };
    assert_eq!(ask(None), Ok("web@7".into()));
    assert_eq!(ask(Some("web")), Ok("web@7".into()));
    assert_eq!(ask(Some("web@3")), Ok("web@3".into()));
    for unknown in ["web@2", "web@8"] {
        let reason = ask(Some(unknown)).unwrap_err().to_string();
        assert_eq!(reason, alloc::format!("start {unknown}: profile web has revisions 3 to 7"));
    }
    for other in ["db@7", "v7", "web@07"] {
        assert!(matches!(ask(Some(other)), Err(UnresolvedVersion::OtherProfile { .. })), "{other}");
    }
}

#[test]
fn a_deleted_profile_resolves_to_nothing() {
    let mut world = world(1, 2);
    let namespace = name("default");
    let head = fleet(&world).profile(&name("web")).unwrap().clone();
    world.put(&namespace, Record::Profile(Profile { deleted: true, ..head }), Revision::new(2));
    let asked = resolve(fleet(&world), &entity(EntityKind::Profile(name("web"))), None);
    assert!(matches!(asked, Err(UnresolvedVersion::NoProfile { .. })));
}

#[test]
fn a_version_must_be_said_and_the_number_of_a_run_must_not() {
    let fleet = Fleet::default();
    assert!(matches!(
        resolve(&fleet, &entity(EntityKind::Version), None),
        Err(UnresolvedVersion::Unsaid { .. })
    ));
    let restart = entity(EntityKind::Action(name("restart")));
    assert_eq!(resolve(&fleet, &restart, None).unwrap().as_str(), "restart@1");
    let given = Version::parse("restart").unwrap();
    assert_eq!(resolve(&fleet, &restart, Some(&given)).unwrap().as_str(), "restart@1");
    let given = Version::parse("restart@9").unwrap();
    assert!(matches!(resolve(&fleet, &restart, Some(&given)), Err(UnresolvedVersion::OwnNumber { .. })));
}

#[test]
fn old_revisions_may_go_unless_something_would_still_need_them() {
    let mut world = world(1, 80);
    let numbers = |world: &World| {
        let all = fleet(world).forgettable(&name("web"));
        all.into_iter().map(ProfileRevisionNumber::get).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&world), (1..=17).collect::<Vec<_>>());
    let version = |number| Version::numbered("web", number);
    let progress = Progress {
        target: version(80),
        rolling: version(12),
        last_known_good: version(3),
        ..Progress::default()
    };
    world.put(&name("default"), Record::Progress(name("web"), progress), Revision::new(2));
    let left: Vec<u64> = (1..=17).filter(|number| ![3, 12].contains(number)).collect();
    assert_eq!(numbers(&world), left);
}
