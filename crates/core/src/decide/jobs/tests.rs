use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;

use super::*;
use crate::records::annotation::Annotation;
use crate::records::entity::{Entity, EntityKind, TargetSource};
use crate::records::key::Key;
use crate::records::log::NodeLog;
use crate::records::node::Node;
use crate::records::order::{Order, OrderContent};
use crate::records::policy::Policy;
use crate::records::run::RunTask;
use crate::words::counter::{Epoch, Generation, Revision, Term};
use crate::words::name::Namespace;
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::world::World;

mod ledgers;
mod set_back;

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn run_name() -> EntityName {
    "install-7".parse().unwrap()
}

/// A world with a run of two tasks on node web-1.
fn world() -> World {
    let by = || Annotation::of("kim".parse().unwrap(), Timestamp::EPOCH);
    let node: NodeName = "web-1".parse().unwrap();
    let task = |name: &str| RunTask {
        stage: "all".parse().unwrap(),
        task: name.parse().unwrap(),
        digest: "".into(),
        profiles: vec![],
        idempotent: false,
    };
    let workflow = || "install".parse().unwrap();
    let entity = Entity {
        kind: EntityKind::Workflow(workflow()),
        source: TargetSource::Listed(Arc::new(BTreeSet::from([node.clone()]))),
        ..Entity::new(run_name(), Selector::all(), Policy::default())
    };
    let run = Run {
        name: run_name(),
        workflow: workflow(),
        digest: "".into(),
        tasks: vec![task("one"), task("two")],
        contents: "{}".into(),
        features: Default::default(),
        rollback: None,
        undoes: None,
        undo: None,
        annotation: by(),
    };
    let joined = Node {
        name: node,
        labels: Default::default(),
        joined_at: Timestamp::EPOCH,
        key_fingerprint: "".into(),
        next_key_fingerprint: None,
        trust: None,
        pause: None,
        cordon: None,
        decommissioned: None,
        rescan: Default::default(),
        logical: None,
        services: vec![crate::access::NamePattern::Any],
    };
    let mut world = World::default();
    for record in [Record::Node(joined), Record::Entity(entity), Record::Run(run)] {
        world.put(&namespace(), record, Revision::new(1));
    }
    world
}

fn job(index: u32, task: &str, state: JobState) -> Job {
    Job { state, ..Job::created(index, task.parse().unwrap()) }
}

fn report(ledger: &str) -> Report {
    Report {
        node: "web-1".parse().unwrap(),
        received_at: Timestamp::EPOCH,
        agent_version: "".into(),
        generation: Generation::ZERO,
        features: Default::default(),
        ledger: Some(ledger.parse().unwrap()),
        ledger_since: Default::default(),
        sequence: 0,
        entities: Default::default(),
        statuses: Default::default(),
        deleted: Default::default(),
    }
}

/// Absorbs what is told, and answers how many records that wrote; absorbing it again writes none.
fn absorbed(world: &mut World, report: &Report, told: Option<Vec<Job>>) -> usize {
    let told: BTreeMap<EntityName, Vec<Job>> = told.into_iter().map(|jobs| (run_name(), jobs)).collect();
    let writes = absorb(world.fleets.get(&namespace()).unwrap(), report, &told);
    let written = writes.len();
    for write in writes {
        write.apply_to(world, &namespace(), Revision::new(2));
    }
    assert!(absorb(world.fleets.get(&namespace()).unwrap(), report, &told).is_empty(), "again");
    written
}

fn states(world: &World) -> Vec<(u32, JobState)> {
    let fleet = world.fleets.get(&namespace()).unwrap();
    let run = run_name();
    let jobs = fleet.jobs_of(&run).flat_map(|kept| &kept.value.jobs);
    jobs.map(|job| (job.index, job.state)).collect()
}

