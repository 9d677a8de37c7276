use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::records::order::Assignment;
use crate::words::counter::AssignmentNumber;

fn run(number: u64) -> Version {
    Version::numbered("restart", number).unwrap()
}

fn assign(memory: &mut EntityMemory, version: u64, number: u64, method: ApplyMethod) {
    memory.assign(Assignment { version: run(version), number: AssignmentNumber::new(number), method });
}

fn done(memory: &mut EntityMemory) {
    memory.finished(StepOutcome::Done, Timestamp::EPOCH, 7);
}

#[test]
fn a_run_is_begun_once_and_counts_when_it_is_done() {
    let mut memory = EntityMemory::default();
    assert_eq!(next(&memory, false), ActionStep::Rest(IdleReason::NoAssignment));
    assign(&mut memory, 5, 1, ApplyMethod::Run);
    assert_eq!(next(&memory, true), ActionStep::Rest(IdleReason::Paused));
    assert_eq!(next(&memory, false), ActionStep::Run(run(5)));
    memory.runs(&run(5));
    done(&mut memory);
    assert_eq!(
        (next(&memory, false), &memory.running),
        (ActionStep::Rest(IdleReason::UpToDate), &Some(run(5)))
    );
    assign(&mut memory, 5, 2, ApplyMethod::Run);
    assert_eq!(next(&memory, false), ActionStep::Rest(IdleReason::UpToDate));
}

#[test]
fn who_joins_later_takes_the_last_run_as_done() {
    let mut memory = EntityMemory::default();
    assign(&mut memory, 5, 1, ApplyMethod::Acknowledge);
    assert_eq!(next(&memory, true), ActionStep::Acknowledge(run(5)));
    memory.acknowledges(&run(5));
    assert_eq!(
        (next(&memory, false), &memory.running),
        (ActionStep::Rest(IdleReason::UpToDate), &Some(run(5)))
    );
}

#[test]
fn an_older_run_is_never_begun_whatever_is_told() {
    let mut memory = EntityMemory::default();
    assign(&mut memory, 9, 1, ApplyMethod::Run);
    memory.runs(&run(9));
    done(&mut memory);
    assign(&mut memory, 5, 2, ApplyMethod::Run);
    assert_eq!(next(&memory, false), ActionStep::Acknowledge(run(5)));
    memory.acknowledges(&run(5));
    assign(&mut memory, 7, 3, ApplyMethod::Run);
    assert_eq!(next(&memory, false), ActionStep::Acknowledge(run(7)));
    assign(&mut memory, 10, 4, ApplyMethod::Run);
    assert_eq!(next(&memory, false), ActionStep::Run(run(10)));
}

#[test]
fn a_run_that_failed_or_was_cut_short_is_not_begun_again_unless_it_may_be() {
    let mut memory = EntityMemory::default();
    assign(&mut memory, 5, 1, ApplyMethod::Run);
    memory.runs(&run(5));
    let mut cut = memory.clone();
    cut.cut_short(true, Timestamp::EPOCH, 7);
    assert_eq!(next(&cut, false), ActionStep::Run(run(5)));
    memory.cut_short(false, Timestamp::EPOCH, 7);
    assert_eq!(
        (next(&memory, false), memory.failed_attempts),
        (ActionStep::Rest(IdleReason::AttemptsExhausted), 1)
    );
    for method in [ApplyMethod::Run, ApplyMethod::Acknowledge] {
        assign(&mut memory, 5, 2, method);
        assert_eq!(
            (next(&memory, false), &memory.running),
            (ActionStep::Rest(IdleReason::AttemptsExhausted), &None)
        );
    }
}

#[test]
fn a_run_that_failed_stays_failed_though_others_were_told_meanwhile() {
    let mut memory = EntityMemory::default();
    assign(&mut memory, 5, 1, ApplyMethod::Run);
    memory.runs(&run(5));
    memory.finished(StepOutcome::Failed(Evidence::default()), Timestamp::EPOCH, 7);
    assign(&mut memory, 6, 2, ApplyMethod::Run);
    assert_eq!(next(&memory, true), ActionStep::Rest(IdleReason::Paused));
    assign(&mut memory, 5, 3, ApplyMethod::Run);
    assert_eq!(next(&memory, false), ActionStep::Rest(IdleReason::AttemptsExhausted));
    let summary = memory.line();
    assert!(summary.contains("it ran here before and failed"), "{summary}");
}

proptest! {
    #[test]
    fn in_any_history_each_run_is_begun_at_most_once_and_in_order(
        history in prop::collection::vec((1_u64..6, any::<bool>(), 0_u8..4), 0..40)
    ) {
        let (mut memory, mut begun) = (EntityMemory::default(), BTreeMap::new());
        for (index, (version, turn, outcome)) in history.into_iter().enumerate() {
            let method = if turn { ApplyMethod::Run } else { ApplyMethod::Acknowledge };
            assign(&mut memory, version, index as u64 + 1, method);
            let failed = memory.ran.as_ref().filter(|ran| ran.outcome == super::RunOutcome::Failed).cloned();
            match next(&memory, outcome == 3) {
                ActionStep::Run(version) => {
                    prop_assert!(turn && outcome != 3);
                    let newest = begun.keys().next_back().copied();
                    let (_, number) = version.as_numbered().unwrap();
                    prop_assert!(newest.is_none_or(|newest| number > newest), "{number} after {newest:?}");
                    begun.insert(number, ());
                    memory.runs(&version);
                    match outcome {
                        0 => done(&mut memory),
                        1 => memory.finished(StepOutcome::Failed(Evidence::default()), Timestamp::EPOCH, 7),
                        _ => memory.cut_short(false, Timestamp::EPOCH, 7),
                    }
                }
                ActionStep::Acknowledge(version) => {
                    prop_assert!(failed.is_none_or(|failed| failed.version != version));
                    memory.acknowledges(&version);
                }
                ActionStep::Rest(_) => {}
            }
        }
    }
}
