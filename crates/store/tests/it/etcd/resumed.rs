//! What a watch tells that was away while etcd went on, or back.

use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{changes_of, commit, next, put, soon};
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{EtcdSettings, Range, Revision, Store, WatchError};

/// Short, so that what hangs does not do so for long.
async fn open(etcd: &TestEtcd, tasks: &Tasks) -> Store {
    let settings = EtcdSettings { deadline: Duration::from_secs(2), ..etcd.settings() };
    Store::etcd(settings, tasks).await.unwrap()
}

/// Waits until a restarted etcd has a leader and answers.
async fn ready(store: &Store) {
    soon(async { while store.get("any".into()).await.is_err() {} }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_behind_a_restart_of_the_only_member() {
    let (tasks, mut etcd) = (Tasks::new(), TestEtcd::one().await);
    let store = open(&etcd, &tasks).await;
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    commit(&store, [put("a", "1")]).await;
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["a=1"]);
    etcd.kill(0);
    etcd.restart(0);
    ready(&store).await;
    commit(&store, [put("a", "2")]).await;
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["a=2"]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_was_away_when_its_history_was_cut_is_told_so() {
    let (tasks, mut etcd) = (Tasks::new(), TestEtcd::one().await);
    let store = open(&etcd, &tasks).await;
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    etcd.kill(0);
    etcd.restart(0);
    ready(&store).await;
    for number in 1..=5 {
        commit(&store, [put("a", &number.to_string())]).await;
    }
    store.compact(Revision(3)).await.unwrap();
    assert_eq!(next(&mut watch).await, Err(WatchError::Compacted { oldest: Revision(3) }));
    assert!(matches!(next(&mut watch).await, Err(WatchError::Compacted { .. })), "it is over");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_was_put_back_ends_its_watches() {
    let (tasks, mut etcd) = (Tasks::new(), TestEtcd::one().await);
    let store = open(&etcd, &tasks).await;
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    for number in 1..=3 {
        commit(&store, [put("a", &number.to_string())]).await;
        next(&mut watch).await.unwrap();
    }
    etcd.forget(0);
    etcd.restart(0);
    let error = next(&mut watch).await.unwrap_err();
    assert_eq!(error, WatchError::WentBack { seen: Revision(3), found: Revision(0) });
    store.close().await;
}
