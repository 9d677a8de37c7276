use super::super::plan::{self, ApplyStep, IdleReason, LocalObservation};
use super::*;
use crate::records::order::ApplyMethod;
use crate::words::counter::AssignmentNumber;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn validated(text: &str) -> EntityMemory {
    let mut memory = EntityMemory::default();
    memory.assign(Assignment {
        store: None,
        retry: None,
        soak: None,
        version: version(text),
        number: AssignmentNumber::new(1),
        method: ApplyMethod::Apply,
        binding: Default::default(),
    });
    memory.begins(&version(text));
    memory.ended(ApplyProgress::Validated, StepOutcome::Done, Timestamp::EPOCH, 7);
    memory
}

const UNHEALTHY: LocalObservation =
    LocalObservation { paused: false, unhealthy: true, validate_at: None, follow_at: None };

#[test]
fn a_version_that_keeps_failing_its_checks_is_retried_ever_more_slowly() {
    let mut memory = validated("v1");
    let mut now = Timestamp::EPOCH;
    let mut delays = alloc::vec::Vec::new();
    for _ in 0..5 {
        memory.relapsed(Evidence::default(), Span::from_secs(2), now, 7);
        let ApplyStep::Rest(IdleReason::BackingOff, Some(at)) = plan::next(&memory, UNHEALTHY, now) else {
            panic!("it waits first")
        };
        delays.push(at.since(now).as_millis());
        now = at;
        assert_eq!(plan::next(&memory, UNHEALTHY, now), ApplyStep::Static(version("v1")));
        memory.begins(&version("v1"));
        memory.ended(ApplyProgress::Validated, StepOutcome::Done, now, 7);
    }
    assert_eq!(memory.failed_attempts, 5);
    assert!(delays[4] > 4 * delays[0], "{delays:?}");
    memory.relapsed(Evidence::default(), STEADY, now, 7);
    assert_eq!(memory.failed_attempts, 1);
}

#[test]
fn a_version_that_recovers_by_itself_is_left_alone() {
    let mut memory = validated("v1");
    memory.relapsed(Evidence::default(), STEADY, Timestamp::EPOCH, 7);
    memory.recovered();
    let well = LocalObservation { paused: false, unhealthy: false, validate_at: None, follow_at: None };
    assert_eq!(plan::next(&memory, well, Timestamp::EPOCH), ApplyStep::Rest(IdleReason::UpToDate, None));
}

#[test]
fn an_unhealthy_version_assigned_again_is_retried_at_once() {
    let mut memory = validated("v1");
    memory.relapsed(Evidence::default(), STEADY, Timestamp::EPOCH, 7);
    memory.assign(Assignment {
        store: None,
        retry: None,
        soak: None,
        version: version("v1"),
        number: AssignmentNumber::new(2),
        method: ApplyMethod::Apply,
        binding: Default::default(),
    });
    assert_eq!(memory.failed_attempts, 0);
    assert_eq!(plan::next(&memory, UNHEALTHY, Timestamp::EPOCH), ApplyStep::Static(version("v1")));
}

#[test]
fn another_soak_or_data_store_of_an_assignment_is_known_and_restarts_nothing() {
    let mut memory = validated("v1");
    memory.relapsed(Evidence::default(), STEADY, Timestamp::EPOCH, 7);
    let known = memory.wanted.clone().unwrap();
    let told = Assignment { store: "db".parse().ok(), soak: Some(STEADY), ..known };
    assert!(!memory.assign(told.clone()));
    assert_eq!((memory.wanted, memory.failed_attempts), (Some(told), 1));
}

#[test]
fn a_wall_clock_that_was_moved_back_does_not_stretch_a_wait() {
    let mut memory = validated("v1");
    memory.relapsed(Evidence::default(), STEADY, Timestamp::from_millis(10_000_000), 7);
    memory.restarted(Timestamp::EPOCH);
    assert_eq!(memory.retry_at, Some(Timestamp::EPOCH.plus(delay::LONGEST)));
}

#[test]
fn an_entity_that_left_the_order_starts_nothing_and_has_no_failure() {
    let mut memory = validated("v1");
    memory.relapsed(Evidence::default(), Span::from_secs(2), Timestamp::EPOCH, 7);
    assert!(memory.withdraw() && !memory.withdraw());
    assert_eq!(memory.line(), "runs v1, no version assigned");
    assert_eq!((memory.failed_attempts, &memory.failure_reason), (0, &None));
    let next = plan::next(&memory, UNHEALTHY, Timestamp::EPOCH);
    assert_eq!(next, ApplyStep::Rest(IdleReason::NoAssignment, None));
}

#[test]
fn a_failed_dynamic_part_is_repeated_alone_unless_the_parts_belong_together() {
    let mut memory = EntityMemory::default();
    memory.assign(Assignment {
        store: None,
        retry: None,
        soak: None,
        version: version("v1"),
        number: AssignmentNumber::new(1),
        method: ApplyMethod::Apply,
        binding: Default::default(),
    });
    memory.begins(&version("v1"));
    memory.ended(ApplyProgress::Static, StepOutcome::Done, Timestamp::EPOCH, 7);
    memory.ended(ApplyProgress::Dynamic, StepOutcome::Failed(Evidence::default()), Timestamp::EPOCH, 7);
    let later = Timestamp::EPOCH.plus(delay::LONGEST);
    assert_eq!(plan::next(&memory, UNHEALTHY, later), ApplyStep::Dynamic(version("v1")));
    memory.starts_over();
    assert_eq!(plan::next(&memory, UNHEALTHY, later), ApplyStep::Static(version("v1")));
    memory.ended(ApplyProgress::Static, StepOutcome::Done, later, 7);
    memory.ended(ApplyProgress::Dynamic, StepOutcome::Done, later, 7);
    memory.ended(ApplyProgress::Validated, StepOutcome::Failed(Evidence::default()), later, 7);
    let later = later.plus(delay::LONGEST).plus(delay::LONGEST);
    assert_eq!(plan::next(&memory, UNHEALTHY, later), ApplyStep::Static(version("v1")));
}
