//! Runs that another ledger goes on with: a former agent's was lost, or the logical node has another host.

use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::local::action::{self, ActionStep};
use crate::local::memory::{EntityMemory, StepOutcome};
use crate::local::work::WorkMemory;
use crate::records::order::{ApplyMethod, Assignment};
use crate::records::progress::Progress;
use crate::rollout::operations;
use crate::words::counter::AssignmentNumber;
use crate::words::version::Version;

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
    #[expect(clippy::unwrap_in_result, reason = "a test stops where it is wrong")]
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
                    self.memory.finished(StepOutcome::Done, Timestamp::EPOCH, 7);
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
    assert_eq!(taken(&[true, true], true, &[runs, runs]), Some(0), "the outputs of the first are not known");
    assert_eq!(taken(&[false, true], true, &[runs, runs]), None);
    assert_eq!(taken(&[true, true], true, &[done, JobState::Failed]), None, "it failed");
    assert_eq!(taken(&[true, true], false, &[done]), None, "nobody knows whether a machine's agent goes on");
}

#[test]
fn a_run_that_has_ended_begins_with_no_other_ledger() {
    let mut world = world_of(&[true], false);
    let goes_on = |world: &World| {
        world.fleets.get(&namespace()).unwrap().goes_on_after(&run_name(), &"web-1".parse().unwrap())
    };
    assert_eq!(goes_on(&world), Some(0), "it never began there");
    let by = || Annotation::of("kim".parse().unwrap(), Timestamp::EPOCH);
    let entity = Entity::clone(&world.fleets.get(&namespace()).unwrap().entities[&run_name()].value);
    let none = Progress::default();
    let asked = operations::start(&entity, &none, "install@7".parse().unwrap(), by()).unwrap();
    let aborted = operations::abort(&asked, &none, by()).unwrap();
    let handled = Progress { handled: aborted.last_request(), ..none };
    for record in [Record::Entity(aborted), Record::Progress(run_name(), handled)] {
        world.put(&namespace(), record, Revision::new(2));
    }
    assert_eq!(goes_on(&world), None, "nobody expects it any more");
}
