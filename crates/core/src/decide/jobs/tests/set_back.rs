//! A ledger that is set back, as by a copy of its directory, or of which files are removed: it is the same one, and knows less than it told.

use proptest::prelude::*;

use super::*;
use crate::local::work::{WorkMemory, WorkStep};
use crate::records::evidence::Evidence;
use crate::records::order::{ApplyMethod, Assignment, LedgerBinding};
use crate::records::report::{EntityReport, TargetHealth};
use crate::words::counter::AssignmentNumber;
use crate::words::version::Version;
use crate::world::lost_runs::RunLoss;

fn node() -> NodeName {
    "web-1".parse().unwrap()
}

/// The node has an order of the run for ledger `a`, with this number of the assignment.
pub(super) fn assigned(world: &mut World, number: u64) {
    let ledger = Some("a".parse().unwrap());
    let assignment = Assignment {
        store: None,
        version: Version::numbered("install", 7).unwrap(),
        number: AssignmentNumber::new(number),
        method: ApplyMethod::Workflow,
        soak: None,
        binding: LedgerBinding { ledger, ..LedgerBinding::default() },
        retry: (number > 1).then(|| AssignmentNumber::new(number - 1)),
    };
    let content = OrderContent { entities: [(run_name(), assignment)].into(), ..OrderContent::default() };
    let order =
        Order { generation: Generation::new(number), term: Term::new(1), epoch: Epoch::ZERO, content };
    world.put(&namespace(), Record::Order(node(), order), Revision::new(2));
}

/// A numbered report of ledger `a` about the run, which has failed there or not.
fn numbered(sequence: u64, answering: u64, has_failed: bool) -> Report {
    let activity = match has_failed {
        true => TargetActivity::Failed { attempts: 1, evidence: Arc::new(Evidence::default()) },
        false => TargetActivity::Nothing,
    };
    let entity = EntityReport {
        running: None,
        answering: AssignmentNumber::new(answering),
        answered_at: Timestamp::EPOCH,
        activity,
        health: TargetHealth::NoChecks,
        healthy_since: None,
        soaked: None,
        soak_failure: None,
        agent_restarted: false,
        waits_for: BTreeSet::new(),
        step: None,
    };
    Report { sequence, entities: [(run_name(), entity)].into(), ..report("a") }
}

fn takes(world: &mut World, index: u32) -> Result<Option<NodeJobs>, DispatchRefusal> {
    dispatch(world, "a", index)
}

fn is_forgotten(world: &World) -> bool {
    let fleet = world.fleets.get(&namespace()).unwrap();
    fleet.jobs_of(&run_name()).any(|kept| kept.value.forgotten)
}

#[test]
fn what_a_ledger_told_and_does_not_know_any_more_is_lost_and_nothing_of_the_run_begins() {
    let mut world = world();
    assigned(&mut world, 1);
    let both = vec![job(0, "one", JobState::Finished), job(1, "two", JobState::Running)];
    absorbed(&mut world, &numbered(1, 1, false), Some(both));
    assert_eq!(absorbed(&mut world, &numbered(2, 1, false), None), 0, "nothing has changed");
    assert_eq!(absorbed(&mut world, &numbered(3, 1, false), Some(vec![])), 1);
    assert_eq!(states(&world), [(0, JobState::Finished), (1, JobState::Lost)]);
    for index in 0..3 {
        assert_eq!(takes(&mut world, index), Err(DispatchRefusal::Forgotten), "{index}");
    }
    world.put(&namespace(), Record::Report(report("a")), Revision::new(3));
    let fleet = world.fleets.get(&namespace()).unwrap();
    assert_eq!(fleet.run_loss(&run_name(), &node()), Some(RunLoss::ForgottenByLedger));
    let told = fleet.why_lost(&run_name(), &node()).unwrap();
    assert!(told.ends_with("bellwether workflow run install -l 'name = \"web-1\"' --from all/two"), "{told}");
    // The directory that was there before is back.
    let both = vec![job(0, "one", JobState::Finished), job(1, "two", JobState::Failed)];
    absorbed(&mut world, &numbered(4, 1, true), Some(both));
    assert!(!is_forgotten(&world));
    assert_eq!(states(&world), [(0, JobState::Finished), (1, JobState::Failed)]);
}

#[test]
fn a_report_that_is_not_numbered_or_of_another_ledger_than_the_orders_is_no_evidence() {
    let running = || Some(vec![job(0, "one", JobState::Running)]);
    let mut world = world();
    assigned(&mut world, 1);
    absorbed(&mut world, &numbered(0, 1, false), running());
    assert_eq!(absorbed(&mut world, &numbered(0, 1, false), Some(vec![])), 0, "it may be a late one");
    let other = Report { ledger: Some("b".parse().unwrap()), ..numbered(1, 1, false) };
    absorbed(&mut world, &other, running());
    assert_eq!(absorbed(&mut world, &Report { sequence: 2, ..other }, Some(vec![])), 0);
    assert!(!is_forgotten(&world));
}

