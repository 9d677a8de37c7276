//! What a store still knows when it is opened again.

use std::path::Path;
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{changes_of, commit, delete, next, put, value};
use bellwether_store::{Op, Range, Revision, Store, StoreError};

fn open(dir: &Path) -> Store {
    Store::embedded(dir, &Tasks::new()).unwrap()
}

#[tokio::test]
async fn state_past_and_watches_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    commit(&store, [put("a", "1"), put("b", "1")]).await;
    commit(&store, [put("a", "2"), delete("b")]).await;
    commit(&store, [put("a", "3")]).await;
    store.compact(Revision(1)).await.unwrap();
    store.close().await;
    let store = open(dir.path());
    let mut watch = store.watch(Range::all(), Revision(1)).await.unwrap();
    assert_eq!(commit(&store, [put("a", "4")]).await, Revision(4));
    let old = store.list(Range::all(), Some(Revision(1)), 10).await.unwrap();
    assert_eq!(old.entries.len(), 2);
    let compacted = store.list(Range::all(), Some(Revision(0)), 10).await;
    assert_eq!(compacted, Err(StoreError::Compacted { oldest: Revision(1) }));
    for expected in [vec!["a=2", "-b"], vec!["a=3"], vec!["a=4"]] {
        assert_eq!(changes_of(&next(&mut watch).await.unwrap()), expected);
    }
    store.close().await;
}

#[tokio::test]
async fn a_file_that_grew_shrinks_once_its_records_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let size = || std::fs::metadata(dir.path().join("store.redb")).unwrap().len();
    let store = open(dir.path());
    let value = "x".repeat(200_000);
    for number in 0..160 {
        commit(&store, [put(&format!("large/{number}"), &value), put(&format!("small/{number}"), "1")]).await;
    }
    store.close().await;
    let grown = size();
    assert!(grown > 32 << 20, "{grown} bytes");
    let store = open(dir.path());
    assert!(size() * 2 > grown, "a file in use stays");
    let mut last = Revision(0);
    for number in 0..160 {
        last = commit(&store, [delete(&format!("large/{number}"))]).await;
    }
    store.compact(last).await.unwrap();
    store.close().await;
    let store = open(dir.path());
    assert!(size() < 4 << 20, "{} bytes of {grown}", size());
    let kept = store.list(Range::all(), None, 1_000).await.unwrap().entries;
    assert_eq!(kept.len(), 160);
    assert!(commit(&store, [put("a", "1")]).await > last);
    store.close().await;
    let store = open(dir.path());
    assert_eq!(store.list(Range::all(), None, 1_000).await.unwrap().entries.len(), 161);
    store.close().await;
}

#[tokio::test]
async fn a_lease_is_still_held_and_still_ends() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let lease = store.grant(Duration::from_secs(1)).await.unwrap();
    let held = Op::Put { key: "held".into(), value: "1".into(), lease: Some(lease) };
    commit(&store, [held, put("free", "1")]).await;
    store.close().await;
    let store = open(dir.path());
    let mut watch = store.watch(Range::all(), Revision(1)).await.unwrap();
    assert_eq!(changes_of(&next(&mut watch).await.unwrap()), ["-held"]);
    assert_eq!(value(&store, "free").await.as_deref(), Some("1"));
    assert!(store.grant(Duration::from_secs(1)).await.unwrap() > lease);
    store.close().await;
}

#[tokio::test]
async fn a_store_whose_tasks_stop_is_closed_and_free() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = Tasks::new();
    let store = Store::embedded(dir.path(), &tasks).unwrap();
    commit(&store, [put("a", "1")]).await;
    tasks.stop(Duration::from_secs(60)).await.unwrap();
    assert_eq!(store.get("a".into()).await, Err(StoreError::Closed));
    let again = open(dir.path());
    assert_eq!(value(&again, "a").await.as_deref(), Some("1"));
    again.close().await;
}

#[tokio::test]
async fn a_closed_store_can_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = Tasks::new();
    let store = Store::embedded(dir.path(), &tasks).unwrap();
    commit(&store, [put("a", "1")]).await;
    drop(store);
    tasks.stop(Duration::from_secs(60)).await.unwrap();
    open(dir.path()).close().await;
}

#[tokio::test]
async fn a_store_whose_disk_failed_is_made_durable_before_it_is_trusted_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    commit(&store, [put("a", "1")]).await;
    store.close().await;
    let suspect = dir.path().join("suspect");
    std::fs::write(&suspect, "cannot sync: the disk failed").unwrap();
    let store = open(dir.path());
    assert!(!suspect.exists());
    assert_eq!(value(&store, "a").await.as_deref(), Some("1"));
    assert_eq!(commit(&store, [put("a", "2")]).await, Revision(2));
    store.close().await;
    assert_eq!(value(&open(dir.path()), "a").await.as_deref(), Some("2"));
}
