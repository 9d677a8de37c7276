use proptest::prelude::*;

use super::*;
use crate::records::annotation::Annotation;
use crate::records::entity::{Entity, EntityKind, RequestKind, VersionRequest};
use crate::records::key::{Key, LocatedRecord, Record};
use crate::records::node::Node;
use crate::records::not_runnable::NotRunnable;
use crate::records::order::{ApplyMethod, OrderContent};
use crate::records::pause::NodePause;
use crate::records::policy::{Policy, PolicyDraft};
use crate::records::report::Report;
use crate::records::target::{AssignmentOutcome, AssignmentPurpose, DeadlineClock, TargetState};
use crate::words::counter::{AssignmentNumber, Epoch, RequestNumber, Revision, RolloutNumber};
use crate::words::feature::{Feature, Features};
use crate::words::label::Labels;
use crate::words::name::{Actor, EntityName, Namespace, NodeName, TargetName};
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::words::version::Version;
use crate::world::World;

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn node(name: &str, paused: bool, gone: bool) -> Record {
    let mark = Annotation { by: Actor::parse("kim").unwrap(), at: Timestamp::EPOCH, reason: "disk".into() };
    Record::Node(Node {
        name: NodeName::parse(name).unwrap(),
        labels: Labels::default(),
        joined_at: Timestamp::EPOCH,
        key_fingerprint: "".into(),
        next_key_fingerprint: None,
        trust: None,
        pause: paused.then(|| mark.clone()),
        cordon: None,
        decommissioned: gone.then_some(mark),
        rescan: Default::default(),
        logical: None,
        services: alloc::vec![crate::access::NamePattern::Any],
    })
}

fn assigned(entity: &str, target: &str, version: &str, number: u64) -> Record {
    let state = TargetState {
        soak: Default::default(),
        failing_before: None,
        version: Version::parse(version).unwrap(),
        rollout: RolloutNumber::new(1),
        purpose: AssignmentPurpose::Update,
        assignment: AssignmentNumber::new(number),
        assigned_at: Timestamp::EPOCH,
        clock: DeadlineClock::Running { from: Timestamp::EPOCH, set_at: Timestamp::EPOCH },
        outcome: AssignmentOutcome::InFlight,
    };
    Record::Target(EntityName::parse(entity).unwrap(), TargetName::parse(target).unwrap(), state)
}

/// Puts a record, decides, applies, and checks the law: deciding again writes nothing. Answers what was written.
fn step(world: &mut World, change: Result<Record, Key>, at: &mut u64) -> usize {
    *at += 1;
    match change {
        Ok(record) => world.put(&namespace(), record, Revision::new(*at)),
        Err(key) => world.delete(&namespace(), &key, Revision::new(*at)),
    }
    let verdict = decide(world.fleets.get(&namespace()).unwrap(), Term::new(1));
    let written = verdict.changesets.len();
    for changeset in verdict.changesets {
        for write in changeset.writes {
            *at += 1;
            write.apply_to(world, &namespace(), Revision::new(*at));
        }
    }
    assert!(
        decide(world.fleets.get(&namespace()).unwrap(), Term::new(2)).changesets.is_empty(),
        "deciding again wrote"
    );
    written
}

fn order(world: &World, name: &str) -> Option<Order> {
    let fleet = world.fleets.get(&namespace())?;
    fleet.orders.get(&NodeName::parse(name).unwrap()).map(|kept| Order::clone(&kept.value))
}

fn report(ledger: &str, features: Features) -> Record {
    Record::Report(Report {
        node: NodeName::parse("web-1").unwrap(),
        received_at: Timestamp::EPOCH,
        agent_version: "1".into(),
        generation: Generation::ZERO,
        ledger: Some(ledger.parse().unwrap()),
        ledger_since: Default::default(),
        sequence: 0,
        entities: Default::default(),
        statuses: Default::default(),
        features,
        deleted: Default::default(),
    })
}

