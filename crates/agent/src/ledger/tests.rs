use bellwether_core::local::memory::{ActionRun, ApplyProgress, EntityMemory, FailureReason, RunOutcome};
use bellwether_core::records::evidence::Evidence;
use bellwether_core::records::order::{ApplyMethod, Assignment, OrderContent};
use bellwether_core::words::counter::{AssignmentNumber, Epoch, Generation, Term};
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::version::Version;

use super::*;
use crate::apply::process::ProcessMark;

fn name() -> EntityName {
    EntityName::parse("web").unwrap()
}

fn entry() -> EntityEntry {
    let version = Version::parse("v2").unwrap();
    let evidence =
        Evidence { summary: "static: exit code 3".into(), exit_code: Some(3), ..Evidence::default() };
    let memory = EntityMemory {
        named_in: Epoch::new(9),
        wanted: Some(Assignment {
            store: None,
            retry: None,
            soak: None,
            version: version.clone(),
            number: AssignmentNumber::new(7),
            method: ApplyMethod::Apply,
            binding: Default::default(),
        }),
        running: Some(Version::parse("v1").unwrap()),
        touched: Some(version),
        progress: ApplyProgress::Static,
        failed_attempts: 2,
        retry_at: Some(Timestamp::from_millis(5)),
        failure_reason: Some(FailureReason::Failed { aim: ApplyProgress::Static, evidence }),
        ran: None,
    };
    let process = Some(ProcessMark { pid: 12, started_ticks: 34, boot_id: "b".into() });
    EntityEntry { memory, process, run: Some("web-1".into()), followed: Some(7), rendered: 9 }
}

#[tokio::test]
async fn what_is_stored_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let (ledger, kept) = Ledger::open(dir.path(), Tasks::new()).unwrap();
    assert!(kept.order.is_none() && kept.entities.is_empty());
    let content = OrderContent { paused: Some("ann: looking".into()), ..OrderContent::default() };
    let order = Order { generation: Generation::new(3), term: Term::new(2), epoch: Epoch::new(9), content };
    ledger.keep_order(&order).await.unwrap();
    ledger.keep_entity(&name(), &entry()).await.unwrap();
    let key = ("web".parse().unwrap(), "web-1".parse().unwrap());
    let met = MetNeeds::from([(key, vec!["2 functional of db".parse().unwrap()])]);
    ledger.keep_met(&met).await.unwrap();
    let (handovers, probe) = (ledger.handovers(), "db".parse().unwrap());
    let replicas = FormerReplicas::from([("10.0.0.3:6379".to_owned(), "10.0.0.1:6379".to_owned())]);
    let begun = HandoverEntry { next: "10.0.0.2:6379".to_owned(), replicas };
    handovers.keep(&probe, &begun).await.unwrap();
    let (_, kept) = Ledger::open(dir.path(), Tasks::new()).unwrap();
    assert_eq!(kept.handovers, BTreeMap::from([(probe.clone(), begun)]));
    handovers.forget(&probe).await.unwrap();
    assert_eq!(Ledger::open(dir.path(), Tasks::new()).unwrap().1.handovers, BTreeMap::new());
    assert_eq!(kept.met, met);
    assert_eq!(kept.order, Some(order));
    assert_eq!(kept.entities[&name()], entry());
}

#[tokio::test]
async fn a_ledger_keeps_its_id_until_an_entry_is_lost_in_which_an_action_had_begun() {
    let dir = tempfile::tempdir().unwrap();
    let id = || Ledger::open(dir.path(), Tasks::new()).unwrap().0.id().clone();
    let first = id();
    let (ledger, _) = Ledger::open(dir.path(), Tasks::new()).unwrap();
    ledger.keep_entity(&name(), &entry()).await.unwrap();
    assert_eq!(id(), first);
    let entry = dir.path().join("ledger/entities/web.json");
    let text = std::fs::read_to_string(&entry).unwrap();
    std::fs::remove_file(&entry).unwrap();
    assert_eq!(id(), first, "no action had begun");
    std::fs::write(&entry, text).unwrap();
    ledger.mark_begun(&name()).await.unwrap();
    assert_eq!(id(), first);
    std::fs::remove_file(&entry).unwrap();
    let second = id();
    assert_ne!(second, first);
    assert_eq!(id(), second);
    std::fs::remove_dir_all(dir.path().join("ledger")).unwrap();
    assert!(![first, second].contains(&id()));
}

#[test]
fn the_stored_forms_read_back() {
    let first = r#"{"schema":1,"entity":"web","wanted":{"version":"v2","number":7},"named_in":9,"running":"v1","touched":"v2",
        "progress":"static","failed_attempts":2,"retry_at_ms":5,"failure_reason":{"kind":"failed","aim":"static",
        "evidence":{"summary":"static: exit code 3","exit_code":3}},
        "process":{"pid":12,"started_ticks":34,"boot_id":"b"},"run":"web-1"}"#;
    assert_eq!(shape::entity(first), Ok((name(), EntityEntry { followed: None, rendered: 0, ..entry() })));
    let followed = first.replace("\"run\":\"web-1\"", "\"run\":\"web-1\",\"followed\":7,\"rendered\":9");
    assert_eq!(shape::entity(&followed), Ok((name(), entry())));
    let of_an_action = r#"{"schema":1,"entity":"web","wanted":{"version":"restart@7","number":7,"method":"run"},
        "running":null,"touched":"restart@7","progress":"begun","failed_attempts":0,"retry_at_ms":null,"failure_reason":null,
        "process":null,"run":"web-1","ran":{"version":"restart@7","outcome":"begun"}}"#;
    let (_, entry) = shape::entity(of_an_action).unwrap();
    let version = Version::parse("restart@7").unwrap();
    assert_eq!(entry.memory.ran, Some(ActionRun { version, outcome: RunOutcome::Begun }));
    assert_eq!(entry.memory.wanted.unwrap().method, ApplyMethod::Run);
}

#[tokio::test]
async fn a_damaged_ledger_is_refused_with_its_file_and_the_next_step() {
    let dir = tempfile::tempdir().unwrap();
    let (ledger, _) = Ledger::open(dir.path(), Tasks::new()).unwrap();
    ledger.keep_entity(&name(), &entry()).await.unwrap();
    let path = dir.path().join("ledger/entities/web.json");
    for damage in ["", "{", "{\"schema\":9}", "null"] {
        std::fs::write(&path, damage).unwrap();
        let error = Ledger::open(dir.path(), Tasks::new()).unwrap_err().to_string();
        assert!(error.contains("web.json") && error.contains("remove it"), "{error}");
    }
}

#[tokio::test]
async fn a_run_that_began_and_was_forgotten_is_known_and_one_that_did_not_begin_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (ledger, _) = Ledger::open(dir.path(), Tasks::new()).unwrap();
    let run = |number: usize| EntityName::parse(&format!("work-{number}")).unwrap();
    ledger.runs().forget(&run(0), false).await.unwrap();
    assert!(!ledger.runs().has_forgotten(&run(0)).await.unwrap());
    for number in 1..=1002 {
        ledger.runs().forget(&run(number), true).await.unwrap();
    }
    drop(ledger);
    let (ledger, _) = Ledger::open(dir.path(), Tasks::new()).unwrap();
    let kept = std::fs::read_dir(dir.path().join("ledger/forgotten")).unwrap().count();
    assert_eq!(kept, 1000, "the oldest make room");
    assert!(ledger.runs().has_forgotten(&run(1002)).await.unwrap());
}
