use proptest::prelude::*;

use super::super::memory::StepOutcome;
use super::*;
use crate::records::evidence::Evidence;
use crate::records::order::{ApplyMethod, Assignment};
use crate::words::counter::AssignmentNumber;

const WELL: LocalObservation =
    LocalObservation { paused: false, unhealthy: false, validate_at: None, follow_at: None };

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn assign(memory: &mut EntityMemory, text: &str, number: u64) {
    memory.assign(Assignment {
        store: None,
        retry: None,
        soak: None,
        version: version(text),
        number: AssignmentNumber::new(number),
        method: ApplyMethod::Apply,
        binding: Default::default(),
    });
}

/// Does what the plan says, with `fails` deciding outcomes, until it rests; counts the static runs.
fn settle(
    memory: &mut EntityMemory,
    now: &mut Timestamp,
    mut fails: impl FnMut(&ApplyStep) -> bool,
) -> usize {
    let mut statics = 0;
    for _ in 0..50 {
        let step = next(memory, WELL, *now);
        let reached = match &step {
            ApplyStep::Static(version) => {
                memory.begins(version);
                statics += 1;
                ApplyProgress::Static
            }
            ApplyStep::Dynamic(_) => ApplyProgress::Dynamic,
            ApplyStep::Validate(_) => ApplyProgress::Validated,
            ApplyStep::Rest(IdleReason::BackingOff, Some(at)) => {
                *now = *at;
                continue;
            }
            ApplyStep::Rest(..) | ApplyStep::Revalidate(_) | ApplyStep::Refresh(_) => return statics,
        };
        let outcome = if fails(&step) { StepOutcome::Failed(Evidence::default()) } else { StepOutcome::Done };
        memory.ended(reached, outcome, *now, 7);
    }
    statics
}

#[test]
fn a_node_without_an_assignment_does_nothing() {
    assert_eq!(
        next(&EntityMemory::default(), WELL, Timestamp::EPOCH),
        ApplyStep::Rest(IdleReason::NoAssignment, None)
    );
}

#[test]
fn a_version_counts_as_running_only_after_validation() {
    let (mut memory, mut now) = (EntityMemory::default(), Timestamp::EPOCH);
    assign(&mut memory, "v1", 1);
    assert_eq!(settle(&mut memory, &mut now, |_| false), 1);
    assert_eq!(memory.running, Some(version("v1")));

    assign(&mut memory, "v2", 2);
    memory.begins(&version("v2"));
    memory.ended(ApplyProgress::Static, StepOutcome::Done, now, 7);
    memory.ended(ApplyProgress::Dynamic, StepOutcome::Done, now, 7);
    assert_eq!(memory.running, Some(version("v1")));
    memory.ended(ApplyProgress::Validated, StepOutcome::Failed(Evidence::default()), now, 7);
    assert_eq!(memory.running, Some(version("v1")));
}

#[test]
fn going_back_to_what_was_running_is_still_an_apply_when_something_else_was_touched() {
    let (mut memory, mut now) = (EntityMemory::default(), Timestamp::EPOCH);
    assign(&mut memory, "v1", 1);
    settle(&mut memory, &mut now, |_| false);
    assign(&mut memory, "v2", 2);
    memory.begins(&version("v2"));
    memory.ended(ApplyProgress::Static, StepOutcome::Failed(Evidence::default()), now, 7);
    assign(&mut memory, "v1", 3);
    assert_eq!(next(&memory, WELL, now), ApplyStep::Static(version("v1")));
}

#[test]
fn being_told_the_same_version_again_runs_nothing() {
    let (mut memory, mut now) = (EntityMemory::default(), Timestamp::EPOCH);
    assign(&mut memory, "v1", 1);
    settle(&mut memory, &mut now, |_| false);
    assign(&mut memory, "v1", 2);
    assert_eq!(next(&memory, WELL, now), ApplyStep::Rest(IdleReason::UpToDate, None));
}

#[test]
fn a_paused_node_starts_nothing_and_an_unhealthy_one_is_configured_again() {
    let (mut memory, mut now) = (EntityMemory::default(), Timestamp::EPOCH);
    assign(&mut memory, "v1", 1);
    assert_eq!(
        next(&memory, LocalObservation { paused: true, ..WELL }, now),
        ApplyStep::Rest(IdleReason::Paused, None)
    );
    settle(&mut memory, &mut now, |_| false);
    assert_eq!(
        next(&memory, LocalObservation { unhealthy: true, ..WELL }, now),
        ApplyStep::Static(version("v1"))
    );
}

