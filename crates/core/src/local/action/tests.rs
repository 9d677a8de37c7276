use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::records::order::{Assignment, LedgerBinding, OrderContent};
use crate::records::report::ReportedLedger;
use crate::words::counter::{AssignmentNumber, Epoch};
use crate::words::name::EntityName;

fn run(number: u64) -> Version {
    Version::numbered("restart", number).unwrap()
}

fn assign(memory: &mut EntityMemory, version: u64, number: u64, method: ApplyMethod) {
    assign_to(memory, &ours(), version, number, method);
}

fn assign_to(memory: &mut EntityMemory, ledger: &LedgerId, version: u64, number: u64, method: ApplyMethod) {
    let (version, number) = (run(version), AssignmentNumber::new(number));
    memory.assign(Assignment {
        store: None,
        retry: None,
        soak: None,
        version,
        number,
        method,
        binding: LedgerBinding { ledger: Some(ledger.clone()), ..LedgerBinding::default() },
    });
}

fn ledger(number: usize) -> LedgerId {
    LedgerId::parse(&alloc::format!("ledger-{number}")).unwrap()
}

/// One that is reported since the beginning.
fn first_known(id: &LedgerId) -> ReportedLedger<'_> {
    ReportedLedger { id, since: Epoch::ZERO }
}

fn ours() -> LedgerId {
    ledger(0)
}

fn done(memory: &mut EntityMemory) {
    memory.finished(StepOutcome::Done, Timestamp::EPOCH, 7);
}

#[test]
fn a_run_is_begun_once_and_counts_when_it_is_done() {
    let mut memory = EntityMemory::default();
    assert_eq!(next(&memory, &ours(), false), ActionStep::Rest(IdleReason::NoAssignment));
    assign(&mut memory, 5, 1, ApplyMethod::Run);
    assert_eq!(next(&memory, &ours(), true), ActionStep::Rest(IdleReason::Paused));
    assert_eq!(next(&memory, &ours(), false), ActionStep::Run(run(5)));
    memory.runs(&run(5));
    done(&mut memory);
    assert_eq!(
        (next(&memory, &ours(), false), &memory.running),
        (ActionStep::Rest(IdleReason::UpToDate), &Some(run(5)))
    );
    assign(&mut memory, 5, 2, ApplyMethod::Run);
    assert_eq!(next(&memory, &ours(), false), ActionStep::Rest(IdleReason::UpToDate));
}

#[test]
fn a_run_of_a_workflow_that_failed_begins_again_once_for_each_order_that_names_its_failure() {
    let mut memory = EntityMemory::default();
    let order = |memory: &mut EntityMemory, number: u64, retry: Option<u64>| {
        let (version, number, method) = (run(5), AssignmentNumber::new(number), ApplyMethod::Workflow);
        let retry = retry.map(AssignmentNumber::new);
        memory.assign(Assignment {
            store: None,
            retry,
            soak: None,
            version,
            number,
            method,
            binding: LedgerBinding { ledger: Some(ours()), ..LedgerBinding::default() },
        });
        next(memory, &ours(), false)
    };
    let fails = |memory: &mut EntityMemory| {
        memory.runs(&run(5));
        let evidence = Evidence::default();
        memory.finished(StepOutcome::Failed(evidence), Timestamp::EPOCH, 7);
    };
    let (again, rests) = (ActionStep::Run(run(5)), ActionStep::Rest(IdleReason::AttemptsExhausted));
    assert_eq!(order(&mut memory, 1, None), again);
    fails(&mut memory);
    assert_eq!(order(&mut memory, 2, None), rests, "another number alone is no wish");
    assert_eq!(order(&mut memory, 3, Some(1)), rests, "that failure was another one");
    assert_eq!(order(&mut memory, 4, Some(3)), again);
    assert_eq!(order(&mut memory, 4, Some(3)), again, "it has not begun yet");
    fails(&mut memory);
    assert_eq!(order(&mut memory, 4, Some(3)), rests);
    assert_eq!(order(&mut memory, 5, Some(4)), again);
}

