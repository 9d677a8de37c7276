//! A member falls silent without a word: calls and watches move on to another.

use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{changes_of, commit, next, put, soon, value};
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{CommitOutcome, EtcdSettings, Range, Revision, Store, StoreError, Txn};
use bellwether_testbed::proxy::{LinkFaults, Proxy};

/// Short, so that the test waits little for calls that hang.
const DEADLINE: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_watches_move_on_from_a_paused_member() {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::three().await);
    let store = Store::etcd(EtcdSettings { deadline: DEADLINE, ..etcd.settings() }, &tasks).await.unwrap();
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    let lease = store.grant(Duration::from_secs(600)).await.unwrap();
    commit(&store, [put("before", "1")]).await;
    assert_eq!(changes_of(&soon(watch.next()).await.unwrap()), ["before=1"]);
    etcd.pause(0);
    // The member may lead; then the others find a new leader first, and a commit meanwhile may be lost.
    let moved_on = async {
        loop {
            let txn = Txn { compares: vec![], ops: vec![put("after", "1")] };
            match soon(store.commit(txn)).await {
                Ok(CommitOutcome::Committed(revision)) => return revision,
                Ok(CommitOutcome::Conflict { .. }) => panic!("there is no compare"),
                Err(StoreError::Unknown { .. } | StoreError::Unreachable { .. }) => {}
                Err(error) => panic!("cannot {error}"),
            }
        }
    };
    let revision = soon(moved_on).await;
    assert_eq!(value(&store, "after").await.as_deref(), Some("1"));
    store.keep_alive(lease).await.unwrap();
    while soon(watch.next()).await.unwrap().revision < revision {}
    etcd.resume(0);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_on_a_connection_that_is_cut_goes_on_with_another_member() {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::three().await);
    let proxy = Proxy::start("127.0.0.1", format!("127.0.0.1:{}", etcd.port(0)), &tasks).unwrap();
    let through = EtcdSettings {
        endpoints: vec![format!("http://{}", proxy.address()), etcd.endpoint(1)],
        deadline: DEADLINE,
        probe_every: Duration::from_secs(3_600),
        ..etcd.settings()
    };
    let store = Store::etcd(through, &tasks).await.unwrap();
    let direct = Store::etcd(EtcdSettings { endpoints: vec![etcd.endpoint(2)], ..etcd.settings() }, &tasks);
    let direct = direct.await.unwrap();
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    commit(&direct, [put("a", "1")]).await;
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["a=1"]);
    proxy.set(LinkFaults { open: false, ..LinkFaults::FAIR });
    for number in 2..=5 {
        commit(&direct, [put("a", &number.to_string())]).await;
    }
    for number in 2..=5 {
        assert_eq!(changes_of(&next(&mut watch).await.unwrap()), [format!("a={number}")]);
    }
    assert_eq!(value(&store, "a").await.as_deref(), Some("5"));
    proxy.set(LinkFaults::FAIR);
    store.close().await;
}
