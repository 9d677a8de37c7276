//! Files that are no store, a damaged one, or one of a newer release: refused by name and left alone.

use std::fs;
use std::path::Path;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{commit, put, value};
use bellwether_store::{OpenError, Store};
use redb::{Database, TableDefinition};

async fn a_used_store(dir: &Path) {
    let tasks = Tasks::new();
    let store = Store::embedded(dir, &tasks).unwrap();
    for n in 0..50 {
        commit(&store, [put(&format!("k{n}"), &"v".repeat(5_000))]).await;
    }
    store.close().await;
}

/// Opening refuses, with a message that names the file and what to do.
fn assert_refused(dir: &Path) {
    let file = dir.join("store.redb");
    let error = Store::embedded(dir, &Tasks::new()).unwrap_err();
    assert!(matches!(&error, OpenError::Corrupt { file: named, .. } if *named == file), "{error:?}");
    let message = error.to_string();
    assert!(
        message.starts_with(&format!("read {}: it is damaged or not a store", file.display())),
        "{message}"
    );
    assert!(message.ends_with("; move its directory away, keep it, and restore a backup"), "{message}");
}

/// Opening refuses and changes no byte.
fn assert_corrupt(dir: &Path) {
    let file = dir.join("store.redb");
    let before = fs::read(&file).unwrap();
    assert_refused(dir);
    assert!(fs::read(&file).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn garbage_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    for garbage in [&b""[..], b"x", &[0; 4_096], &[0xff; 100_000], &b"not a store ".repeat(1_000)] {
        fs::write(dir.path().join("store.redb"), garbage).unwrap();
        assert_corrupt(dir.path());
    }
}

#[tokio::test]
async fn a_store_cut_short_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    a_used_store(dir.path()).await;
    let file = dir.path().join("store.redb");
    let whole = fs::read(&file).unwrap();
    for length in [1, 100, 4_096, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        assert_corrupt(dir.path());
    }
}

#[tokio::test]
async fn a_damaged_header_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    a_used_store(dir.path()).await;
    let file = dir.path().join("store.redb");
    let mut bytes = fs::read(&file).unwrap();
    bytes[..320].fill(0x5a);
    fs::write(&file, bytes).unwrap();
    assert_corrupt(dir.path());
}

#[tokio::test]
async fn a_store_of_a_newer_release_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    a_used_store(dir.path()).await;
    let file = dir.path().join("store.redb");
    let database = Database::open(&file).unwrap();
    let txn = database.begin_write().unwrap();
    txn.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap().insert("format", 999).unwrap();
    txn.commit().unwrap();
    drop(database);
    let error = Store::embedded(dir.path(), &Tasks::new()).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 999, .. }), "{error:?}");
    drop(Database::open(&file).unwrap());
}

#[tokio::test]
async fn another_programs_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.redb");
    drop(Database::create(&file).unwrap());
    assert_refused(dir.path());
    drop(Database::open(&file).unwrap());
}

#[tokio::test]
async fn half_a_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    a_used_store(dir.path()).await;
    for (taken, named, reason) in [
        ("journal", "journal", "it is missing, and with it the latest commits"),
        ("store.redb", "journal", "the store file it belongs to is missing"),
    ] {
        let (there, aside) = (dir.path().join(taken), dir.path().join("aside"));
        fs::rename(&there, &aside).unwrap();
        let error = Store::embedded(dir.path(), &Tasks::new()).unwrap_err();
        let OpenError::Corrupt { file, reason: given } = error else { panic!("{error}") };
        assert_eq!((file, given.as_str()), (dir.path().join(named), reason));
        fs::rename(&aside, &there).unwrap();
    }
    let store = Store::embedded(dir.path(), &Tasks::new()).unwrap();
    assert_eq!(value(&store, "k49").await.map(|value| value.len()), Some(5_000));
    store.close().await;
}
