//! Answers larger than one message of etcd's: pages and catching up.

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{commit, next, put};
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{CommitOutcome, Compare, Range, Revision, Txn};

use crate::whole::state;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_catches_up_joins_the_pieces_of_a_commit() {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::one().await);
    let store = etcd.store(&tasks).await;
    let value = "x".repeat(10_000);
    for _ in 0..8 {
        let ops: Vec<_> = (0..100).map(|number| put(&format!("k{number:02}"), &value)).collect();
        commit(&store, ops).await;
    }
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    for expected in 1..=8 {
        let batch = next(&mut watch).await.unwrap();
        assert_eq!((batch.revision, batch.changes.len()), (Revision(expected), 100));
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_large_values_are_read_and_compared_whatever_an_answer_holds() {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::one().await);
    let store = etcd.store(&tasks).await;
    let value = "x".repeat(1_000_000);
    for number in 0..40 {
        commit(&store, [put(&format!("k{number:02}"), &value)]).await;
    }
    let (revision, all) = state(&store, None).await.unwrap();
    assert_eq!((revision, all.len()), (Revision(40), 40));
    assert!(all.values().all(|entry| entry.value.len() == value.len()));
    let compare = |number| Compare::Value { key: format!("k{number:02}").into(), value: "y".into() };
    let outcome = store.commit(Txn { compares: (0..40).map(compare).collect(), ops: vec![] }).await.unwrap();
    let CommitOutcome::Conflict { revision, failed } = outcome else { panic!("{outcome:?}") };
    let indexes: Vec<usize> = failed.iter().map(|compare| compare.index).collect();
    assert_eq!((revision, indexes), (Revision(40), (0..40).collect()));
    for number in 0..3_000 {
        commit(&store, [put(&format!("small/{number:04}"), "1")]).await;
    }
    let page = store.list(Range::prefix("small/"), None, 2_500).await.unwrap();
    assert_eq!((page.entries.len(), page.more), (2_500, true));
    store.close().await;
}