#[test]
fn who_joins_later_takes_the_last_run_as_done() {
    let mut memory = EntityMemory::default();
    assign(&mut memory, 5, 1, ApplyMethod::Acknowledge);
    assert_eq!(next(&memory, &ours(), true), ActionStep::Acknowledge(run(5)));
    memory.acknowledges(&run(5));
    assert_eq!(
        (next(&memory, &ours(), false), &memory.running),
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
    assert_eq!(next(&memory, &ours(), false), ActionStep::Acknowledge(run(5)));
    memory.acknowledges(&run(5));
    assign(&mut memory, 7, 3, ApplyMethod::Run);
    assert_eq!(next(&memory, &ours(), false), ActionStep::Acknowledge(run(7)));
    assign(&mut memory, 10, 4, ApplyMethod::Run);
    assert_eq!(next(&memory, &ours(), false), ActionStep::Run(run(10)));
}

#[test]
fn a_run_that_failed_or_was_cut_short_is_not_begun_again_unless_it_may_be() {
    let mut memory = EntityMemory::default();
    assign(&mut memory, 5, 1, ApplyMethod::Run);
    memory.runs(&run(5));
    let mut cut = memory.clone();
    cut.cut_short(true, Timestamp::EPOCH, 7);
    assert_eq!(next(&cut, &ours(), false), ActionStep::Run(run(5)));
    memory.cut_short(false, Timestamp::EPOCH, 7);
    assert_eq!(
        (next(&memory, &ours(), false), memory.failed_attempts),
        (ActionStep::Rest(IdleReason::AttemptsExhausted), 1)
    );
    for method in [ApplyMethod::Run, ApplyMethod::Acknowledge] {
        assign(&mut memory, 5, 2, method);
        assert_eq!(
            (next(&memory, &ours(), false), &memory.running),
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
    assert_eq!(next(&memory, &ours(), true), ActionStep::Rest(IdleReason::Paused));
    assign(&mut memory, 5, 3, ApplyMethod::Run);
    assert_eq!(next(&memory, &ours(), false), ActionStep::Rest(IdleReason::AttemptsExhausted));
    let summary = memory.line();
    assert!(summary.contains("it ran here before and failed"), "{summary}");
}

#[test]
fn a_run_that_another_ledger_may_have_begun_is_lost_and_the_next_one_runs() {
    let mut memory = EntityMemory::default();
    assign_to(&mut memory, &ledger(1), 5, 1, ApplyMethod::Run);
    let mut idempotent = memory.clone();
    for paused in [true, false] {
        assert_eq!(next(&memory, &ours(), paused), ActionStep::Lose(run(5)));
    }
    memory.loses(&run(5), false, Timestamp::EPOCH, 7);
    assert_eq!(next(&memory, &ours(), false), ActionStep::Rest(IdleReason::AttemptsExhausted));
    assert!(memory.line().contains("lost: it may have begun before"), "{}", memory.line());
    for version in [6, 5] {
        assign(&mut memory, version, version + 2, ApplyMethod::Run);
    }
    let said = (next(&memory, &ours(), false), memory.failed_attempts);
    assert_eq!(said, (ActionStep::Rest(IdleReason::AttemptsExhausted), 1), "assigned again, it stays lost");
    assign(&mut memory, 9, 9, ApplyMethod::Run);
    assert_eq!(next(&memory, &ours(), false), ActionStep::Run(run(9)));
    idempotent.loses(&run(5), true, Timestamp::EPOCH, 7);
    assert_eq!(next(&idempotent, &ours(), false), ActionStep::Run(run(5)));
}

#[test]
fn no_run_begins_before_the_ledger_is_recorded() {
    let mut memory = EntityMemory::default();
    let (version, number) = (run(5), AssignmentNumber::new(1));
    memory.assign(Assignment {
        store: None,
        retry: None,
        soak: None,
        version,
        number,
        method: ApplyMethod::Run,
        binding: Default::default(),
    });
    assert_eq!(next(&memory, &ours(), false), ActionStep::Rest(IdleReason::LedgerNotRecorded));
    assign(&mut memory, 5, 1, ApplyMethod::Run);
    assert_eq!(next(&memory, &ours(), false), ActionStep::Run(run(5)));
}

proptest! {
    /// Reports and orders arrive late, in any order that their generations allow, and the ledger is lost at any time. A
    /// run that is dispatched is the last one again, or one with a higher number.
    #[test]
    fn no_run_begins_twice_however_often_the_ledger_is_lost(
        history in prop::collection::vec((0_u8..6, 1_u64..5), 0..60)
    ) {
        let name = EntityName::parse("web").unwrap();
        let (mut ours, mut reported, mut newest, mut last_run) = (0, None, 0, 0);
        let (mut written, mut orders) = (OrderContent::default(), alloc::vec::Vec::new());
        let (mut memory, mut begun) = (EntityMemory::default(), BTreeMap::new());
        for (index, (event, version)) in history.into_iter().enumerate() {
            match event {
                // A report arrives, and the order follows it.
                0 => reported = Some(ledger(ours)),
                // The ledger is lost; the agent begins with any order that its server has.
                1 => (ours, memory, newest) = (ours + 1, EntityMemory::default(), 0),
                // Another run is dispatched, or a failed one again.
                2 => {
                    last_run += version - 1;
                    let number = AssignmentNumber::new(index as u64 + 1);
                    let assignment = Assignment { store: None, retry: None, soak: None, version: run(last_run + 1), number, method: ApplyMethod::Run, binding: Default::default() };
                    let content = OrderContent { entities: BTreeMap::from([(name.clone(), assignment)]), ..OrderContent::default() };
                    written = content.bound(Some(&written), reported.as_ref().map(first_known), |_| None);
                    orders.push(written.clone());
                }
                3 => {
                    let again = written.clone().bound(Some(&written), reported.as_ref().map(first_known), |_| None);
                    if again != written {
                        written = again;
                        orders.push(written.clone());
                    }
                }
                // An order arrives that is newer than the last one, though not the newest.
                _ => {
                    let at = newest + usize::try_from(version).unwrap() - 1;
                    if let Some(order) = orders.get(at) {
                        newest = at + 1;
                        memory.assign(order.entities[&name].clone());
                    }
                }
            }
            match next(&memory, &ledger(ours), false) {
                ActionStep::Run(version) => {
                    *begun.entry(version.clone()).or_insert(0) += 1;
                    prop_assert_eq!(begun[&version], 1, "{} was begun twice", version);
                    memory.runs(&version);
                    if event % 2 == 0 { done(&mut memory) } else { memory.cut_short(false, Timestamp::EPOCH, 7) }
                }
                ActionStep::Lose(version) => memory.loses(&version, false, Timestamp::EPOCH, 7),
                ActionStep::Acknowledge(version) => memory.acknowledges(&version),
                ActionStep::Rest(_) => {}
            }
        }
    }

    #[test]
    fn in_any_history_each_run_is_begun_at_most_once_and_in_order(
        history in prop::collection::vec((1_u64..6, any::<bool>(), 0_u8..4), 0..40)
    ) {
        let (mut memory, mut begun) = (EntityMemory::default(), BTreeMap::new());
        for (index, (version, turn, outcome)) in history.into_iter().enumerate() {
            let method = if turn { ApplyMethod::Run } else { ApplyMethod::Acknowledge };
            assign(&mut memory, version, index as u64 + 1, method);
            let failed = memory.ran.as_ref().filter(|ran| ran.outcome == super::RunOutcome::Failed).cloned();
            match next(&memory, &ours(), outcome == 3) {
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
                ActionStep::Lose(_) => prop_assert!(false, "no ledger is lost"),
                ActionStep::Acknowledge(version) => {
                    prop_assert!(failed.is_none_or(|failed| failed.version != version));
                    memory.acknowledges(&version);
                }
                ActionStep::Rest(_) => {}
            }
        }
    }
}
