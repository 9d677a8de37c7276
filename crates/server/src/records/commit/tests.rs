use bellwether_core::records::event::Draft;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::node::{Contact, Presence};
use bellwether_core::words::name::NodeName;
use bellwether_core::words::time::Timestamp;
use bellwether_store::Range;
use futures_util::future::join_all;

use super::*;
use crate::records::keys;

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn presence(name: &str, based_on: Revision, events: usize) -> Proposal {
    let presence = Presence { contact: Contact::Up, since: Timestamp::EPOCH, server: None };
    let event =
        Draft { kind: "test", subject: name.to_owned(), before: None, after: None, cause: String::new() };
    let record = Record::Presence(NodeName::parse(name).unwrap(), presence);
    Proposal {
        namespace: namespace(),
        actor: Actor::parse("test").unwrap(),
        term: None,
        seen: vec![],
        writes: vec![(Write::put(record), based_on)],
        events: vec![event; events],
    }
}

async fn numbers(store: &Store) -> Vec<u64> {
    let page = store.list(keys::events_after(&namespace(), Default::default()), None, 10_000).await.unwrap();
    let numbers = page.entries.iter().map(|entry| match keys::read(&entry.key) {
        Some(keys::Place::Record(_, Key::Event(number))) => number.get(),
        other => panic!("not an event: {other:?}"),
    });
    numbers.collect()
}

#[tokio::test]
async fn a_thousand_proposals_at_once_are_all_committed_and_their_events_have_no_gaps() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let names: Vec<String> = (0..1_000).map(|number| format!("n-{number}")).collect();
    let commits = names.iter().map(|name| committer.commit(presence(name, Revision::ZERO, 2)));
    assert!(join_all(commits).await.iter().all(Result::is_ok));
    assert_eq!(numbers(&store).await, (1..=2_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_conflict_is_the_proposals_own_and_leaves_no_event() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    committer.commit(presence("taken", Revision::ZERO, 1)).await.unwrap();
    let names: Vec<String> =
        (0..300).map(|n| if n % 3 == 0 { "taken".to_owned() } else { format!("n-{n}") }).collect();
    let answers =
        join_all(names.iter().map(|name| committer.commit(presence(name, Revision::ZERO, 1)))).await;
    for (name, answer) in names.iter().zip(&answers) {
        let conflicted = matches!(answer, Err(CommitError::Conflict));
        assert_eq!(conflicted, name == "taken", "{name}: {answer:?}");
    }
    assert_eq!(numbers(&store).await, (1..=201).collect::<Vec<_>>());
}

#[tokio::test]
async fn two_servers_number_events_together_without_gaps() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let one = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let two = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let names: Vec<String> = (0..200).map(|number| format!("n-{number}")).collect();
    let commits = names.iter().enumerate().map(|(index, name)| {
        let committer = if index % 2 == 0 { &one } else { &two };
        committer.commit(presence(name, Revision::ZERO, 1))
    });
    assert!(join_all(commits).await.iter().all(Result::is_ok));
    assert_eq!(numbers(&store).await, (1..=200).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_decider_that_lost_its_term_writes_nothing() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let stale = Proposal { term: Some(Term::new(7)), ..presence("n-1", Revision::ZERO, 1) };
    let fresh = committer.commit(presence("n-2", Revision::ZERO, 1));
    let (stale, fresh) = tokio::join!(committer.commit(stale), fresh);
    assert!(matches!(stale, Err(CommitError::LostTerm)), "{stale:?}");
    fresh.unwrap();
    let all = store.list(Range::prefix(keys::ROOT), None, 100).await.unwrap().entries;
    assert_eq!(all.len(), 3, "one record, one event, one number");
}

#[tokio::test]
async fn what_was_decided_on_a_record_that_changed_since_is_not_handed_out() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let revision = committer.commit(presence("looked-at", Revision::ZERO, 0)).await.unwrap();
    let key = Key::Presence(NodeName::parse("looked-at").unwrap());
    let based =
        |name: &str| Proposal { seen: vec![(key.clone(), revision)], ..presence(name, Revision::ZERO, 1) };
    committer.commit(based("n-1")).await.unwrap();
    committer.commit(presence("looked-at", revision, 0)).await.unwrap();
    let late = committer.commit(based("n-2")).await;
    assert!(matches!(late, Err(CommitError::Conflict)), "{late:?}");
}

#[tokio::test]
async fn what_can_never_fit_is_refused_and_the_rest_goes_through() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let huge = committer.commit(presence("n-1", Revision::ZERO, 500));
    let (huge, fine) = tokio::join!(huge, committer.commit(presence("n-2", Revision::ZERO, 1)));
    assert!(matches!(huge, Err(CommitError::TooLarge)), "{huge:?}");
    fine.unwrap();
}