#[test]
fn a_task_that_was_reported_as_begun_begins_again_only_if_it_may_or_a_person_asked() {
    for (state, number, idempotent, begins) in [
        (JobState::Running, 1, false, false),
        (JobState::Running, 2, false, false),
        (JobState::Failed, 1, false, false),
        (JobState::Failed, 2, false, true),
        (JobState::Lost, 1, false, false),
        (JobState::Lost, 2, false, true),
        (JobState::Incomplete, 1, false, true),
        (JobState::Created, 1, false, true),
        (JobState::Running, 1, true, true),
        (JobState::Failed, 1, true, true),
    ] {
        let mut world = ledgers::world_of(&[idempotent], false);
        assigned(&mut world, number);
        absorbed(&mut world, &numbered(1, number, false), Some(vec![job(0, "one", state)]));
        let expected = if begins { None } else { Some(DispatchRefusal::Begun) };
        assert_eq!(takes(&mut world, 0).err(), expected, "{state:?} {number} {idempotent}");
    }
}

#[test]
fn what_was_only_dispatched_is_lost_once_the_run_has_failed_there() {
    for told in [None, Some(vec![])] {
        let mut world = world();
        assigned(&mut world, 2);
        takes(&mut world, 0).unwrap();
        absorbed(&mut world, &numbered(1, 2, false), told.clone());
        absorbed(&mut world, &numbered(2, 1, true), told.clone());
        assert_eq!(states(&world), [(0, JobState::Created)], "it may be on its way");
        absorbed(&mut world, &numbered(3, 2, true), told);
        assert_eq!(states(&world), [(0, JobState::Lost)]);
    }
}

/// A node whose ledger may be set back, and what the control plane knows of it.
struct Life {
    world: World,
    idempotent: Vec<bool>,
    /// The assignment that the agent has accepted, whether the run has failed for it, and whether it is complete.
    ledger: (u64, bool, bool, WorkMemory),
    copy: Option<(u64, bool, bool, WorkMemory)>,
    /// Number of the assignment at the control plane.
    number: u64,
    sequence: u64,
    absorbed: u64,
    told: Option<Vec<Job>>,
    /// Reports that are under way, with the number of starts of the agent before each.
    sent: Vec<(Report, Option<Vec<Job>>, usize)>,
    starts: usize,
    /// Of each task: how often it began.
    begun: Vec<u32>,
    /// Of each task: whether the control plane knows that it began the last time.
    known: Vec<bool>,
    /// Of each task: how often a person asked for it again, and it has not begun since.
    asked: Vec<u32>,
}

impl Life {
    fn new(idempotent: Vec<bool>) -> Self {
        let mut world = ledgers::world_of(&idempotent, false);
        assigned(&mut world, 1);
        let work = WorkMemory::new(Version::numbered("install", 7).unwrap());
        let (known, asked) = (vec![false; idempotent.len()], vec![0; idempotent.len()]);
        let begun = asked.clone();
        let (ledger, sent) = ((1, false, false, work), Vec::new());
        Self {
            world,
            idempotent,
            ledger,
            copy: None,
            number: 1,
            sequence: 0,
            absorbed: 0,
            told: None,
            sent,
            starts: 0,
            begun,
            known,
            asked,
        }
    }

    fn sends(&mut self) {
        let (number, has_failed, _, work) = &self.ledger;
        self.sequence += 1;
        let told = (self.told.as_ref() != Some(&work.jobs)).then(|| work.jobs.clone());
        self.sent.push((numbered(self.sequence, *number, *has_failed), told, self.starts));
    }

    /// A report arrives, in whatever order; its answer arrives too, or not.
    fn arrives(&mut self, at: usize, is_answered: bool) {
        if self.sent.is_empty() {
            return;
        }
        let (report, told, sent_after) = self.sent.remove(at % self.sent.len());
        if report.sequence < self.absorbed {
            return;
        }
        self.absorbed = report.sequence;
        for job in told.iter().flatten().filter(|job| job.attempts > 0) {
            let index = job.index as usize;
            self.known[index] = job.attempts == self.begun[index];
        }
        absorbed(&mut self.world, &report, told.clone());
        self.world.put(&namespace(), Record::Report(report), Revision::new(4));
        if is_answered && told.is_some() && sent_after == self.starts {
            self.told = told;
        }
    }

    /// A person asks for what failed; answers whether that is not refused.
    fn retries(&mut self) -> bool {
        let fleet = self.world.fleets.get(&namespace()).unwrap();
        let report =
            fleet.reports.get(&node()).and_then(|kept| kept.value.entities.get(&run_name()).cloned());
        let has_failed = report.is_some_and(|report| {
            report.answering.get() == self.number && report.activity != TargetActivity::Nothing
        });
        if !has_failed || fleet.run_loss(&run_name(), &node()).is_some() {
            return false;
        }
        self.number += 1;
        assigned(&mut self.world, self.number);
        let known = states(&self.world).iter().take_while(|(_, state)| state.is_complete()).count();
        if let Some(asked) = self.asked.get_mut(known) {
            *asked += 1;
        }
        true
    }

