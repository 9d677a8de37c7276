//! Due times through outages, restarts and wrong clocks.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::records::annotation::Annotation;
use crate::records::entity::Entity;
use crate::records::key::{Key, Record};
use crate::records::policy::Policy;
use crate::words::counter::ScheduleRevision;
use crate::words::label::Labels;
use crate::words::name::{EntityName, Namespace};
use crate::words::selector::Selector;
use crate::words::version::Version;
use crate::world::World;

const HOUR: u64 = 60 * 60;

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(seconds))
}

fn schedule(cron: &str, planned: Timestamp) -> Schedule {
    let annotation = Annotation::of("kim".parse().unwrap(), planned);
    Schedule {
        name: "nightly".parse().unwrap(),
        revision: ScheduleRevision::new(1),
        workflow: "backup".parse().unwrap(),
        filter: "all".into(),
        cron: cron.parse().unwrap(),
        zone: "UTC".parse().unwrap(),
        starting_deadline: Span::from_secs(HOUR),
        concurrency: Concurrency::Forbid,
        suspended: false,
        policy: Policy::DEFAULT,
        labels: Labels::default(),
        annotation,
        next: None,
        planned_at: planned,
        last_run: None,
        last: None,
    }
    .planned(planned)
}

/// A namespace with a schedule and its last run.
struct Setup {
    world: World,
    started: Vec<Timestamp>,
}

impl Setup {
    fn new(schedule: Schedule) -> Self {
        let mut setup = Self { world: World::default(), started: Vec::new() };
        setup.put(Record::Schedule(schedule));
        setup
    }

    fn put(&mut self, record: Record) {
        let namespace = Namespace::parse("default").unwrap();
        let revision = self.world.revision.next();
        self.world.put(&namespace, record, revision);
        self.world.revision = revision;
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&Namespace::parse("default").unwrap()).unwrap()
    }

    fn schedule(&self) -> Schedule {
        (*self.fleet().schedules.values().next().unwrap().value).clone()
    }

    /// What a leader does whenever it looks, until nothing is due.
    fn look(&mut self, now: Timestamp) {
        while first(self.fleet(), now).0.is_some() {
            let schedule = self.schedule();
            match turn(&schedule, self.fleet(), now) {
                Turn::Wait => panic!("{schedule:?} was due at {now:?}"),
                Turn::Plan(after) | Turn::Skip(after) => self.put(Record::Schedule(after)),
                Turn::Start(due) => {
                    self.started.push(due);
                    let run = Some(EntityName::parse("backup-1").unwrap());
                    let after = schedule.after(due, DueResult::Started, "backup-1".into(), now);
                    self.put(Record::Schedule(Schedule { last_run: run, ..after }));
                }
            }
        }
    }

    fn is_running(&mut self) {
        let entity = Entity::new("backup-1".parse().unwrap(), Selector::all(), Policy::DEFAULT);
        let by = Annotation::of("kim".parse().unwrap(), at(0));
        let version: Version = "backup@1".parse().unwrap();
        let asked = crate::rollout::operations::start(&entity, &Default::default(), version, by).unwrap();
        self.put(Record::Entity(asked));
    }

    fn ended(&mut self) {
        let namespace = Namespace::parse("default").unwrap();
        let revision = self.world.revision.next();
        self.world.delete(&namespace, &Key::Entity("backup-1".parse().unwrap()), revision);
    }
}

#[test]
fn a_due_time_starts_one_run_also_if_a_leader_comes_late() {
    let mut setup = Setup::new(schedule("0 * * * *", at(10)));
    assert_eq!(first(setup.fleet(), at(20)), (None, Some(at(HOUR))));
    setup.look(at(HOUR - 1));
    assert_eq!(setup.started, []);
    setup.look(at(HOUR + 30 * 60));
    setup.look(at(HOUR + 31 * 60));
    assert_eq!(setup.started, [at(HOUR)]);
}

