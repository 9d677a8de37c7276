//! Several stores in one etcd: apart by their prefixes, together in cutting history.

use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{changes_of, commit, dump, next, put, soon};
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{Compaction, EtcdSettings, Range, Revision, Store, StoreError};

#[tokio::test]
async fn stores_with_different_prefixes_do_not_see_each_other() {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::one().await);
    let with = async |prefix: &'static str| {
        let settings = EtcdSettings { prefix: prefix.into(), ..etcd.settings() };
        Store::etcd(settings, &tasks).await.unwrap()
    };
    let (left, right, same) = (with("/left").await, with("/right").await, with("/left").await);
    let mut watch = right.watch(Range::all(), Revision(0)).await.unwrap();
    commit(&left, [put("k", "left"), put("\u{7f}", "left")]).await;
    commit(&right, [put("k", "right")]).await;
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["k=right"]);
    assert_eq!(dump(&right, Range::all(), None).await, [("k".to_owned(), "right".to_owned())]);
    assert_eq!(dump(&same, Range::all(), None).await, dump(&left, Range::all(), None).await);
    assert_eq!(dump(&left, Range::all(), None).await.len(), 2);
    let keys = etcd.etcdctl(&["get", "--from-key", "", "--keys-only"]);
    let keys: Vec<_> = keys.split_whitespace().collect();
    assert_eq!(keys, ["/leftk", "/left\u{7f}", "/rightk"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_stores_each_turn_one_cuts_history_and_who_keeps_up_loses_nothing() {
    let (tasks, etcd) = (Tasks::new(), TestEtcd::one().await);
    let schedule = Compaction { every: Duration::from_millis(100), keep: Duration::from_millis(200) };
    let settings = EtcdSettings { compaction: Some(schedule), ..etcd.settings() };
    let first = Store::etcd(settings.clone(), &tasks).await.unwrap();
    let second = Store::etcd(settings, &tasks).await.unwrap();
    let mut watch = first.watch(Range::all(), Revision(0)).await.unwrap();
    let (mut count, mut oldest) = (0_u64, Revision(0));
    let cut_twice = async {
        let mut cuts = 0;
        while cuts < 2 {
            count += 1;
            commit(&second, [put("k", &count.to_string())]).await;
            assert_eq!(changes_of(&next(&mut watch).await.unwrap()), [format!("k={count}")]);
            match first.list(Range::all(), Some(oldest), 1).await {
                Ok(_) => {}
                Err(StoreError::Compacted { oldest: now }) => (oldest, cuts) = (now, cuts + 1),
                Err(error) => panic!("cannot {error}"),
            }
        }
    };
    soon(cut_twice).await;
    let turns = || {
        let said = etcd.etcdctl(&["get", "bellwether-compaction", "-w", "fields"]);
        let version = said.lines().find_map(|line| line.strip_prefix("\"Version\" : "));
        version.map(|version| version.parse::<u64>().unwrap())
    };
    let before = turns().unwrap();
    assert_eq!(dump(&first, Range::all(), None).await, [("k".to_owned(), count.to_string())]);
    // Whoever is left goes on alone.
    first.close().await;
    let goes_on = async {
        while turns().unwrap() < before + 2 {
            tokio::time::sleep(schedule.every).await;
        }
    };
    soon(goes_on).await;
    second.close().await;
}
