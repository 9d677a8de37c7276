//! A line to a store: in order, the contract holds through it; in trouble, each does what its name says, and no more.

use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{StoreUnderTest, changes_of, commit, delete, dump, next, put, value};
use bellwether_store::testing::faulty::{FaultInjection, FaultyStore, StoreFault};
use bellwether_store::{Condition, Op, Range, Revision, Store, StoreError, Txn, WatchError};
use futures_util::FutureExt;

async fn fresh() -> StoreUnderTest {
    let tasks = Tasks::new();
    StoreUnderTest { store: Store::memory(&tasks).through(&FaultyStore::new(0)), keep: Box::new(tasks) }
}

bellwether_store::suite!(crate::line::fresh);

/// A store seen through a line.
fn store() -> (Store, FaultyStore) {
    let line = FaultyStore::new(7);
    (Store::memory(&Tasks::new()).through(&line), line)
}

fn txn(op: Op) -> Txn {
    Txn { compares: vec![], ops: vec![op] }
}

#[tokio::test]
async fn a_watch_loses_deletes_and_nothing_else() {
    let (store, line) = store();
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    line.next(StoreFault::LostDeletes, 2);
    commit(&store, [put("a", "1"), put("b", "1")]).await;
    commit(&store, [delete("a"), put("c", "1")]).await;
    commit(&store, [delete("b")]).await;
    commit(&store, [delete("c")]).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(changes_of(&next(&mut watch).await.unwrap()));
    }
    assert_eq!(seen, [vec!["a=1", "b=1"], vec!["c=1"], vec!["-c"]]);
    assert!(dump(&store, Range::all(), None).await.is_empty(), "a list is the truth");
}

#[tokio::test]
async fn a_watch_tells_an_old_batch_again() {
    let (store, line) = store();
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    line.next(StoreFault::Repeated, 1);
    for number in 1..=2 {
        commit(&store, [put("a", &number.to_string())]).await;
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(next(&mut watch).await.unwrap().revision.0);
    }
    assert_eq!(seen, [1, 1, 2]);
}

#[tokio::test]
async fn a_watch_tells_nothing_until_somebody_lists() {
    let (store, line) = store();
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    line.next(StoreFault::SkipsUntilListed, 1);
    for number in 1..=3 {
        commit(&store, [put("a", &number.to_string())]).await;
    }
    assert!(watch.next().now_or_never().is_none());
    assert_eq!(value(&store, "a").await.as_deref(), Some("3"));
    commit(&store, [put("a", "4")]).await;
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["a=4"]);
}

#[tokio::test]
async fn a_store_that_went_back_ends_its_watches() {
    let (store, line) = store();
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    commit(&store, [put("a", "1")]).await;
    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(1));
    line.next(StoreFault::WentBack, 1);
    commit(&store, [put("a", "2")]).await;
    let error = next(&mut watch).await.unwrap_err();
    assert_eq!(error, WatchError::WentBack { seen: Revision(2), found: Revision(0) });
}

#[tokio::test]
async fn a_stale_read_shows_an_earlier_moment_and_says_which() {
    let (store, line) = store();
    for number in 1..=9 {
        commit(&store, [put("a", &number.to_string())]).await;
    }
    line.next(StoreFault::Stale, 1);
    let page = store.list(Range::all(), None, 1).await.unwrap();
    assert_eq!((page.revision, &*page.entries[0].value), (Revision(5), &b"5"[..]));
    assert_eq!(value(&store, "a").await.as_deref(), Some("9"));
}

#[tokio::test]
async fn a_lease_that_ended_is_renewed_and_its_keys_stay_gone() {
    let (store, line) = store();
    let lease = store.grant(Duration::from_secs(60)).await.unwrap();
    let bound = Op::Put { key: "bound".into(), value: "1".into(), lease: Some(lease) };
    commit(&store, [bound.clone()]).await;
    store.revoke(lease).await.unwrap();
    line.next(StoreFault::RenewsWhatEnded, 1);
    store.keep_alive(lease).await.unwrap();
    assert_eq!(value(&store, "bound").await, None);
    assert_eq!(store.commit(txn(bound)).await, Err(StoreError::LeaseGone));
    assert_eq!(store.keep_alive(lease).await, Err(StoreError::LeaseGone));
}

