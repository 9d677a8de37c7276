use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::local::action::{self, ActionStep};
use crate::local::memory::EntityMemory;
use crate::local::work::WorkMemory;
use crate::records::annotation::Annotation;
use crate::records::entity::{Entity, EntityKind, TargetSource};
use crate::records::key::Key;
use crate::records::node::Node;
use crate::records::order::{ApplyMethod, Assignment, Order, OrderContent};
use crate::records::policy::Policy;
use crate::records::run::RunTask;
use crate::words::counter::{AssignmentNumber, Generation, Revision, Term};
use crate::words::name::Namespace;
use crate::words::selector::Selector;
use crate::words::time::Timestamp;
use crate::words::version::Version;
use crate::world::World;

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
        annotation: by(),
    };
    let joined = Node {
        name: node,
        labels: Default::default(),
        joined_at: Timestamp::EPOCH,
        key_fingerprint: "".into(),
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
    let order =
        Order { term: Term::new(1), generation: Generation::new(3), content: OrderContent::default() };
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
    for key in [Key::Run(run_name()), Key::Entity(run_name())] {
        world.delete(&namespace(), &key, Revision::new(4));
    }
    let verdict = crate::decide::retention::decide(world.fleets.get(&namespace()).unwrap(), 10);
    for write in verdict.changesets.into_iter().flat_map(|changeset| changeset.writes) {
        write.apply_to(&mut world, &namespace(), Revision::new(5));
    }
    assert!(states(&world).is_empty());
    assert!(world.fleets.get(&namespace()).unwrap().orphans.is_empty());
}

/// The node takes the inputs of the task of this index; what is written for it.
#[expect(clippy::unwrap_in_result, reason = "the result is what the test is about")]
fn dispatch(world: &mut World, ledger: &str, index: u32) -> Result<Option<NodeJobs>, FinishedAlready> {
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
    absorbed(&mut world, &report("a"), Some(vec![job(0, "one", JobState::Failed)]));
    let again = dispatch(&mut world, "a", 0).unwrap().unwrap();
    assert_eq!((again.begun(), again.jobs[0].state), (1, JobState::Created), "a failed task begins again");
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
    assert_eq!(dispatch(&mut world, "a", 0), Err(FinishedAlready));
}

/// A world with a run of tasks on a machine or a logical node, each of which may be idempotent.
fn world_of(idempotent: &[bool], logical: bool) -> World {
    let mut world = world();
    let fleet = world.fleets.get(&namespace()).unwrap();
    let mut run = Run::clone(&fleet.runs.get(&run_name()).unwrap().value);
    let mut node = Node::clone(&fleet.nodes.get(&NodeName::parse("web-1").unwrap()).unwrap().value);
    let first = run.tasks[0].clone();
    run.tasks =
        idempotent.iter().map(|idempotent| RunTask { idempotent: *idempotent, ..first.clone() }).collect();
    node.logical = logical.then(|| "shop".parse().unwrap());
    for record in [Record::Node(node), Record::Run(run)] {
        world.put(&namespace(), record, Revision::new(1));
    }
    world
}

/// A node whose agents lose their ledgers, and the order that the control plane has for it.
struct Life {
    world: World,
    written: OrderContent,
    orders: Vec<OrderContent>,
    reported: Option<LedgerId>,
    ours: usize,
    newest: usize,
    memory: EntityMemory,
    work: Option<WorkMemory>,
}

impl Life {
    fn new(world: World) -> Self {
        let assignment = Assignment {
            version: Version::numbered("install", 7).unwrap(),
            number: AssignmentNumber::new(1),
            method: ApplyMethod::Workflow,
            soak: None,
            binding: Default::default(),
            retry: None,
        };
        let written = OrderContent { entities: [(run_name(), assignment)].into(), ..OrderContent::default() };
        let orders = vec![written.clone()];
        let (memory, work) = (EntityMemory::default(), None);
        Self { world, written, orders, reported: None, ours: 0, newest: 0, memory, work }
    }