#[test]
fn of_several_missed_times_the_last_within_the_deadline_is_started() {
    let mut setup = Setup::new(schedule("*/10 * * * *", at(10)));
    setup.look(at(5 * HOUR + 15 * 60));
    assert_eq!(setup.started, [at(5 * HOUR + 10 * 60)]);
    let mut late = Setup::new(schedule("0 3 * * *", at(10)));
    late.look(at(5 * HOUR));
    assert_eq!(late.started, []);
    let last = late.schedule().last.unwrap();
    assert_eq!((last.due, last.result), (at(3 * HOUR), DueResult::Skipped));
    assert_eq!(last.text, "no server could start it within 1h");
    assert_eq!(late.schedule().next, Some(at(27 * HOUR)));
}

#[test]
fn a_due_time_is_skipped_while_the_last_run_is_in_progress() {
    let mut setup = Setup::new(schedule("0 * * * *", at(10)));
    setup.look(at(HOUR));
    setup.is_running();
    setup.look(at(2 * HOUR));
    assert_eq!(setup.started, [at(HOUR)]);
    assert_eq!(setup.schedule().last.unwrap().text, "run backup-1 is in progress");
    setup.ended();
    setup.look(at(3 * HOUR));
    assert_eq!(setup.started, [at(HOUR), at(3 * HOUR)]);
    let allowed = Schedule { concurrency: Concurrency::Allow, ..setup.schedule() };
    setup.put(Record::Schedule(allowed));
    setup.is_running();
    setup.look(at(4 * HOUR));
    assert_eq!(setup.started.last(), Some(&at(4 * HOUR)));
}

#[test]
fn nothing_is_due_while_suspended_and_no_earlier_time_afterwards() {
    let suspended = Schedule { suspended: true, ..schedule("0 * * * *", at(10)) }.planned(at(20));
    let mut setup = Setup::new(suspended);
    assert_eq!(first(setup.fleet(), at(9 * HOUR)), (None, None));
    let resumed = Schedule { suspended: false, ..setup.schedule() }.planned(at(9 * HOUR + 60));
    setup.put(Record::Schedule(resumed));
    setup.look(at(9 * HOUR + 120));
    assert_eq!(setup.started, []);
    setup.look(at(10 * HOUR));
    assert_eq!(setup.started, [at(10 * HOUR)]);
}

#[test]
fn a_clock_that_was_years_ahead_holds_nothing_up() {
    let years = 3 * 365 * 24 * HOUR;
    let mut setup = Setup::new(schedule("0 3 * * *", at(years)));
    setup.look(at(10));
    assert_eq!(setup.schedule().next, Some(at(3 * HOUR)));
    setup.look(at(3 * HOUR));
    assert_eq!(setup.started, [at(3 * HOUR)]);
}

#[test]
fn a_clock_that_is_minutes_behind_starts_nothing_twice() {
    let mut setup = Setup::new(schedule("0 * * * *", at(10)));
    setup.look(at(HOUR + 5));
    for seconds in [HOUR - 20 * 60, HOUR - 1, HOUR, HOUR + 1, 2 * HOUR - 1] {
        setup.look(at(seconds));
    }
    assert_eq!(setup.started, [at(HOUR)]);
}

proptest! {
    /// Whatever leaders look when: no due time gets two runs, and with a leader that always looked within the deadline each that has
    /// none was followed by another one before somebody looked.
    #[test]
    fn each_due_time_gets_at_most_one_run(
        minutes in prop::sample::select(vec!["*", "*/7", "0", "5,50"]),
        gaps in prop::collection::vec(0_u64..2 * HOUR, 1..40),
    ) {
        let cron = alloc::format!("{minutes} * * * *");
        let planned = schedule(&cron, at(10));
        let mut setup = Setup::new(planned.clone());
        let (mut now, mut looked, mut before) = (10, at(10), 0);
        for gap in gaps {
            now += gap;
            setup.look(at(now));
            prop_assert!(setup.started.len() <= before + 1, "one look starts one run");
            let last = planned.cron.after(&planned.zone, looked).filter(|due| *due <= at(now)).map(|first| {
                let mut last = first;
                while let Some(next) = planned.cron.after(&planned.zone, last).filter(|due| *due <= at(now)) {
                    last = next;
                }
                last
            });
            let last = last.filter(|due| at(now).since(*due) <= planned.starting_deadline);
            prop_assert_eq!(setup.started.get(before).copied(), last);
            (before, looked) = (setup.started.len(), at(now));
        }
        prop_assert!(setup.started.is_sorted_by(|one, next| one < next));
    }
}
