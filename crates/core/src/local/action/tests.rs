use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::records::order::Assignment;
use crate::words::counter::AssignmentNumber;

fn run(number: u64) -> Version {
    Version::numbered("restart", number).unwrap()
}

fn told(memory: &mut Memory, version: u64, number: u64, means: Means) {
    memory.told(Assignment { version: run(version), number: AssignmentNumber::new(number), means });
}

fn done(memory: &mut Memory) {
    memory.finished(Outcome::Done, Timestamp::EPOCH, 7);
}

#[test]
fn a_run_is_begun_once_and_counts_when_it_is_done() {
    let mut memory = Memory::default();
    assert_eq!(next(&memory, false), Step::Rest(Rest::ToldNothing));
    told(&mut memory, 5, 1, Means::Run);
    assert_eq!(next(&memory, true), Step::Rest(Rest::Paused));
    assert_eq!(next(&memory, false), Step::Run(run(5)));
    memory.runs(&run(5));
    done(&mut memory);
    assert_eq!((next(&memory, false), &memory.running), (Step::Rest(Rest::Right), &Some(run(5))));
    told(&mut memory, 5, 2, Means::Run);
    assert_eq!(next(&memory, false), Step::Rest(Rest::Right));
}

#[test]
fn who_joins_later_takes_the_last_run_as_done() {
    let mut memory = Memory::default();
    told(&mut memory, 5, 1, Means::Acknowledge);
    assert_eq!(next(&memory, true), Step::Acknowledge(run(5)));
    memory.acknowledges(&run(5));
    assert_eq!((next(&memory, false), &memory.running), (Step::Rest(Rest::Right), &Some(run(5))));
}

#[test]
fn an_older_run_is_never_begun_whatever_is_told() {
    let mut memory = Memory::default();
    told(&mut memory, 9, 1, Means::Run);
    memory.runs(&run(9));
    done(&mut memory);
    told(&mut memory, 5, 2, Means::Run);
    assert_eq!(next(&memory, false), Step::Acknowledge(run(5)));
    memory.acknowledges(&run(5));
    told(&mut memory, 7, 3, Means::Run);
    assert_eq!(next(&memory, false), Step::Acknowledge(run(7)));
    told(&mut memory, 10, 4, Means::Run);
    assert_eq!(next(&memory, false), Step::Run(run(10)));
}

#[test]
fn a_run_that_failed_or_was_cut_short_is_not_begun_again_unless_it_may_be() {
    let mut memory = Memory::default();
    told(&mut memory, 5, 1, Means::Run);
    memory.runs(&run(5));
    let mut cut = memory.clone();
    cut.cut_short(true, Timestamp::EPOCH, 7);
    assert_eq!(next(&cut, false), Step::Run(run(5)));
    memory.cut_short(false, Timestamp::EPOCH, 7);
    assert_eq!((next(&memory, false), memory.failed_attempts), (Step::Rest(Rest::Spent), 1));
    for means in [Means::Run, Means::Acknowledge] {
        told(&mut memory, 5, 2, means);
        assert_eq!((next(&memory, false), &memory.running), (Step::Rest(Rest::Spent), &None));
    }
}

#[test]
fn a_run_that_failed_stays_failed_though_others_were_told_meanwhile() {
    let mut memory = Memory::default();
    told(&mut memory, 5, 1, Means::Run);
    memory.runs(&run(5));
    memory.finished(Outcome::Failed(Evidence::default()), Timestamp::EPOCH, 7);
    told(&mut memory, 6, 2, Means::Run);
    assert_eq!(next(&memory, true), Step::Rest(Rest::Paused));
    told(&mut memory, 5, 3, Means::Run);
    assert_eq!(next(&memory, false), Step::Rest(Rest::Spent));
    let summary = memory.line();
    assert!(summary.contains("it ran here before and did not go well"), "{summary}");
}

proptest! {
    #[test]
    fn in_any_history_each_run_is_begun_at_most_once_and_in_order(
        history in prop::collection::vec((1_u64..6, any::<bool>(), 0_u8..4), 0..40)
    ) {
        let (mut memory, mut begun) = (Memory::default(), BTreeMap::new());
        for (index, (version, turn, fate)) in history.into_iter().enumerate() {
            let means = if turn { Means::Run } else { Means::Acknowledge };
            told(&mut memory, version, index as u64 + 1, means);
            let failed = memory.ran.as_ref().filter(|ran| ran.fate == super::Fate::Failed).cloned();
            match next(&memory, fate == 3) {
                Step::Run(version) => {
                    prop_assert!(turn && fate != 3);
                    let newest = begun.keys().next_back().copied();
                    let (_, number) = version.as_numbered().unwrap();
                    prop_assert!(newest.is_none_or(|newest| number > newest), "{number} after {newest:?}");
                    begun.insert(number, ());
                    memory.runs(&version);
                    match fate {
                        0 => done(&mut memory),
                        1 => memory.finished(Outcome::Failed(Evidence::default()), Timestamp::EPOCH, 7),
                        _ => memory.cut_short(false, Timestamp::EPOCH, 7),
                    }
                }
                Step::Acknowledge(version) => {
                    prop_assert!(failed.is_none_or(|failed| failed.version != version));
                    memory.acknowledges(&version);
                }
                Step::Rest(_) => {}
            }
        }
    }
}