#[tokio::test]
async fn a_lease_outlives_its_time_and_then_ends() {
    let (store, line) = store();
    line.next(StoreFault::OutlivingLease, 1);
    let mut ops = Vec::new();
    for (key, seconds) in [("outlives", 1), ("shorter", 1), ("longer", 5)] {
        let lease = store.grant(Duration::from_secs(seconds)).await.unwrap();
        ops.push(Op::Put { key: key.into(), value: "1".into(), lease: Some(lease) });
    }
    commit(&store, ops).await;
    let mut watch = store.watch(Range::all(), Revision(1)).await.unwrap();
    for expected in ["-shorter", "-outlives", "-longer"] {
        assert_eq!(changes_of(&next(&mut watch).await.unwrap()), [expected]);
    }
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_made_and_one_that_is_lost_is_not() {
    let (store, line) = store();
    line.next(StoreFault::Unanswered, 1);
    let unknown = store.commit(txn(put("made", "1"))).await;
    assert!(matches!(unknown, Err(StoreError::Unknown { .. })), "{unknown:?}");
    line.next(StoreFault::Refused, 1);
    let lost = store.commit(txn(put("lost", "1"))).await;
    assert!(matches!(lost, Err(StoreError::Unreachable { .. })), "{lost:?}");
    assert_eq!(value(&store, "made").await.as_deref(), Some("1"));
    assert_eq!(value(&store, "lost").await, None);
    commit(&store, [put("lost", "2")]).await;
}

#[tokio::test]
async fn a_store_without_space_refuses_puts_and_grants_and_says_how_it_is() {
    let (store, line) = store();
    let lease = store.grant(Duration::from_secs(60)).await.unwrap();
    commit(&store, [put("a", "1")]).await;
    line.fill(true);
    assert!(matches!(store.health().borrow().condition, Condition::ReadOnly { .. }));
    let put_it = store.commit(txn(put("b", "1"))).await;
    assert!(matches!(put_it, Err(StoreError::DiskFull { .. })), "{put_it:?}");
    let grant = store.grant(Duration::from_secs(60)).await;
    assert!(matches!(grant, Err(StoreError::DiskFull { .. })), "{grant:?}");
    store.keep_alive(lease).await.unwrap();
    commit(&store, [delete("a")]).await;
    line.fill(false);
    assert_eq!(store.health().borrow().condition, Condition::Writable);
    commit(&store, [put("b", "1")]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_line_lets_nothing_through_and_calls_give_up() {
    let (store, line) = (Store::memory(&Tasks::new()), FaultyStore::new(1));
    let seen = store.through(&line);
    line.cut();
    let error = seen.commit(Txn { compares: vec![], ops: vec![put("a", "1")] }).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert_eq!(value(&store, "a").await, None);
    line.heal();
    commit(&seen, [put("a", "2")]).await;
    assert_eq!(value(&store, "a").await.as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_over_a_line_that_was_cut_a_while_goes_on_without_a_gap() {
    let (store, line) = (Store::memory(&Tasks::new()), FaultyStore::new(1));
    let seen = store.through(&line);
    let mut watch = seen.watch(Range::prefix("a"), Revision(0)).await.unwrap();
    line.cut();
    commit(&store, [put("a", "1")]).await;
    assert!(tokio::time::timeout(Duration::from_secs(1), watch.next()).await.is_err());
    line.heal();
    assert_eq!(watch.next().await.unwrap().revision, Revision(1));
    line.cut();
    assert!(matches!(watch.next().await, Err(WatchError::Failed(_))));
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_no_watch_tells_of_is_there_for_whoever_lists() {
    let (store, line) = store();
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    line.trouble(FaultInjection { lost_commits: 1_000_000, ..FaultInjection::default() });
    commit(&store, [put("a", "1")]).await;
    assert!(tokio::time::timeout(Duration::from_secs(1), watch.next()).await.is_err());
    assert_eq!(value(&store, "a").await.as_deref(), Some("1"));
    line.trouble(FaultInjection::default());
    commit(&store, [put("a", "2")]).await;
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["a=2"]);
}

#[tokio::test]
async fn a_line_that_is_closed_closes_nothing_for_the_others() {
    let (store, line) = (Store::memory(&Tasks::new()), FaultyStore::new(1));
    let seen = store.through(&line);
    seen.close().await;
    assert_eq!(seen.now().await, Err(StoreError::Closed));
    assert_eq!(store.now().await, Ok(Revision(0)));
}

#[tokio::test]
async fn the_same_seed_brings_the_same_trouble() {
    let run = async |seed| {
        let line = FaultyStore::new(seed);
        let store = Store::memory(&Tasks::new()).through(&line);
        line.trouble(FaultInjection { refused: 300_000, ..FaultInjection::default() });
        let mut lost = Vec::new();
        for number in 0..200 {
            lost.push(store.commit(txn(put("a", &number.to_string()))).await.is_err());
        }
        lost
    };
    let (first, again, other) = (run(1).await, run(1).await, run(2).await);
    assert_eq!(first, again);
    assert_ne!(first, other);
    let hits = first.iter().filter(|is_lost| **is_lost).count();
    assert!((30..=90).contains(&hits), "{hits} of 200 at 30 percent");
}
