//! A store follows the members of its etcd: those that join are used, also at a start, when none that was configured is there any more.

use std::path::Path;
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{changes_of, commit, next, put, soon};
use bellwether_store::testing::etcd::TestEtcd;
use bellwether_store::{EtcdSettings, Range, Revision, Store};

/// Settings that name the first member alone, and follow the others.
fn following(etcd: &TestEtcd, file: &Path) -> EtcdSettings {
    EtcdSettings {
        endpoints: vec![etcd.endpoint(0)],
        deadline: Duration::from_secs(2),
        follow_every: Some(Duration::from_millis(200)),
        remembered: Some(file.to_owned()),
        ..etcd.settings()
    }
}

/// Waits until a store uses exactly these members.
async fn uses(store: &Store, etcd: &TestEtcd, members: &[usize]) {
    let mut wanted: Vec<String> = members.iter().map(|member| etcd.endpoint(*member)).collect();
    wanted.sort();
    let mut health = store.health();
    let used = health.wait_for(|health| {
        let mut used = health.endpoints.clone();
        used.sort();
        used == wanted
    });
    soon(used).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_grows_and_loses_its_first_member_is_used_on_and_again() {
    let (tasks, mut etcd, dir) = (Tasks::new(), TestEtcd::one().await, tempfile::tempdir().unwrap());
    let file = dir.path().join("etcd-members");
    let settings = following(&etcd, &file);
    let store = Store::etcd(settings.clone(), &tasks).await.unwrap();
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    commit(&store, [put("a", "1")]).await;
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["a=1"]);
    assert_eq!((etcd.grow().await, etcd.grow().await), (1, 2));
    uses(&store, &etcd, &[0, 1, 2]).await;

    // The one that was there first is gone for good. Configured, it stays among those that are used.
    etcd.remove(0).await;
    soon(async { while store.get("any".into()).await.is_err() {} }).await;
    commit(&store, [put("a", "2")]).await;
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["a=2"]);
    uses(&store, &etcd, &[0, 1, 2]).await;
    store.close().await;

    let again = Store::etcd(settings.clone(), &tasks).await.unwrap();
    let found = soon(again.get("a".into())).await.unwrap().unwrap();
    assert_eq!(found.value, "2");
    commit(&again, [put("a", "3")]).await;
    again.close().await;

    // Whoever writes another configuration does not get the former etcd.
    let other = EtcdSettings { endpoints: vec!["http://127.0.0.1:1".to_owned()], ..settings.clone() };
    let refused = Store::etcd(other, &tasks).await.unwrap_err().to_string();
    assert!(refused.contains("start etcd there, or correct the endpoint"), "{refused}");
    // Nor who has been told of another etcd at these addresses.
    let text = std::fs::read_to_string(&file).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    std::fs::write(&file, format!("{first}0\n{rest}")).unwrap();
    Store::etcd(settings, &tasks).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_leaves_is_used_no_more_and_one_alone_stays_as_it_is() {
    let (tasks, mut etcd, dir) = (Tasks::new(), TestEtcd::three().await, tempfile::tempdir().unwrap());
    let store = Store::etcd(following(&etcd, &dir.path().join("members")), &tasks).await.unwrap();
    uses(&store, &etcd, &[0, 1, 2]).await;
    etcd.remove(2).await;
    uses(&store, &etcd, &[0, 1]).await;
    commit(&store, [put("a", "1")]).await;
    store.close().await;
    let alone = EtcdSettings { endpoints: vec![etcd.endpoint(0)], ..etcd.settings() };
    let store = Store::etcd(alone, &tasks).await.unwrap();
    commit(&store, [put("a", "2")]).await;
    assert_eq!(store.health().borrow().endpoints, [etcd.endpoint(0)]);
    store.close().await;
}
