use alloc::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::records::key::{AnyRecord, Record};
use crate::records::report::{EntityReport, RunningStep, TargetActivity, TargetHealth};
use crate::records::status::{Status, StatusState};
use crate::words::counter::{AssignmentNumber, Generation};
use crate::words::name::{Category, NodeName};
use crate::words::time::Span;

fn report(state: StatusState) -> Report {
    let status = Status::new(state, Timestamp::EPOCH, String::new());
    Report {
        node: NodeName::parse("web-1").unwrap(),
        received_at: Timestamp::EPOCH,
        agent_version: "1".into(),
        generation: Generation::ZERO,
        ledger: None,
        ledger_since: Default::default(),
        sequence: 0,
        entities: BTreeMap::new(),
        features: Default::default(),
        deleted: BTreeMap::new(),
        statuses: BTreeMap::from([(Category::parse("configure").unwrap(), status)]),
    }
}

fn written(changeset: &Changeset) -> &Report {
    let Some(Write::Put(record)) = changeset.writes.first() else { panic!("a put") };
    let AnyRecord::Namespaced(Record::Report(report)) = &**record else { panic!("a report") };
    report
}

#[test]
fn a_report_that_says_the_same_writes_nothing() {
    let first = absorb(None, report(StatusState::Success), Timestamp::from_millis(5)).unwrap();
    assert!(absorb(Some(written(&first)), report(StatusState::Success), Timestamp::from_millis(9)).is_none());
}

#[test]
fn a_status_that_somebody_else_set_survives_the_agents_next_report() {
    let first = absorb(None, report(StatusState::Success), Timestamp::from_millis(5)).unwrap();
    let mut by_hand = written(&first).clone();
    let backup = Category::parse("backup").unwrap();
    let status = Status::new(StatusState::Failed, Timestamp::EPOCH, "disk full".into());
    by_hand.statuses.insert(backup.clone(), status);
    let second = absorb(Some(written(&first)), by_hand, Timestamp::from_millis(7)).unwrap();
    let third =
        absorb(Some(written(&second)), report(StatusState::Running), Timestamp::from_millis(9)).unwrap();
    let kept = written(&third).statuses.get(&backup).unwrap();
    assert_eq!((kept.state, kept.since), (StatusState::Failed, Timestamp::from_millis(7)));
}

#[test]
fn a_node_that_keeps_inventing_categories_never_outgrows_its_record() {
    let named = |prefix: &str| {
        let mut many = report(StatusState::Success);
        let status = many.statuses.values().next().unwrap().clone();
        many.statuses = (0..MAX_CATEGORIES)
            .map(|number| (Category::parse(&alloc::format!("{prefix}-{number}")).unwrap(), status.clone()))
            .collect();
        many
    };
    let first = absorb(None, named("a"), Timestamp::from_millis(5)).unwrap();
    let second = absorb(Some(written(&first)), named("b"), Timestamp::from_millis(7)).unwrap();
    assert_eq!(written(&second).statuses.len(), MAX_CATEGORIES);
}

#[test]
fn a_state_keeps_its_since_until_it_changes_and_the_change_is_told_once() {
    let first = absorb(None, report(StatusState::Running), Timestamp::from_millis(5)).unwrap();
    assert_eq!(first.events.len(), 1);
    let second =
        absorb(Some(written(&first)), report(StatusState::Failed), Timestamp::from_millis(9)).unwrap();
    let status = written(&second).statuses.values().next().unwrap();
    assert_eq!((status.state, status.since), (StatusState::Failed, Timestamp::from_millis(9)));
    assert_eq!(second.events.len(), 1);
    assert_eq!(second.events.first().unwrap().before.as_deref(), Some("configure=running"));
}

#[test]
fn a_saying_that_is_repeated_is_no_news_and_a_new_one_is() {
    let own = |update: u64, state: StatusState| {
        let mut report = report(StatusState::Success);
        let status = Status { update, ..Status::new(state, Timestamp::EPOCH, String::new()) };
        report.statuses.insert(Category::parse("backup").unwrap(), status);
        report
    };
    let backup = Category::parse("backup").unwrap();
    let first = absorb(None, own(7, StatusState::Failed), Timestamp::from_millis(5)).unwrap();
    // A person sets it meanwhile.
    let mut by_hand = written(&first).clone();
    by_hand.statuses.get_mut(&backup).unwrap().state = StatusState::Success;
    assert!(absorb(Some(&by_hand), own(7, StatusState::Failed), Timestamp::from_millis(9)).is_none());
    let news = absorb(Some(&by_hand), own(8, StatusState::Failed), Timestamp::from_millis(9)).unwrap();
    assert_eq!(written(&news).statuses.get(&backup).unwrap().state, StatusState::Failed);
    assert_eq!(news.events.len(), 1);
}

#[test]
fn a_node_that_makes_no_files_any_more_has_no_status_of_them_and_keeps_its_others() {
    let mut with = report(StatusState::Success);
    let failed = Status::new(StatusState::Failed, Timestamp::EPOCH, "/etc/a: no".into());
    with.statuses.insert(Category::parse(FILES).unwrap(), failed.clone());
    with.statuses.insert(Category::parse("backup").unwrap(), failed);
    let first = absorb(None, with, Timestamp::from_millis(5)).unwrap();
    let next =
        absorb(Some(written(&first)), report(StatusState::Success), Timestamp::from_millis(9)).unwrap();
    let left: alloc::vec::Vec<_> = written(&next).statuses.keys().map(Category::as_str).collect();
    assert_eq!(left, ["backup", "configure"]);
}