    fn ledger(&self) -> LedgerId {
        alloc::format!("ledger-{}", self.ours).parse().unwrap()
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&namespace()).unwrap()
    }

    fn reports(&mut self) {
        let ledger = self.ledger();
        let told = self.work.as_ref().map(|work| work.jobs.clone());
        absorbed(&mut self.world, &report(ledger.as_str()), told);
        self.reported = Some(ledger);
    }

    fn writes_the_order(&mut self) {
        let node: NodeName = "web-1".parse().unwrap();
        let goes_on = |run: &EntityName| self.fleet().goes_on_after(run, &node);
        let bound = self.written.clone().bound(Some(&self.written), self.reported.as_ref(), goes_on);
        let is_current = self.written.is_current(&self.written, self.reported.as_ref(), goes_on);
        assert_eq!(is_current, bound == self.written);
        if !is_current {
            self.orders.push(bound.clone());
            self.written = bound;
        }
    }

    /// The ledger is gone: another host, or a new disk. The agent begins with any order.
    fn begins_anew(&mut self) {
        (self.ours, self.newest) = (self.ours + 1, 0);
        (self.memory, self.work) = (EntityMemory::default(), None);
    }

    fn accepts(&mut self, skipped: usize) {
        let at = self.newest + skipped;
        if let Some(order) = self.orders.get(at) {
            self.memory.assign(order.entities[&run_name()].clone());
            self.newest = at + 1;
        }
    }

    /// The agent does its next step; answers the task that it begins.
    fn steps(&mut self) -> Option<usize> {
        match action::next(&self.memory, &self.ledger(), false) {
            ActionStep::Run(version) => {
                let complete = self.memory.wanted.as_ref().map_or(0, |wanted| wanted.binding.complete);
                self.memory.runs(&version);
                let mut work = self.work.take().unwrap_or_else(|| WorkMemory::after(version, complete));
                if work.job.is_some() {
                    work.completes(Timestamp::EPOCH);
                    self.work = Some(work);
                    return None;
                }
                let (node, index) = ("web-1".parse().unwrap(), work.complete);
                let fleet = self.fleet();
                let run = &fleet.runs.get(&run_name()).unwrap().value;
                let bound = self.written.entities[&run_name()].binding.ledger.as_ref();
                let taken =
                    dispatched(fleet, (run, &node), bound, index).expect("not finished by this ledger");
                let is_behind = index as usize == run.tasks.len();
                let task = run.tasks.get(index as usize).cloned();
                if let Some(taken) = taken {
                    self.world.put(&namespace(), Record::Jobs(taken), Revision::new(3));
                }
                if is_behind {
                    self.memory.finished(crate::local::memory::StepOutcome::Done, Timestamp::EPOCH, 7);
                } else {
                    let task = task.unwrap();
                    work.created(task.task, task.idempotent);
                    work.begins(Timestamp::EPOCH);
                }
                self.work = Some(work);
                (!is_behind).then_some(index as usize)
            }
            ActionStep::Lose(version) => {
                self.memory.loses(&version, false, Timestamp::EPOCH, 7);
                None
            }
            ActionStep::Acknowledge(_) | ActionStep::Rest(_) => None,
        }
    }
}

proptest! {
    /// Wherever the ledger is lost, whatever arrives late: a task begins once unless it may more often, and none is passed over.
    #[test]
    fn a_run_that_another_ledger_goes_on_with_begins_no_task_twice(
        idempotent in prop::collection::vec(any::<bool>(), 1..4),
        logical in any::<bool>(),
        history in prop::collection::vec((0_u8..8, 0_usize..3), 0..200)
    ) {
        let mut life = Life::new(world_of(&idempotent, logical));
        let mut begun = vec![0; idempotent.len()];
        for (event, skipped) in history {
            match event {
                0 => life.reports(),
                1 => life.begins_anew(),
                2 | 3 => life.writes_the_order(),
                4 | 5 => life.accepts(skipped),
                _ => if let Some(task) = life.steps() {
                    prop_assert!(idempotent[task] || begun[task] == 0, "task {} began twice", task);
                    prop_assert!(begun[..task].iter().all(|before| *before > 0), "a task was passed over");
                    begun[task] += 1;
                }
            }
        }
    }
}

#[test]
fn a_run_goes_on_with_another_ledger_where_nothing_can_run_twice() {
    let taken = |idempotent: &[bool], logical, jobs: &[JobState]| {
        let mut world = world_of(idempotent, logical);
        let jobs: Vec<Job> = (0..).zip(jobs).map(|(index, state)| job(index, "one", *state)).collect();
        if !jobs.is_empty() {
            absorbed(&mut world, &report("a"), Some(jobs));
        }
        world.fleets.get(&namespace()).unwrap().goes_on_after(&run_name(), &"web-1".parse().unwrap())
    };
    let (done, runs) = (JobState::Finished, JobState::Running);
    for logical in [false, true] {
        assert_eq!(taken(&[false, false], logical, &[]), Some(0), "it never began");
    }
    assert_eq!(taken(&[false, false], true, &[done]), Some(1), "nothing is known to have begun since");
    assert_eq!(taken(&[false, true], true, &[done, runs]), Some(1));
    assert_eq!(taken(&[false, false], true, &[done, runs]), None);
    assert_eq!(taken(&[true, true], true, &[done, JobState::Failed]), None, "it failed");
    assert_eq!(taken(&[true, true], false, &[done]), None, "nobody knows whether a machine's agent goes on");
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
    let order = Order { generation: Generation::ZERO.next(), term: Term::default(), content };
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
        assert_eq!(dispatch(&mut world, ledger, 0), Err(FinishedAlready));
    }
    assert!(dispatch(&mut world, "a", 1).unwrap().is_some());
    assert_eq!(states(&world), [(0, JobState::Skipped), (1, JobState::Created)]);
}