#[test]
fn an_order_grows_only_when_it_says_something_else() {
    let (mut world, mut at) = (World::default(), 0);
    assert_eq!(step(&mut world, Ok(node("web-1", false, false)), &mut at), 0, "nothing was ever said");
    assert_eq!(step(&mut world, Ok(assigned("web", "web-1", "v1", 1)), &mut at), 0, "no such entity");
    let web = Entity::new(EntityName::parse("web").unwrap(), Selector::all(), Policy::DEFAULT);
    step(&mut world, Ok(Record::Entity(web)), &mut at);
    assert_eq!(step(&mut world, Ok(assigned("web", "web-1", "v1", 1)), &mut at), 1);
    assert_eq!(step(&mut world, Ok(assigned("web", "web-1", "v1", 1)), &mut at), 0);
    assert_eq!(step(&mut world, Ok(node("web-1", true, false)), &mut at), 1);
    let written = order(&world, "web-1").unwrap();
    assert_eq!(
        (written.generation.get(), written.content.paused.as_deref()),
        (2, Some("paused by kim: disk"))
    );
    assert_eq!(written.content.entities.len(), 1, "an assigned entity stays assigned");
}

#[test]
fn an_order_names_the_data_store_of_the_policy_in_force() {
    let (mut world, mut at) = with_order();
    let store = |world: &World| {
        order(world, "web-1").unwrap().content.entities.values().next().unwrap().store.clone()
    };
    let policy = |store: Option<&str>| {
        let draft =
            PolicyDraft { store: store.map(|store| store.parse().unwrap()), ..PolicyDraft::default() };
        Policy::new(draft).unwrap()
    };
    let web =
        |own: Option<&str>| Entity::new(EntityName::parse("web").unwrap(), Selector::all(), policy(own));
    assert_eq!(store(&world), None);
    assert_eq!(step(&mut world, Ok(Record::Entity(web(Some("db")))), &mut at), 1, "the assignment stays");
    assert_eq!(store(&world), "db".parse().ok());
    assert_eq!(store(&restored(&world, Epoch::ZERO)), "db".parse().ok());
    assert_eq!(step(&mut world, Ok(Record::Entity(web(Some("db")))), &mut at), 0);
    // A request may bring a policy of its own.
    let mark = Annotation { by: Actor::parse("kim").unwrap(), at: Timestamp::EPOCH, reason: "".into() };
    let wanted = VersionRequest {
        request: RequestNumber::new(1),
        version: Version::parse("v2").unwrap(),
        how: RequestKind::Start,
        annotation: mark,
        policy: Some(alloc::boxed::Box::new(policy(None))),
    };
    assert_eq!(
        step(&mut world, Ok(Record::Entity(Entity { wanted: Some(wanted), ..web(Some("db")) })), &mut at),
        1
    );
    assert_eq!(store(&world), None);
}

/// The records of a world that hold an order, as a restore reads them.
fn restored(world: &World, epoch: Epoch) -> World {
    let fleet = world.fleets.get(&namespace()).unwrap();
    let nodes = fleet.nodes.values().map(|kept| Record::Node(Node::clone(&kept.value)));
    let entities = fleet.entities.values().map(|kept| Record::Entity(Entity::clone(&kept.value)));
    let reports = fleet.reports.values().map(|kept| Record::Report(Report::clone(&kept.value)));
    let orders =
        fleet.orders.iter().map(|(name, kept)| Record::Order(name.clone(), Order::clone(&kept.value)));
    let all = nodes
        .chain(entities)
        .chain(reports)
        .chain(orders)
        .chain([assigned("web", "web-1", "v1", 1)])
        .map(|record| (LocatedRecord::Namespaced(namespace(), record), Revision::new(1)));
    World::load_in(epoch, all, Revision::new(1))
}

fn with_order() -> (World, u64) {
    let (mut world, mut at) = (World::default(), 0);
    step(&mut world, Ok(node("web-1", false, false)), &mut at);
    let web = Entity::new(EntityName::parse("web").unwrap(), Selector::all(), Policy::DEFAULT);
    step(&mut world, Ok(Record::Entity(web)), &mut at);
    assert_eq!(step(&mut world, Ok(assigned("web", "web-1", "v1", 1)), &mut at), 1);
    (world, at)
}

#[test]
fn an_epoch_rewrites_each_order_once_with_a_number_above_it() {
    let (world, mut at) = with_order();
    let epoch = Epoch::new(1 << 50);
    let mut world = restored(&world, epoch);
    let before = order(&world, "web-1").unwrap();
    // Any change decides; what the order says is the same.
    assert_eq!(step(&mut world, Ok(node("other", false, false)), &mut at), 1);
    let written = order(&world, "web-1").unwrap();
    assert_eq!((written.generation.get(), &written.content), (epoch.get() + 1, &before.content));
    assert_eq!(step(&mut world, Ok(node("third", false, false)), &mut at), 0, "once");
    assert_eq!(step(&mut world, Ok(node("web-1", true, false)), &mut at), 1);
    assert_eq!(order(&world, "web-1").unwrap().generation.get(), epoch.get() + 2);
}

