//! An etcd that has reached its quota: writes are refused, everything else goes on, and it heals by itself.

use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{commit, delete, put, soon, value};
use bellwether_store::testing::etcd::{Options, TestEtcd};
use bellwether_store::{CommitOutcome, Compare, Condition, Store, StoreError, Txn};

const FILLER_BYTES: usize = 500_000;

/// Writes until there is no space, and gives how many were written.
async fn fill(store: &Store) -> u32 {
    let filler = "x".repeat(FILLER_BYTES);
    for number in 0..1_000 {
        let txn = Txn { compares: vec![], ops: vec![put(&format!("filler/{number}"), &filler)] };
        match store.commit(txn).await {
            Ok(outcome) => assert!(matches!(outcome, CommitOutcome::Committed(_))),
            // The very one that reached the quota.
            Err(StoreError::Unknown { .. }) => {}
            Err(StoreError::DiskFull { place }) => {
                assert!(place.starts_with("etcd at http://127.0.0.1:"), "{place}");
                return number;
            }
            Err(error) => panic!("cannot {error}"),
        }
    }
    panic!("the quota was never met");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_without_space_is_read_only_keeps_leases_alive_and_recovers_by_itself() {
    let tasks = Tasks::new();
    let etcd = TestEtcd::start(Options { quota_bytes: Some(8 << 20), ..Options::default() }).await;
    let store = etcd.store(&tasks).await;
    let mut health = store.health();
    assert_eq!(health.borrow().condition, Condition::Writable);
    assert!(health.borrow().size_bytes.is_some() && health.borrow().version.is_some());
    let lease = store.grant(Duration::from_secs(600)).await.unwrap();
    commit(&store, [put("a", "1")]).await;
    let count = fill(&store).await;
    let is_full =
        |health: &bellwether_store::Health| health.alarms.iter().any(|alarm| alarm.contains("NOSPACE"));
    let observed = soon(health.wait_for(is_full)).await.unwrap().clone();
    let Condition::ReadOnly { reason, .. } = &observed.condition else { panic!("{observed:?}") };
    assert!(reason.contains("disarm the alarm with etcdctl"), "{reason}");
    for _ in 0..3 {
        let refused = store.commit(Txn { compares: vec![], ops: vec![put("refused", "1")] }).await;
        assert!(matches!(refused, Err(StoreError::DiskFull { .. })), "{refused:?}");
    }
    assert!(matches!(store.grant(Duration::from_secs(60)).await, Err(StoreError::DiskFull { .. })));
    store.keep_alive(lease).await.unwrap();
    assert_eq!(value(&store, "a").await.as_deref(), Some("1"));
    assert_eq!(value(&store, "refused").await, None, "nothing of what was refused is there");
    // A delete that is guarded needs a transaction, and those are refused by releases that are told of.
    let last_filler = || format!("filler/{}", count - 1);
    let guard = Compare::Value { key: "a".into(), value: "1".into() };
    let guarded = store.commit(Txn { compares: vec![guard], ops: vec![delete(&last_filler())] }).await;
    match observed.defects() {
        None => assert!(matches!(guarded, Ok(CommitOutcome::Committed(_))), "{guarded:?}"),
        // Refused where the file has its full size, which it may be just short of.
        Some(_) => assert!(
            matches!(guarded, Err(StoreError::DiskFull { .. }) | Ok(CommitOutcome::Committed(_))),
            "{guarded:?}"
        ),
    }
    let mut last = None;
    for number in 0..=count {
        last = Some(commit(&store, [delete(&format!("filler/{number}"))]).await);
    }
    store.compact(last.unwrap()).await.unwrap();
    etcd.etcdctl(&["defrag"]);
    store.keep_alive(lease).await.unwrap();
    etcd.etcdctl(&["alarm", "disarm"]);
    soon(health.wait_for(|health| health.condition == Condition::Writable)).await.unwrap();
    commit(&store, [put("again", "1")]).await;
    store.close().await;
}
