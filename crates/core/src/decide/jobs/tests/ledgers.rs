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
pub(super) fn world_of(idempotent: &[bool], logical: bool) -> World {
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

/// The same records of an installation in this epoch.
fn in_epoch(mut world: World, epoch: Epoch) -> World {
    world.epoch = epoch;
    let mut fleet = world.fleets.get(&namespace()).unwrap().clone();
    fleet.epoch = epoch;
    world.fleets.insert_mut(namespace(), fleet);
    world
}

/// The report of a node with this ledger arrives.
fn reported(world: &mut World, ledger: &str) {
    let fleet = world.fleets.get(&namespace()).unwrap();
    let last = fleet.reports.get(&NodeName::parse("web-1").unwrap()).map(|kept| &*kept.value);
    let new = Report { ledger_since: fleet.epoch, ..report(ledger) };
    let absorbed = crate::decide::report::absorb(last, new, Timestamp::EPOCH);
    for write in absorbed.into_iter().flat_map(|changeset| changeset.writes) {
        write.apply_to(world, &namespace(), Revision::new(2));
    }
}

/// A node whose agents lose their ledgers, and the order that the control plane has for it.
struct Life {
    world: World,
    written: OrderContent,
    orders: Vec<OrderContent>,
    /// What a backup has.
    backup: Option<(World, OrderContent)>,
    ours: usize,
    newest: usize,
    memory: EntityMemory,
    work: Option<WorkMemory>,
}

impl Life {
    fn new(world: World) -> Self {
        let assignment = Assignment {
            store: None,
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
        Self { world, written, orders, backup: None, ours: 0, newest: 0, memory, work }
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
        reported(&mut self.world, ledger.as_str());
    }

    fn backs_up(&mut self) {
        self.backup = Some((self.world.clone(), self.written.clone()));
    }

    /// The control plane is what the backup says, in another epoch, and the orders of before are gone.
    fn restores(&mut self) {
        let Some((backup, written)) = self.backup.clone() else { return };
        let epoch = Epoch::new(self.world.epoch.get() + 100);
        (self.world, self.written) = (in_epoch(backup, epoch), written);
        (self.orders, self.newest) = (Vec::new(), 0);
        self.writes_the_order();
        self.orders.push(self.written.clone());
    }

    fn writes_the_order(&mut self) {
        let node: NodeName = "web-1".parse().unwrap();
        let goes_on = |run: &EntityName| self.fleet().goes_on_after(run, &node);
        let ledger = self.fleet().ledger(&node);
        let bound = self.written.clone().bound(Some(&self.written), ledger, goes_on);
        let is_current = self.written.is_current(&self.written, ledger, goes_on);
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
                let known = fleet.jobs.get(&(run_name(), node)).map(|kept| kept.value.jobs.clone());
                work.recalls(known.unwrap_or_default());
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
    /// Wherever the ledger is lost, whatever arrives late, however often a backup is restored: a task begins once unless it may more often, and none is passed over.
    #[test]
    fn a_run_that_another_ledger_goes_on_with_begins_no_task_twice(
        idempotent in prop::collection::vec(any::<bool>(), 1..4),
        logical in any::<bool>(),
        history in prop::collection::vec((0_u8..12, 0_usize..3), 0..200)
    ) {
        let mut life = Life::new(world_of(&idempotent, logical));
        let mut begun = vec![0; idempotent.len()];
        for (event, skipped) in history {
            match event {
                0 => life.reports(),
                1 => life.begins_anew(),
                2 | 3 => life.writes_the_order(),
                4 | 5 => life.accepts(skipped),
                8 if skipped == 0 => life.backs_up(),
                9 if skipped == 0 => life.restores(),
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

#[test]
fn a_run_of_before_a_restore_begins_with_no_ledger_that_is_new_since_unless_it_may_run_again() {
    let goes_on = |idempotent: &[bool], logical, jobs: &[JobState], epoch: u64, since: &str| {
        let mut world = world_of(idempotent, logical);
        reported(&mut world, "a");
        let jobs: Vec<Job> = (0..).zip(jobs).map(|(index, state)| job(index, "one", *state)).collect();
        if !jobs.is_empty() {
            absorbed(&mut world, &report("a"), Some(jobs));
        }
        let mut world = in_epoch(world, Epoch::new(epoch));
        reported(&mut world, since);
        world.fleets.get(&namespace()).unwrap().goes_on_after(&run_name(), &"web-1".parse().unwrap())
    };
    let (former, present) = (100, 6);
    assert_eq!(goes_on(&[false], false, &[], former, "b"), None, "it may have begun after the backup");
    assert_eq!(goes_on(&[false], false, &[], present, "b"), Some(0), "it was started after the restore");
    assert_eq!(goes_on(&[false], false, &[], former, "a"), Some(0), "this ledger knows what began");
    assert_eq!(
        goes_on(&[true], false, &[], former, "b"),
        None,
        "nobody knows whether a machine's agent goes on"
    );
    assert_eq!(goes_on(&[true, true], true, &[], former, "b"), Some(0));
    assert_eq!(goes_on(&[true, false], true, &[], former, "b"), None);
    assert_eq!(goes_on(&[false, true], true, &[JobState::Finished], former, "b"), Some(1));
    assert_eq!(goes_on(&[false, false], true, &[JobState::Finished], former, "b"), None);
}

#[test]
fn a_run_of_before_a_restore_that_no_ledger_is_bound_to_is_lost_for_one_that_is_new_since() {
    for (epoch, ledger, may_begin) in [(0, "b", true), (100, "b", false), (100, "a", true), (6, "b", true)] {
        let mut life = Life::new(world_of(&[false], false));
        reported(&mut life.world, "a");
        life.world = in_epoch(life.world.clone(), Epoch::new(epoch));
        reported(&mut life.world, ledger);
        life.writes_the_order();
        let binding = &life.written.entities[&run_name()].binding;
        let ours: LedgerId = ledger.parse().unwrap();
        let expected = if may_begin { (Some(&ours), None) } else { (None, Some(&ours)) };
        assert_eq!((binding.ledger.as_ref(), binding.lost_for.as_ref()), expected, "{epoch} {ledger}");
        let mut memory = EntityMemory::default();
        memory.assign(life.written.entities[&run_name()].clone());
        let step = action::next(&memory, &ours, false);
        assert_eq!(matches!(step, ActionStep::Run(_)), may_begin, "{step:?}");
        assert_eq!(matches!(step, ActionStep::Lose(_)), !may_begin, "{step:?}");
    }
}