#[test]
fn a_node_that_has_a_later_order_than_the_store_gets_one_above_it() {
    let (mut world, mut at) = with_order();
    let holds = |generation| {
        let Record::Report(report) = report("0000000000000001", Features::default()) else { unreachable!() };
        Record::Report(Report { generation: Generation::new(generation), ..report })
    };
    step(&mut world, Ok(holds(1)), &mut at);
    let known = order(&world, "web-1").unwrap().generation.get();
    step(&mut world, Ok(holds(known + 5)), &mut at);
    assert_eq!(order(&world, "web-1").unwrap().generation.get(), known + 6);
    assert_eq!(step(&mut world, Ok(holds(known + 6)), &mut at), 0);
    // One that lies takes nothing from those that come after it.
    step(&mut world, Ok(holds(u64::MAX - 1)), &mut at);
    let believed = order(&world, "web-1").unwrap().generation.get();
    assert_eq!(believed, (1 << 62) + 1);
    assert_eq!(step(&mut world, Ok(holds(u64::MAX)), &mut at), 0, "once");
    step(&mut world, Ok(node("web-1", true, false)), &mut at);
    assert_eq!(order(&world, "web-1").unwrap().generation.get(), believed + 1);
    // The node has an order, and the store none: it is told that nothing is wanted of it.
    let other = NodeName::parse("web-2").unwrap();
    assert_eq!(step(&mut world, Ok(node("web-2", false, false)), &mut at), 0);
    let Record::Report(report) = holds(4) else { unreachable!() };
    assert_eq!(step(&mut world, Ok(Record::Report(Report { node: other, ..report })), &mut at), 1);
    let written = order(&world, "web-2").unwrap();
    assert_eq!((written.generation.get(), written.content), (5, OrderContent::default()));
}

#[test]
fn a_pause_by_selector_is_in_the_orders_of_those_that_join_later_and_a_nodes_own_comes_first() {
    let (mut world, mut at) = (World::default(), 0);
    let paused = |world: &World, name: &str| order(world, name).and_then(|order| order.content.paused);
    let pause = |name: &str, selector: &str| {
        let annotation =
            Annotation { by: Actor::parse("ann").unwrap(), at: Timestamp::EPOCH, reason: "".into() };
        let (name, nodes) = (name.parse().unwrap(), selector.parse().unwrap());
        Record::Pause(NodePause { name, nodes, annotation, labels: Labels::default() })
    };
    step(&mut world, Ok(node("web-1", false, false)), &mut at);
    step(&mut world, Ok(node("db-1", false, false)), &mut at);
    assert_eq!(step(&mut world, Ok(pause("some", "name in (web-1, web-2)")), &mut at), 1);
    assert_eq!(step(&mut world, Ok(node("web-2", false, false)), &mut at), 1);
    assert_eq!(
        paused(&world, "web-2").as_deref(),
        Some("paused by ann (pause some of name in (web-1, web-2))")
    );
    assert_eq!(step(&mut world, Ok(node("web-2", true, false)), &mut at), 1);
    assert_eq!(paused(&world, "web-2").as_deref(), Some("paused by kim: disk"));
    assert_eq!(step(&mut world, Ok(pause("some", "name=db-1")), &mut at), 2, "one is released, one is held");
    assert_eq!((paused(&world, "web-1"), paused(&world, "db-1").is_some()), (None, true));
    // Read from the store at once, the world says the same as one that was told piece by piece.
    let fleet = world.fleets.get(&namespace()).unwrap();
    let records = fleet.nodes.values().map(|kept| Record::Node(Node::clone(&kept.value)));
    let records =
        records.chain(fleet.pauses.values().map(|kept| Record::Pause(NodePause::clone(&kept.value))));
    let orders =
        fleet.orders.iter().map(|(name, kept)| Record::Order(name.clone(), Order::clone(&kept.value)));
    let all = records
        .chain(orders)
        .map(|record| (LocatedRecord::Namespaced(namespace(), record), Revision::new(1)));
    let loaded = World::load(all, Revision::new(1));
    assert!(decide(loaded.fleets.get(&namespace()).unwrap(), Term::new(1)).changesets.is_empty());
    assert_eq!(step(&mut world, Err(Key::Pause("some".parse().unwrap())), &mut at), 1);
    assert_eq!(paused(&world, "db-1"), None);
}