#[test]
fn the_dynamic_part_runs_again_when_what_it_follows_changed_and_nothing_else_is_due() {
    let (mut memory, mut now) = (EntityMemory::default(), Timestamp::EPOCH);
    let at = Timestamp::from_millis(60_000);
    let due = LocalObservation { follow_at: Some(at), ..WELL };
    assign(&mut memory, "v1", 1);
    assert_eq!(next(&memory, due, at), ApplyStep::Static(version("v1")), "nothing was validated yet");
    settle(&mut memory, &mut now, |_| false);
    assert_eq!(next(&memory, due, now), ApplyStep::Rest(IdleReason::UpToDate, Some(at)));
    assert_eq!(next(&memory, due, at), ApplyStep::Refresh(version("v1")));
    assert_eq!(
        next(&memory, LocalObservation { paused: true, unhealthy: true, ..due }, at),
        ApplyStep::Rest(IdleReason::Paused, None)
    );
    assert_eq!(
        next(&memory, LocalObservation { unhealthy: true, ..due }, at),
        ApplyStep::Static(version("v1"))
    );
    assign(&mut memory, "v2", 2);
    assert_eq!(next(&memory, due, at), ApplyStep::Static(version("v2")));
}

#[test]
fn what_runs_is_validated_again_when_it_is_time_and_also_while_the_node_is_paused() {
    let (mut memory, mut now) = (EntityMemory::default(), Timestamp::EPOCH);
    let at = Timestamp::from_millis(60_000);
    let due = LocalObservation { validate_at: Some(at), ..WELL };
    assign(&mut memory, "v1", 1);
    assert_eq!(next(&memory, due, at), ApplyStep::Static(version("v1")), "nothing was validated yet");
    settle(&mut memory, &mut now, |_| false);
    assert_eq!(next(&memory, due, now), ApplyStep::Rest(IdleReason::UpToDate, Some(at)));
    assert_eq!(next(&memory, due, at), ApplyStep::Revalidate(version("v1")));
    let paused = LocalObservation { paused: true, unhealthy: true, ..due };
    assert_eq!(next(&memory, paused, now), ApplyStep::Rest(IdleReason::Paused, Some(at)));
    assert_eq!(next(&memory, paused, at), ApplyStep::Revalidate(version("v1")));
    // An unhealthy version is configured again, not only validated again.
    assert_eq!(
        next(&memory, LocalObservation { unhealthy: true, ..due }, at),
        ApplyStep::Static(version("v1"))
    );
    // While paused, what runs is validated, not what is to come.
    assign(&mut memory, "v2", 2);
    assert_eq!(next(&memory, paused, at), ApplyStep::Revalidate(version("v1")));
    assert_eq!(next(&memory, due, at), ApplyStep::Static(version("v2")));
}

#[test]
fn not_yet_repeats_the_part_without_counting_a_failure() {
    let mut memory = EntityMemory::default();
    assign(&mut memory, "v1", 1);
    memory.begins(&version("v1"));
    memory.ended(ApplyProgress::Static, StepOutcome::Done, Timestamp::EPOCH, 7);
    memory.ended(ApplyProgress::Dynamic, StepOutcome::NotYet(Evidence::default()), Timestamp::EPOCH, 7);
    assert_eq!(memory.failed_attempts, 0);
    let later = Timestamp::from_millis(60_000);
    assert_eq!(next(&memory, WELL, later), ApplyStep::Dynamic(version("v1")));
}

proptest! {
    #[test]
    fn with_no_more_faults_every_assignment_is_reached(
        script in prop::collection::vec((0_u8..4, any::<bool>()), 0..20)
    ) {
        let (mut memory, mut now) = (EntityMemory::default(), Timestamp::EPOCH);
        let mut number = 0;
        for (which, broken) in script {
            number += 1;
            assign(&mut memory, ["a", "b", "c", "d"][usize::from(which)], number);
            let mut left = 3;
            let step = next(&memory, WELL, now);
            if let (ApplyStep::Static(version), true) = (&step, broken) {
                memory.begins(version);
                while left > 0 {
                    memory.ended(ApplyProgress::Static, StepOutcome::Failed(Evidence::default()), now, number);
                    left -= 1;
                }
            }
        }
        assign(&mut memory, "final", number + 1);
        settle(&mut memory, &mut now, |_| false);
        prop_assert_eq!(memory.running.clone(), Some(version("final")));
        prop_assert_eq!(next(&memory, WELL, now), ApplyStep::Rest(IdleReason::UpToDate, None));
    }
}