#[test]
fn a_node_to_which_nothing_is_assigned_has_no_status_of_versions_and_keeps_its_others() {
    let mut with = report(StatusState::Failed);
    with.statuses.insert(
        Category::parse("backup").unwrap(),
        Status::new(StatusState::Failed, Timestamp::EPOCH, "disk full".into()),
    );
    let first = absorb(None, with, Timestamp::from_millis(5)).unwrap();
    let empty = || Report { statuses: BTreeMap::new(), ..report(StatusState::Failed) };
    assert!(absorb(Some(written(&first)), empty(), Timestamp::from_millis(9)).is_none());
    let next = absorb_unassigned(Some(written(&first)), empty(), Timestamp::from_millis(9)).unwrap();
    let left: alloc::vec::Vec<_> = written(&next).statuses.keys().map(Category::as_str).collect();
    assert_eq!(left, ["backup"]);
}

#[test]
fn the_start_of_a_step_that_differs_by_travel_time_writes_nothing() {
    let with = |since: u64| {
        let step =
            RunningStep::new("static", "sleep 300", Timestamp::from_millis(since), Span::from_secs(300));
        let entity = EntityReport {
            answered_at: Default::default(),
            soaked: None,
            soak_failure: None,
            agent_restarted: false,
            running: None,
            answering: AssignmentNumber::new(1),
            activity: TargetActivity::Applying { attempt: 1, waiting_for: None },
            health: TargetHealth::NoChecks,
            healthy_since: None,
            waits_for: BTreeSet::new(),
            step: Some(step),
        };
        let mut report = report(StatusState::Running);
        report.entities.insert("web".parse().unwrap(), entity);
        report
    };
    let first = absorb(None, with(5_000), Timestamp::from_millis(5_000)).unwrap();
    assert!(absorb(Some(written(&first)), with(5_040), Timestamp::from_millis(9_000)).is_none());
    assert!(absorb(Some(written(&first)), with(9_000), Timestamp::from_millis(9_000)).is_some());
}

fn numbered(state: StatusState, sequence: u64) -> Report {
    Report { sequence, ..report(state) }
}

#[test]
fn a_report_that_was_overtaken_changes_nothing() {
    let at = Timestamp::from_millis;
    let first = absorb(None, numbered(StatusState::Failed, 8), at(5)).unwrap();
    let last = written(&first);
    assert!(absorb(Some(last), numbered(StatusState::Success, 7), at(6)).is_none());
    assert!(absorb(Some(last), numbered(StatusState::Success, 9), at(6)).is_some());
    // Of another ledger, or of an agent that does not number them, nothing is known.
    let other = Report { ledger: Some("other".parse().unwrap()), ..numbered(StatusState::Success, 1) };
    assert!(absorb(Some(last), other, at(6)).is_some());
    assert!(absorb(Some(last), report(StatusState::Success), at(6)).is_some());
}

#[test]
fn a_report_behind_a_gap_is_written_though_it_says_the_same() {
    let at = Timestamp::from_millis;
    let first = absorb(None, numbered(StatusState::Success, 3), at(5)).unwrap();
    let last = written(&first);
    // The next one says the same, and none can be between.
    assert!(absorb(Some(last), numbered(StatusState::Success, 4), at(6)).is_none());
    // The fourth is late: once the fifth is written, it is known to be older.
    let third = absorb(Some(last), numbered(StatusState::Success, 5), at(6)).unwrap();
    assert!(third.events.is_empty());
    assert!(absorb(Some(written(&third)), numbered(StatusState::Failed, 4), at(7)).is_none());
}

/// A report of as many statuses and entities as there may be, whose states and versions are of this number.
fn full(number: u64) -> Report {
    let state = if number.is_multiple_of(2) { StatusState::Success } else { StatusState::Failed };
    let mut full = report(state);
    let status = full.statuses.values().next().unwrap().clone();
    full.statuses = (0..MAX_CATEGORIES)
        .map(|of| (Category::parse(&alloc::format!("c{of}")).unwrap(), status.clone()))
        .collect();
    let entity = EntityReport {
        answered_at: Default::default(),
        soaked: None,
        soak_failure: None,
        agent_restarted: false,
        running: Some(alloc::format!("v{number}").parse().unwrap()),
        answering: AssignmentNumber::new(number),
        activity: TargetActivity::Applying { attempt: 1, waiting_for: None },
        health: TargetHealth::NoChecks,
        healthy_since: None,
        waits_for: BTreeSet::new(),
        step: None,
    };
    full.entities = (0..crate::records::report::MAX_ENTITIES)
        .map(|of| (alloc::format!("e{of}").parse().unwrap(), entity.clone()))
        .collect();
    full.sequence = number;
    full.generation = Generation::new(number);
    full
}

#[test]
fn the_largest_reports_are_absorbed_in_parts_that_fit_into_a_transaction() {
    let mut last: Option<Report> = None;
    let mut numbers = BTreeSet::new();
    for number in 1..4 {
        let new = full(number);
        for step in 0.. {
            let whole = absorb(last.as_ref(), new.clone(), Timestamp::from_millis(5)).unwrap();
            if whole.events.len() <= EVENTS_AT_ONCE {
                last = Some(written(&whole).clone());
                break;
            }
            let said = part(last.as_ref(), &new, step).unwrap();
            let changes = absorb(last.as_ref(), said, Timestamp::from_millis(5)).unwrap();
            assert!(changes.events.len() <= EVENTS_AT_ONCE);
            let kept = written(&changes).clone();
            assert_ne!(kept.generation, new.generation, "no part answers the order");
            last = Some(kept);
            numbers.insert(step);
        }
        let kept = last.as_ref().unwrap();
        assert_eq!((kept.generation, &kept.entities.len()), (new.generation, &new.entities.len()));
    }
    assert!(numbers.contains(&0) && numbers.contains(&15) && !numbers.contains(&16), "{numbers:?}");
}