#[test]
fn an_action_is_run_on_its_turn_and_only_reported_by_everybody_else() {
    let (mut world, mut at) = (World::default(), 0);
    step(&mut world, Ok(node("web-1", false, false)), &mut at);
    let kind = EntityKind::Action("restart".parse().unwrap());
    let (name, selector) = (EntityName::parse("web").unwrap(), Selector::all());
    let entity = Entity { kind, ..Entity::new(name.clone(), selector, Policy::DEFAULT) };
    step(&mut world, Ok(Record::Entity(entity)), &mut at);
    let Record::Target(_, target, turn) = assigned("web", "web-1", "restart@7", 1) else {
        panic!("a target")
    };
    let done = AssignmentOutcome::Succeeded { at: Timestamp::EPOCH, failed_later: None };
    let away = AssignmentOutcome::Unreachable { at: Timestamp::EPOCH, reason: "away".into() };
    for (purpose, outcome, method) in [
        (AssignmentPurpose::Update, AssignmentOutcome::InFlight, ApplyMethod::Run),
        (AssignmentPurpose::Update, away, ApplyMethod::Run),
        (AssignmentPurpose::Update, done.clone(), ApplyMethod::Acknowledge),
        (AssignmentPurpose::KnownGood, AssignmentOutcome::InFlight, ApplyMethod::Acknowledge),
        (AssignmentPurpose::Adopted, done, ApplyMethod::Acknowledge),
    ] {
        let state = TargetState { purpose, outcome, ..turn.clone() };
        step(&mut world, Ok(Record::Target(name.clone(), target.clone(), state)), &mut at);
        let written = order(&world, "web-1").unwrap();
        assert_eq!(written.content.entities[&name].method, method, "{purpose:?}");
    }
}

#[test]
fn a_run_is_bound_to_the_first_ledger_that_is_reported_and_never_to_another() {
    let (mut world, mut at) = (World::default(), 0);
    step(&mut world, Ok(node("web-1", false, false)), &mut at);
    let kind = EntityKind::Action("restart".parse().unwrap());
    let name = EntityName::parse("web").unwrap();
    let entity = Entity { kind, ..Entity::new(name.clone(), Selector::all(), Policy::DEFAULT) };
    step(&mut world, Ok(Record::Entity(entity)), &mut at);
    let report = |ledger: &str| report(ledger, Features::default());
    let bound = |world: &World| order(world, "web-1").unwrap().content.entities[&name].binding.ledger.clone();
    step(&mut world, Ok(assigned("web", "web-1", "restart@7", 1)), &mut at);
    assert_eq!(bound(&world), None);
    assert_eq!(step(&mut world, Ok(report("first")), &mut at), 1);
    assert_eq!(bound(&world), Some("first".parse().unwrap()));
    assert_eq!(step(&mut world, Ok(report("second")), &mut at), 0);
    step(&mut world, Ok(assigned("web", "web-1", "restart@7", 2)), &mut at);
    assert_eq!(bound(&world), Some("first".parse().unwrap()), "the run may have begun");
    step(&mut world, Ok(assigned("web", "web-1", "restart@8", 3)), &mut at);
    assert_eq!(bound(&world), Some("second".parse().unwrap()));
}

