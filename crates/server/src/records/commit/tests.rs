use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::node::{Presence, PresenceState};
use bellwether_core::verdict::Write;
use bellwether_core::words::counter::{Sequence, Term};
use bellwether_core::words::name::{Actor, Namespace, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_store::{CommitOutcome, Compare, Op, Range, Txn};
use futures_util::future::join_all;
use tokio::task::unconstrained;

use super::*;
use crate::records::key_text;

fn namespace() -> Namespace {
    Namespace::parse("default").unwrap()
}

fn presence(name: &str, based_on: Revision, events: usize) -> Proposal {
    let presence = Presence { contact: PresenceState::Up, since: Timestamp::EPOCH, server: None };
    let event = EventDraft {
        kind: "test",
        subject: name.to_owned(),
        before: None,
        after: None,
        cause: String::new(),
    };
    let record = Record::Presence(NodeName::parse(name).unwrap(), presence);
    Proposal {
        namespace: namespace(),
        actor: Actor::parse("test").unwrap(),
        term: None,
        seen: vec![],
        writes: vec![(Write::put(record), based_on)],
        events: vec![
            ProposedEvent { actor: Actor::parse("test").unwrap(), draft: event, caused_by: None };
            events
        ],
        line: None,
    }
}

async fn numbers(store: &Store) -> Vec<u64> {
    let page =
        store.list(key_text::events_after(&namespace(), Default::default()), None, 10_000).await.unwrap();
    let numbers = page.entries.iter().map(|entry| match key_text::read(&entry.key) {
        Some(key_text::KeyLocation::Namespaced(_, Key::Event(number))) => number.get(),
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
        let conflicted = matches!(answer, Err(CommitError::Conflict { .. }));
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
    let all = store.list(Range::prefix(key_text::ROOT), None, 100).await.unwrap().entries;
    assert_eq!(all.len(), 3, "one record, one event, one number");
}

/// A leader that lost the key and acquired it again has proposals of both terms in the queue.
#[tokio::test]
async fn each_decider_is_fenced_by_its_own_term() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let key = Op::Put { key: key_text::LEADER.into(), value: "{}".into(), lease: None };
    let acquired = store.commit(Txn { compares: vec![], ops: vec![key] }).await.unwrap();
    let CommitOutcome::Committed(acquired) = acquired else { panic!("nobody else writes") };
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let in_term = |name: &str, term: u64| {
        committer.commit(Proposal { term: Some(Term::new(term)), ..presence(name, Revision::ZERO, 1) })
    };
    let (other, own) = tokio::join!(in_term("n-1", acquired.0 + 7), in_term("n-2", acquired.0));
    assert!(matches!(other, Err(CommitError::LostTerm)), "{other:?}");
    own.unwrap();
    let (own, other) = tokio::join!(in_term("n-3", acquired.0), in_term("n-4", acquired.0 + 7));
    own.unwrap();
    assert!(matches!(other, Err(CommitError::LostTerm)), "{other:?}");
}

#[tokio::test]
async fn a_proposal_on_a_changed_record_conflicts() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let revision = committer.commit(presence("looked-at", Revision::ZERO, 0)).await.unwrap();
    let key = Key::Presence(NodeName::parse("looked-at").unwrap());
    let based = |name: &str| Proposal {
        seen: vec![(key.clone().into(), revision)],
        ..presence(name, Revision::ZERO, 1)
    };
    committer.commit(based("n-1")).await.unwrap();
    committer.commit(presence("looked-at", revision, 0)).await.unwrap();
    let late = committer.commit(based("n-2")).await;
    assert!(matches!(late, Err(CommitError::Conflict { .. })), "{late:?}");
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

/// This many proposals of one pipeline, each of which fills a group.
fn in_line(count: usize, taken: Option<usize>) -> Vec<Proposal> {
    let line = CommitPipeline::default();
    let proposals = (0..count).map(|number| {
        let name = if Some(number) == taken { "taken".to_owned() } else { format!("n-{number}") };
        Proposal { line: Some(line.clone()), ..presence(&name, Revision::ZERO, 70) }
    });
    proposals.collect()
}

#[tokio::test]
async fn of_a_line_those_before_the_first_that_fails_go_through_and_none_behind_it() {
    for taken in [0, 1, 5, 13, 39] {
        let tasks = Tasks::new();
        let store = Store::memory(&tasks);
        let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
        committer.commit(presence("taken", Revision::ZERO, 0)).await.unwrap();
        let others =
            (0..40).map(|number| committer.commit(presence(&format!("o-{number}"), Revision::ZERO, 1)));
        let line = in_line(40, Some(taken)).into_iter().map(|proposal| committer.commit(proposal));
        let (line, others) = tokio::join!(join_all(line), join_all(others));
        for (number, answer) in line.iter().enumerate() {
            assert_eq!(
                answer.is_ok(),
                number < taken,
                "{number} of a line that breaks at {taken}: {answer:?}"
            );
        }
        assert!(others.iter().all(Result::is_ok), "those beside it are not held up");
        let events = taken * 70 + 40;
        assert_eq!(numbers(&store).await, (1..=u64::try_from(events).unwrap()).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_line_keeps_its_order_whatever_else_is_written_meanwhile() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let one = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let two = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    // The other server's events take the numbers that this one assumed.
    let others = (0..60).map(|number| two.commit(presence(&format!("o-{number}"), Revision::ZERO, 1)));
    let line = in_line(40, None).into_iter().map(|proposal| one.commit(proposal));
    let (line, others) = tokio::join!(join_all(line), join_all(others));
    assert!(others.iter().all(Result::is_ok));
    let revisions: Vec<Revision> = line.into_iter().map(Result::unwrap).collect();
    assert!(revisions.is_sorted(), "{revisions:?}");
}

#[test]
fn a_group_behind_another_of_its_line_goes_through_only_after_it() {
    let line = CommitPipeline::default();
    let mut ahead = gather::PipelineHeads::default();
    let mut close = |name, events| {
        let proposal = Proposal { line: Some(line.clone()), ..presence(name, Revision::ZERO, events) };
        let mut group = gather::TransactionGroup::new(Timestamp::EPOCH, Fence::default(), &ahead);
        let joins = group.add(&proposal, Default::default()).unwrap();
        joins.then(|| (group.close(&mut ahead), group.guards))
    };
    let (first, _) = close("n-1", 1).unwrap();
    let (second, guards) = close("n-2", 0).unwrap();
    // Its event shows that the first was committed: it is the only one with that number and content.
    let event = key_text::of(&namespace(), &Key::Event(Sequence::new(1)));
    let mut puts = first.ops.into_iter().filter_map(|op| match op {
        Op::Put { key, value, .. } => Some((key, value)),
        Op::Delete { .. } => None,
    });
    let (key, value) = puts.find(|(key, _)| *key == event).unwrap();
    let at = guards.iter().position(|guard| *guard == gather::CompareOrigin::Line).unwrap();
    assert_eq!(second.compares[at], Compare::Value { key, value });
    assert!(close("n-3", 1).is_none(), "nothing would show that the second was committed");
}

#[tokio::test]
async fn deciders_and_people_take_precedence_over_reports_of_a_fleet_which_are_not_starved() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let proposal = |name: String| Proposal {
        actor: Actor::parse("node/web-1").unwrap(),
        ..presence(&name, Revision::ZERO, 1)
    };
    // All proposals are queued before the writer first runs.
    let fleet =
        unconstrained(join_all((0..2_000).map(|number| committer.propose(proposal(format!("n-{number}"))))))
            .await;
    let people = unconstrained(join_all(
        (0..2_000).map(|number| committer.propose(presence(&format!("o-{number}"), Revision::ZERO, 1))),
    ))
    .await;
    let done = async |all: Vec<Result<PendingCommit, CommitError>>| {
        let all = join_all(all.into_iter().map(|pending| pending.unwrap().done())).await;
        all.into_iter().map(Result::unwrap).collect::<Vec<Revision>>()
    };
    let (mut fleet, mut people) = (done(fleet).await, done(people).await);
    fleet.sort();
    people.sort();
    assert!(people.get(1_000) < fleet.get(1_000), "those that go first are done first");
    assert!(fleet.first() < people.last(), "some of the others go beside them");
}

#[tokio::test]
async fn of_two_that_each_remove_what_the_other_has_seen_one_goes_through() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    let key = |name: &str| Key::Presence(NodeName::parse(name).unwrap());
    for round in 0..20 {
        let (one, two) = (format!("one-{round}"), format!("two-{round}"));
        let there = [
            committer.commit(presence(&one, Revision::ZERO, 0)).await.unwrap(),
            committer.commit(presence(&two, Revision::ZERO, 0)).await.unwrap(),
        ];
        let removes = |gone: &str, at: Revision, kept: &str, seen: Revision| Proposal {
            seen: vec![(key(kept).into(), seen)],
            writes: vec![(Write::delete(key(gone)), at)],
            ..presence(gone, at, round % 2)
        };
        let [first, second] = there;
        let answers = unconstrained(join_all([
            committer.commit(removes(&one, first, &two, second)),
            committer.commit(removes(&two, second, &one, first)),
        ]))
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    }
}

/// A slice of deletions of absent records, without events.
fn deletes(line: &CommitPipeline, prefix: &str) -> Proposal {
    let gone = |number: usize| Key::Presence(NodeName::parse(&format!("{prefix}-{number}")).unwrap());
    Proposal {
        writes: (0..70).map(|number| (Write::delete(gone(number)), Revision::ZERO)).collect(),
        line: Some(line.clone()),
        ..presence("unused", Revision::ZERO, 0)
    }
}

#[tokio::test]
async fn behind_a_slice_that_failed_and_ends_in_what_is_so_anyway_none_goes_through() {
    let tasks = Tasks::new();
    let store = Store::memory(&tasks);
    let committer = Committer::start(store.clone(), Clock::system(), Fence::default(), &tasks);
    committer.commit(presence("taken", Revision::ZERO, 0)).await.unwrap();
    let same = committer.commit(presence("same", Revision::ZERO, 0)).await.unwrap();
    let taken = presence("taken", Revision::ZERO, 0).writes;
    // It ends in the deletion of what is not there, and in the value that is there already.
    for end in [vec![], presence("same", same, 0).writes] {
        let line = CommitPipeline::default();
        let first = deletes(&line, "gone");
        let first = Proposal { writes: [taken.clone(), first.writes, end].concat(), ..first };
        let many = (0..70).flat_map(|number| presence(&format!("n-{number}"), Revision::ZERO, 0).writes);
        let second = Proposal { writes: many.collect(), ..deletes(&line, "unused") };
        let answers = join_all([first, second].map(|proposal| committer.commit(proposal))).await;
        assert!(
            answers.iter().all(|answer| matches!(answer, Err(CommitError::Conflict { .. }))),
            "{answers:?}"
        );
    }
    // Slices that nothing can be seen of go through all the same, one after the other.
    let line = CommitPipeline::default();
    let answers = join_all(["a", "b", "c"].map(|prefix| committer.commit(deletes(&line, prefix)))).await;
    let revisions: Vec<Revision> = answers.into_iter().map(Result::unwrap).collect();
    assert!(revisions.is_sorted(), "{revisions:?}");
}