#[test]
fn what_a_node_tells_is_kept_until_it_tells_something_else() {
    let mut world = world();
    let one = vec![job(0, "one", JobState::Running)];
    assert_eq!(absorbed(&mut world, &report("a"), Some(one)), 1);
    assert_eq!(absorbed(&mut world, &report("a"), None), 0, "silence changes nothing");
    let both = vec![job(0, "one", JobState::Finished), job(1, "two", JobState::Running)];
    assert_eq!(absorbed(&mut world, &report("a"), Some(both)), 1);
    assert_eq!(states(&world), [(0, JobState::Finished), (1, JobState::Running)]);
}

#[test]
fn a_job_of_another_task_than_the_runs_is_not_believed() {
    let mut world = world();
    let odd = vec![job(0, "two", JobState::Finished), job(7, "one", JobState::Finished)];
    assert_eq!(absorbed(&mut world, &report("a"), Some(odd)), 0);
}

#[test]
fn an_open_job_is_lost_with_its_ledger_and_what_ended_before_stays() {
    let mut world = world();
    let both = vec![job(0, "one", JobState::Finished), job(1, "two", JobState::Running)];
    absorbed(&mut world, &report("a"), Some(both));
    assert_eq!(absorbed(&mut world, &report("b"), None), 1);
    assert_eq!(states(&world), [(0, JobState::Finished), (1, JobState::Lost)]);
    let again = vec![job(1, "two", JobState::Finished)];
    absorbed(&mut world, &report("b"), Some(again));
    assert_eq!(states(&world), [(0, JobState::Finished), (1, JobState::Finished)]);
}

#[test]
fn an_open_job_is_cancelled_once_the_node_has_accepted_an_order_without_its_run() {
    let mut world = world();
    absorbed(&mut world, &report("a"), Some(vec![job(0, "one", JobState::Running)]));
    let order = Order {
        term: Term::new(1),
        generation: Generation::new(3),
        epoch: Epoch::ZERO,
        content: OrderContent::default(),
    };
    world.put(&namespace(), Record::Order("web-1".parse().unwrap(), order), Revision::new(3));
    assert_eq!(absorbed(&mut world, &report("a"), None), 0, "it has not accepted the order");
    let accepted = Report { generation: Generation::new(3), ..report("a") };
    assert_eq!(absorbed(&mut world, &accepted, None), 1);
    assert_eq!(states(&world), [(0, JobState::Cancelled)]);
}

#[test]
fn jobs_are_forgotten_with_their_run() {
    let mut world = world();
    absorbed(&mut world, &report("a"), Some(vec![job(0, "one", JobState::Running)]));
    for entity in [run_name(), "web".parse().unwrap()] {
        let (node, category) = ("web-1".parse().unwrap(), "configure".parse().unwrap());
        let (run, text, at) = ("1-1-1".into(), "out of paper".into(), Timestamp::EPOCH);
        let log = NodeLog { node, category, entity, run, at, bytes: 12, text };
        world.put(&namespace(), Record::Log(log), Revision::new(3));
    }
    for key in [Key::Run(run_name()), Key::Entity(run_name())] {
        world.delete(&namespace(), &key, Revision::new(4));
    }
    let verdict = crate::decide::retention::decide(world.fleets.get(&namespace()).unwrap(), 10);
    for write in verdict.changesets.into_iter().flat_map(|changeset| changeset.writes) {
        write.apply_to(&mut world, &namespace(), Revision::new(5));
    }
    assert!(states(&world).is_empty());
    let fleet = world.fleets.get(&namespace()).unwrap();
    assert!(fleet.orphans.is_empty());
    let kept: Vec<&str> = fleet.logs.keys().map(|(_, _, entity)| entity.as_str()).collect();
    assert_eq!(kept, ["web"], "the logs of others stay");
}

