//! A look at a store that is not opened: it finds nothing in a sound one, names what is damaged, and changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{commit, delete, put};
use bellwether_store::{Op, OpenError, Revision, Store, StoreCheck};
use redb::{Database, ReadableTable, TableDefinition};

const STATE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("state");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const BOUND: TableDefinition<'_, (u64, &[u8]), ()> = TableDefinition::new("bound");

/// Every file with what is in it.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let all = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = all.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    all.sort();
    all
}

/// Looks at a store; every file stays as it was, and none is added.
fn look(dir: &Path) -> StoreCheck {
    let before = files(dir);
    let check = Store::check(dir).unwrap();
    assert!(files(dir) == before, "something was changed");
    check
}

fn findings(dir: &Path) -> Vec<String> {
    look(dir).findings.into_iter().map(|finding| finding.what).collect()
}

/// Some commits, with leases, deletes and a floor.
async fn written(dir: &Path) -> Store {
    let store = Store::embedded(dir, &Tasks::new()).unwrap();
    let lease = store.grant(std::time::Duration::from_secs(3_600)).await.unwrap();
    let held = Op::Put { key: "held".into(), value: "1".into(), lease: Some(lease) };
    commit(&store, [put("z", "1")]).await;
    commit(&store, [held, put("a", "1"), put("b", "1")]).await;
    commit(&store, [put("a", "2"), delete("b")]).await;
    store.compact(Revision(1)).await.unwrap();
    commit(&store, [put("a", "3"), put("c", "1")]).await;
    store
}

async fn closed(dir: &Path) {
    written(dir).await.close().await;
}

fn edit(dir: &Path, edit: impl FnOnce(&redb::WriteTransaction)) {
    let database = Database::open(dir.join("store.redb")).unwrap();
    let txn = database.begin_write().unwrap();
    edit(&txn);
    txn.commit().unwrap();
}

#[tokio::test]
async fn a_sound_store_is_found_so_closed_or_killed_and_not_while_it_is_open() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = written(dir.path()).await;
    for file in ["store.redb", "journal", "lock"] {
        fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
    }
    assert!(matches!(Store::check(dir.path()), Err(OpenError::Locked { .. })));
    store.close().await;
    // What is before the oldest revision is dropped from the log bit by bit.
    for (dir, groups, commits) in [(&dir, 0, 3), (&copy, 6, 4)] {
        let check = look(dir.path());
        assert_eq!(check.findings, []);
        let seen = (check.revision, check.commits, check.groups, check.entries.len(), check.is_torn);
        assert_eq!(seen, (Revision(4), commits, groups, 4, false));
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Store::check(empty.path()), Err(OpenError::Io { .. })));
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_a_start_would_refuse_is_found() {
    let dir = tempfile::tempdir().unwrap();
    closed(dir.path()).await;
    let journal = dir.path().join("journal");
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, &whole[..100]).unwrap();
    let check = look(dir.path());
    assert_eq!(check.findings[0].file, journal);
    assert!(check.findings[0].what.starts_with("it has 100 bytes"), "{check:?}");
    fs::remove_file(&journal).unwrap();
    assert_eq!(findings(dir.path()), ["it is missing, and with it the latest commits"]);
}

#[tokio::test]
async fn a_record_that_was_altered_is_named() {
    let dir = tempfile::tempdir().unwrap();
    closed(dir.path()).await;
    edit(dir.path(), |txn| {
        txn.open_table(STATE).unwrap().insert(&b"a"[..], &b"nonsense"[..]).unwrap();
        let mut log = txn.open_table(LOG).unwrap();
        let mut row = log.get(3).unwrap().unwrap().value().to_vec();
        row[20] ^= 1;
        log.insert(3, &*row).unwrap();
    });
    let expected = ["the record of key \"a\" is damaged", "the record of commit 3 is damaged"];
    assert_eq!(findings(dir.path()), expected);
}

#[tokio::test]
async fn a_history_that_does_not_tell_how_the_state_came_about_is_found() {
    let dir = tempfile::tempdir().unwrap();
    closed(dir.path()).await;
    edit(dir.path(), |txn| {
        drop(txn.open_table(STATE).unwrap().remove(&b"c"[..]).unwrap());
        drop(txn.open_table(LOG).unwrap().remove(3).unwrap());
        drop(txn.open_table(BOUND).unwrap().pop_first().unwrap());
    });
    let expected = [
        "key \"held\" is not among those of its lease 1",
        "key \"c\" is not what commit 4 and those after it made of it",
        "between the commits 2 and 4 there is a gap",
        "the sum of sizes in the log is wrong behind commit 2",
        "key \"b\" is not what commit 2 and those after it made of it",
        "key \"a\" is not what commit 2 and those after it made of it",
    ];
    assert_eq!(findings(dir.path()), expected);
}

#[tokio::test]
async fn a_store_that_is_opened_to_look_shows_all_and_keeps_what_is_committed_to_itself() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = written(dir.path()).await;
    // Killed: the latest commits are in the journal alone.
    for name in ["store.redb", "journal", "lock"] {
        fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    let before = files(copy.path());
    let seen = Store::embedded_to_look(copy.path(), &Tasks::new()).unwrap();
    let mine = seen.get("a".into()).await.unwrap().unwrap();
    assert_eq!(Some(&mine), store.get("a".into()).await.unwrap().as_ref());
    assert!(matches!(Store::embedded(copy.path(), &Tasks::new()), Err(OpenError::Locked { .. })));
    commit(&seen, [put("a", "of nobody")]).await;
    assert_eq!(seen.get("a".into()).await.unwrap().unwrap().value, "of nobody");
    seen.close().await;
    assert!(files(copy.path()) == before, "something was changed");

    let empty = tempfile::tempdir().unwrap();
    let refused = Store::embedded_to_look(empty.path(), &Tasks::new()).unwrap_err();
    assert!(refused.to_string().contains("store.redb"), "{refused}");
    assert!(files(empty.path()).is_empty());
    store.close().await;
}