    fn accepts(&mut self) {
        let (number, has_failed, _, work) = &mut self.ledger;
        if *number < self.number {
            *number = self.number;
            if core::mem::take(has_failed) {
                work.retried();
            }
        }
    }

    /// The agent starts, with this ledger.
    fn starts(&mut self) {
        (self.told, self.starts) = (None, self.starts + 1);
        self.ledger.3.started("boot");
    }

    fn is_about_to_begin(&self) -> bool {
        matches!(self.ledger.3.next("boot", Timestamp::EPOCH), WorkStep::Begin(_))
    }

    fn steps(&mut self, goes_wrong: bool) {
        let (_, has_failed, is_done, work) = &mut self.ledger;
        if *has_failed || *is_done {
            return;
        }
        let is_running =
            work.job.as_ref().is_some_and(|job| job.state == crate::local::work::JobState::Running);
        match work.next("boot", Timestamp::EPOCH) {
            WorkStep::Create(task) => match dispatch(&mut self.world, "a", task) {
                Err(_) => *has_failed = true,
                Ok(_) => {
                    let index = task as usize;
                    let idempotent = self.idempotent.get(index).copied();
                    if idempotent == Some(false) {
                        assert!(!self.known[index] || self.asked[index] > 0, "task {index} began again");
                    }
                    match idempotent {
                        // The answer is lost.
                        _ if goes_wrong => {}
                        Some(idempotent) => work.created("one".parse().unwrap(), idempotent),
                        None => *is_done = true,
                    }
                }
            },
            WorkStep::Begin(index) => {
                let index = index as usize;
                self.asked[index] = self.asked[index].saturating_sub(1);
                self.begun[index] += 1;
                self.known[index] = false;
                work.begins(Timestamp::EPOCH);
            }
            WorkStep::Fail(_) if is_running && work.jobs.last().is_some_and(|job| job.attempts > 0) => {
                // It is the agent of this life that runs it.
                match goes_wrong {
                    false => work.completes(Timestamp::EPOCH),
                    true => {
                        work.fails(Some(1), Timestamp::EPOCH);
                        *has_failed = true;
                    }
                }
            }
            WorkStep::Fail(_) | WorkStep::WaitUntil(_) | WorkStep::WaitForStart(_) | WorkStep::EndBoot(_) => {
            }
        }
    }

    /// The agent ends: what ran is lost, unless it may run again.
    fn crashes(&mut self) {
        self.starts();
        let (_, has_failed, _, work) = &mut self.ledger;
        if let WorkStep::Fail(_) = work.next("boot", Timestamp::EPOCH) {
            work.gives_up();
            *has_failed = true;
        }
    }

    /// All that is under way arrives, and the agent comes to an end.
    fn ends(&mut self) {
        for _ in 0..40 {
            self.accepts();
            self.steps(false);
            self.sends();
            self.arrives(self.sent.len() - 1, true);
        }
    }
}

proptest! {
    /// Whatever is late or lost, and however often the ledger is set back: nothing that is known to have begun begins again, and in the end
    /// no job is open, and what is retried goes on or is refused.
    #[test]
    fn a_ledger_that_is_set_back_leaves_no_job_open_and_begins_nothing_again(
        idempotent in prop::collection::vec(any::<bool>(), 1..4),
        may_be_set_back in any::<bool>(),
        history in prop::collection::vec((0_u8..12, 0_usize..4), 0..120)
    ) {
        let mut life = Life::new(idempotent);
        for (event, which) in history {
            match event {
                0 | 1 => life.sends(),
                2 | 3 => life.arrives(which, which != 3),
                4 if which == 0 => life.crashes(),
                5 if which == 0 => { life.retries(); }
                6 => life.accepts(),
                // A job that is created begins without another word.
                7 if which == 0 && !life.is_about_to_begin() => life.copy = Some(life.ledger.clone()),
                8 if which == 0 && may_be_set_back => if let Some(copy) = life.copy.clone() {
                    life.ledger = copy;
                    life.crashes();
                }
                _ => life.steps(which == 0),
            }
        }
        life.ends();
        let open = |life: &Life| {
            let fleet = life.world.fleets.get(&namespace()).unwrap();
            fleet.jobs_of(&run_name()).flat_map(|kept| kept.value.jobs.clone()).filter(|job| job.state.is_open()).count()
        };
        prop_assert_eq!(open(&life), 0, "{:?}", states(&life.world));
        if !may_be_set_back {
            prop_assert!(!is_forgotten(&life.world));
            let known: Vec<_> = life.ledger.3.jobs.iter().map(|job| (job.index, job.state)).collect();
            let recorded: Vec<_> = states(&life.world).into_iter().take(known.len()).collect();
            prop_assert_eq!(recorded, known, "what is recorded is what the node knows");
        }
        if life.retries() {
            life.ends();
            prop_assert_eq!(open(&life), 0);
        }
    }
}