/// The node takes the inputs of the task of this index; what is written for it.
#[expect(clippy::unwrap_in_result, reason = "the result is what the test is about")]
fn dispatch(world: &mut World, ledger: &str, index: u32) -> Result<Option<NodeJobs>, DispatchRefusal> {
    let fleet = world.fleets.get(&namespace()).unwrap();
    let run = fleet.runs.get(&run_name()).unwrap().value.clone();
    let ledger = ledger.parse().unwrap();
    let written = dispatched(fleet, (&run, &"web-1".parse().unwrap()), Some(&ledger), index)?;
    if let Some(jobs) = written.clone() {
        world.put(&namespace(), Record::Jobs(jobs), Revision::new(3));
    }
    Ok(written)
}

#[test]
fn a_task_whose_inputs_the_node_took_is_begun_and_asking_again_writes_nothing() {
    let mut world = world();
    assert!(dispatch(&mut world, "a", 0).unwrap().is_some());
    assert!(dispatch(&mut world, "a", 0).unwrap().is_none(), "its answer was lost on the way");
    assert_eq!(states(&world), [(0, JobState::Created)]);
    set_back::assigned(&mut world, 2);
    absorbed(&mut world, &report("a"), Some(vec![job(0, "one", JobState::Failed)]));
    let again = dispatch(&mut world, "a", 0).unwrap().unwrap();
    assert_eq!(
        (again.begun(), again.jobs[0].state),
        (1, JobState::Created),
        "a failed task begins again once a person asked"
    );
}

#[test]
fn the_end_of_the_list_closes_it() {
    let mut world = world();
    for index in [0, 1] {
        dispatch(&mut world, "a", index).unwrap();
    }
    assert!(dispatch(&mut world, "a", 2).unwrap().is_some_and(|jobs| jobs.closed));
    assert!(dispatch(&mut world, "a", 2).unwrap().is_none());
    absorbed(&mut world, &report("a"), Some(vec![job(1, "two", JobState::Finished)]));
    let fleet = world.fleets.get(&namespace()).unwrap();
    assert!(fleet.jobs_of(&run_name()).all(|kept| kept.value.closed), "a report does not open it again");
}

#[test]
fn a_finished_task_is_never_dispatched_again() {
    let mut world = world();
    dispatch(&mut world, "a", 0).unwrap();
    absorbed(&mut world, &report("a"), Some(vec![job(0, "one", JobState::Finished)]));
    assert_eq!(dispatch(&mut world, "a", 0), Err(DispatchRefusal::Finished));
}

#[test]
fn a_job_of_a_run_that_its_node_was_taken_from_is_cancelled_once_the_node_has_left_it() {
    let mut world = world();
    absorbed(&mut world, &report("first"), Some(vec![job(0, "one", JobState::Running)]));
    let fleet = world.fleets.get(&namespace()).unwrap();
    let entity = Entity::clone(&fleet.entities.get(&run_name()).unwrap().value);
    let other = Entity { source: TargetSource::Listed(Arc::default()), ..entity };
    world.put(&namespace(), Record::Entity(other), Revision::new(3));
    let content = OrderContent::default();
    let order =
        Order { generation: Generation::ZERO.next(), term: Term::default(), epoch: Epoch::ZERO, content };
    world.put(&namespace(), Record::Order("web-1".parse().unwrap(), order), Revision::new(4));
    absorbed(&mut world, &report("first"), None);
    assert_eq!(states(&world), [(0, JobState::Running)], "it has not accepted its order");
    let accepted = Report { generation: Generation::ZERO.next(), ..report("first") };
    absorbed(&mut world, &accepted, None);
    assert_eq!(states(&world), [(0, JobState::Cancelled)]);
}

#[test]
fn a_skipped_task_is_never_dispatched_again() {
    let mut world = world();
    dispatch(&mut world, "a", 0).unwrap();
    absorbed(&mut world, &report("a"), Some(vec![job(0, "one", JobState::Skipped)]));
    for ledger in ["a", "b"] {
        assert_eq!(dispatch(&mut world, ledger, 0), Err(DispatchRefusal::Finished));
    }
    assert!(dispatch(&mut world, "a", 1).unwrap().is_some());
    assert_eq!(states(&world), [(0, JobState::Skipped), (1, JobState::Created)]);
}
