//! A journal that is not what the store left: refused by name and left alone, never opened with less in it.

use std::fs;
use std::path::Path;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{commit, put, value};
use bellwether_store::{Condition, OpenError, Store, StoreError};
use redb::{Database, ReadableTable, TableDefinition};

/// Where frames begin, after two headers of a page each.
const FRAMES: usize = 8_192;

/// What a kill leaves of a store with so many commits: both of its files, with the commits in the journal alone.
async fn killed(dir: &Path, commits: usize) {
    let live = tempfile::tempdir().unwrap();
    let store = Store::embedded(live.path(), &Tasks::new()).unwrap();
    for number in 0..commits {
        commit(&store, [put(&format!("k{number}"), "v")]).await;
    }
    for file in ["store.redb", "journal"] {
        fs::copy(live.path().join(file), dir.join(file)).unwrap();
    }
    store.close().await;
}

/// Opening refuses the journal, saying why, and changes nothing in it.
fn assert_refused(dir: &Path, expected: &str) {
    let journal = dir.join("journal");
    let before = fs::read(&journal).unwrap();
    let error = Store::embedded(dir, &Tasks::new()).unwrap_err();
    let OpenError::Corrupt { file, reason } = error else { panic!("{error}") };
    assert_eq!(file, journal);
    assert!(reason.contains(expected), "{reason}");
    assert!(fs::read(&journal).unwrap() == before, "the journal was changed");
}

async fn assert_whole(dir: &Path, commits: usize) {
    let store = Store::embedded(dir, &Tasks::new()).unwrap();
    for number in 0..commits {
        assert_eq!(value(&store, &format!("k{number}")).await.as_deref(), Some("v"));
    }
    store.close().await;
}

#[tokio::test]
async fn one_bad_bit_in_a_frame_that_is_not_the_last_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), 40).await;
    let journal = dir.path().join("journal");
    let whole = fs::read(&journal).unwrap();
    for bad in [FRAMES, FRAMES + 5, FRAMES + 40, FRAMES + 500] {
        let mut damaged = whole.clone();
        damaged[bad] ^= 1;
        fs::write(&journal, damaged).unwrap();
        assert_refused(dir.path(), "is damaged: group");
    }
    fs::write(&journal, whole).unwrap();
    assert_whole(dir.path(), 40).await;
}

#[tokio::test]
async fn a_journal_emptied_zeroed_or_cut_short_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), 40).await;
    let journal = dir.path().join("journal");
    let whole = fs::read(&journal).unwrap();
    for length in [0, FRAMES, FRAMES + 100, whole.len() - 1] {
        fs::write(&journal, &whole[..length]).unwrap();
        assert_refused(dir.path(), "bytes and was made with");
    }
    fs::write(&journal, vec![0; whole.len()]).unwrap();
    assert_refused(dir.path(), "both of its headers are damaged");
    fs::write(&journal, whole).unwrap();
    assert_whole(dir.path(), 40).await;
}

#[tokio::test]
async fn a_journal_of_another_time_or_of_another_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, file) = (dir.path().join("journal"), dir.path().join("store.redb"));
    let read = || (fs::read(&journal).unwrap(), fs::read(&file).unwrap());
    killed(dir.path(), 40).await;
    let first = read();
    for _ in 0..2 {
        assert_whole(dir.path(), 40).await;
    }
    let later = read();
    fs::write(&journal, &first.0).unwrap();
    assert_refused(dir.path(), "it is older than the store file");
    fs::write(&file, &first.1).unwrap();
    fs::write(&journal, &later.0).unwrap();
    assert_refused(dir.path(), "it continues a newer store file");
    let other = tempfile::tempdir().unwrap();
    killed(other.path(), 40).await;
    fs::copy(other.path().join("journal"), &journal).unwrap();
    assert_refused(dir.path(), "it is the journal of another store");
    fs::write(&journal, first.0).unwrap();
    assert_whole(dir.path(), 40).await;
}

/// Alters the value of a key as a program would that writes into the file: pages and their checksums are in order.
fn alter(dir: &Path, key: &str) {
    let database = Database::open(dir.join("store.redb")).unwrap();
    let txn = database.begin_write().unwrap();
    let mut state = txn.open_table(TableDefinition::<&[u8], &[u8]>::new("state")).unwrap();
    let mut row = state.get(key.as_bytes()).unwrap().unwrap().value().to_vec();
    let value = row.len() - 5;
    row[value] ^= 1;
    state.insert(key.as_bytes(), &*row).unwrap();
    drop(state);
    txn.commit().unwrap();
}

#[tokio::test]
async fn an_altered_record_is_refused_by_its_key_and_the_store_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::embedded(dir.path(), &Tasks::new()).unwrap();
    commit(&store, [put("a", "1"), put("b", "1"), put("c", "1")]).await;
    store.close().await;
    alter(dir.path(), "b");
    let store = Store::embedded(dir.path(), &Tasks::new()).unwrap();
    assert_eq!(value(&store, "a").await.as_deref(), Some("1"));
    assert_eq!(store.health().borrow().condition, Condition::Writable);
    let error = store.get("b".into()).await.unwrap_err();
    let StoreError::Broken { reason } = error else { panic!("{error}") };
    assert!(reason.ends_with("store.redb failed: the record of key \"b\" is damaged"), "{reason}");
    let condition = store.health().borrow().condition.clone();
    assert!(
        matches!(&condition, Condition::Failed { reason, .. } if reason.contains("\"b\"")),
        "{condition:?}"
    );
    assert_eq!(value(&store, "c").await.as_deref(), Some("1"), "the others are read");
    store.close().await;
}