#[test]
fn an_order_says_why_no_run_begins_and_which_runs_are_known_to_have_failed() {
    let (mut world, mut at) = (World::default(), 0);
    step(&mut world, Ok(node("web-1", false, false)), &mut at);
    step(&mut world, Ok(report("first", [Feature::Workflows, Feature::Jobs].into_iter().collect())), &mut at);
    let name = EntityName::parse("work-7").unwrap();
    let kind = EntityKind::Workflow("work".parse().unwrap());
    let entity = Entity { kind, ..Entity::new(name.clone(), Selector::all(), Policy::DEFAULT) };
    step(&mut world, Ok(Record::Entity(entity)), &mut at);
    let Record::Target(_, target, state) = assigned("work-7", "web-1", "work@7", 1) else {
        panic!("a target")
    };
    let known = |world: &World| order(world, "web-1").unwrap().content.failed_runs.contains(&name);
    let failed = AssignmentOutcome::Failed { at: Timestamp::EPOCH, evidence: Default::default() };
    let away = AssignmentOutcome::Unreachable { at: Timestamp::EPOCH, reason: "away".into() };
    for (outcome, is_known) in [(AssignmentOutcome::InFlight, false), (failed, true), (away, true)] {
        let state = TargetState { outcome, ..state.clone() };
        step(&mut world, Ok(Record::Target(name.clone(), target.clone(), state)), &mut at);
        assert_eq!(known(&world), is_known);
    }
    let mark = NotRunnable {
        node: NodeName::parse("web-1").unwrap(),
        run: None,
        by: Some(Actor::parse("kim").unwrap()),
        reason: "disk".into(),
        at: Timestamp::EPOCH,
    };
    assert_eq!(step(&mut world, Ok(Record::NotRunnable(mark.clone())), &mut at), 1);
    assert_eq!(order(&world, "web-1").unwrap().content.not_runnable, Some(mark.line()));
    assert_eq!(step(&mut world, Err(Key::NotRunnable(mark.node)), &mut at), 1);
    assert_eq!(order(&world, "web-1").unwrap().content.not_runnable, None);
}

#[test]
fn a_node_that_allows_no_tasks_at_the_moment_keeps_the_runs_that_it_has() {
    let (mut world, mut at) = (World::default(), 0);
    step(&mut world, Ok(node("web-1", false, false)), &mut at);
    let allowing = [Feature::Workflows, Feature::Jobs].into_iter().collect::<Features>();
    step(&mut world, Ok(report("first", allowing)), &mut at);
    let name = EntityName::parse("work-7").unwrap();
    let kind = EntityKind::Workflow("work".parse().unwrap());
    let entity = Entity { kind, ..Entity::new(name.clone(), Selector::all(), Policy::DEFAULT) };
    step(&mut world, Ok(Record::Entity(entity)), &mut at);
    step(&mut world, Ok(assigned("work-7", "web-1", "work@7", 1)), &mut at);
    let is_told = |world: &World| order(world, "web-1").unwrap().content.entities.contains_key(&name);
    for (features, expected) in [(&[Feature::Jobs][..], true), (&[], false)] {
        step(&mut world, Ok(report("first", features.iter().copied().collect())), &mut at);
        assert_eq!(is_told(&world), expected, "{features:?}");
    }
}

#[test]
fn a_decommissioned_node_gets_no_order() {
    let (mut world, mut at) = (World::default(), 0);
    step(&mut world, Ok(node("web-1", false, true)), &mut at);
    assert_eq!(step(&mut world, Ok(assigned("web", "web-1", "v1", 1)), &mut at), 0);
}

proptest! {
    #[test]
    fn over_any_history_orders_say_what_was_told_and_generations_only_grow(
        history in prop::collection::vec((0_u8..4, 0_u8..3, 0_u8..2, 0_u8..4), 1..40)
    ) {
        let (mut world, mut at) = (World::default(), 0);
        let names = ["a", "b", "c"];
        let mut last = [0_u64; 3];
        for (number, (kind, which, entity, version)) in (1_u64..).zip(history) {
            let name = names[usize::from(which)];
            let entity = ["web", "db"][usize::from(entity)];
            let change = match kind {
                0 => Ok(node(name, version % 2 == 0, false)),
                1 => Err(Key::Target(EntityName::parse(entity).unwrap(), TargetName::parse(name).unwrap())),
                _ => Ok(assigned(entity, name, ["v1", "v2", "v3", "v4"][usize::from(version)], number)),
            };
            step(&mut world, change, &mut at);
            for (index, name) in names.iter().enumerate() {
                let generation = order(&world, name).map_or(0, |order| order.generation.get());
                prop_assert!(generation >= last[index]);
                last[index] = generation;
            }
        }
        let fleet = world.fleets.get(&namespace()).unwrap();
        for (name, content) in &fleet.contents {
            if fleet.active_node(name).is_some() {
                let written = fleet.orders.get(name).map(|kept| kept.value.content.clone()).unwrap_or_default();
                prop_assert_eq!(&written, content);
            }
        }
    }
}
