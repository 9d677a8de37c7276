//! A store of an older format is taken over with all that was acknowledged in it.

use std::fs;
use std::path::Path;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{commit, delete, put, value};
use bellwether_store::{Revision, Store};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use crate::whole::one_story;

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// Where frames of the present format begin, and what is before their payload.
const FRAMES: usize = 8_192;
const HEADER: usize = 24;

/// Makes what is in `dir` a store of format 1 with the same content.
fn downgrade(dir: &Path) {
    let database = Database::open(dir.join("store.redb")).unwrap();
    let generation =
        database.begin_read().unwrap().open_table(META).unwrap().get("journal").unwrap().unwrap().value();
    let txn = database.begin_write().unwrap();
    let mut meta = txn.open_table(META).unwrap();
    for name in ["journal_group", "journal_salt", "id_0", "id_1"] {
        assert!(meta.remove(name).unwrap().is_some());
    }
    assert!(meta.remove("row_sums").unwrap().is_some());
    meta.insert("format", 1).unwrap();
    if generation == 0 {
        drop(meta.remove("journal").unwrap());
    }
    drop(meta);
    without_sums(&txn);
    txn.commit().unwrap();
    let journal = fs::read(dir.join("journal")).unwrap();
    let (mut rest, mut old) = (&journal[FRAMES..], Vec::new());
    loop {
        let length = usize::try_from(u32::from_le_bytes(rest[..4].try_into().unwrap())).unwrap();
        if length == 0 || rest[8..16] != generation.to_le_bytes() {
            break;
        }
        let payload = &rest[HEADER..HEADER + length];
        let sum = crc32fast::hash(&[&generation.to_le_bytes(), payload].concat());
        old.extend_from_slice(&rest[..4]);
        old.extend_from_slice(&sum.to_le_bytes());
        old.extend_from_slice(&generation.to_le_bytes());
        old.extend_from_slice(payload);
        rest = &rest[HEADER + length..];
    }
    old.resize(4 << 20, 0);
    fs::write(dir.join("journal"), old).unwrap();
}

/// Takes their checksums from all rows.
fn without_sums(txn: &WriteTransaction) {
    let mut state = txn.open_table(TableDefinition::<&[u8], &[u8]>::new("state")).unwrap();
    let rows = state.iter().unwrap().map(Result::unwrap);
    let rows: Vec<_> = rows.map(|(key, row)| (key.value().to_vec(), row.value().to_vec())).collect();
    for (key, row) in rows {
        state.insert(&*key, &row[..row.len() - 4]).unwrap();
    }
    let mut log = txn.open_table(TableDefinition::<u64, &[u8]>::new("log")).unwrap();
    let rows = log.iter().unwrap().map(Result::unwrap);
    let rows: Vec<_> = rows.map(|(key, row)| (key.value(), row.value().to_vec())).collect();
    for (key, row) in rows {
        log.insert(key, &row[..row.len() - 4]).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    for file in ["store.redb", "journal"] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
}

async fn check(dir: &Path, last: u64) {
    let store = Store::embedded(dir, &Tasks::new()).unwrap();
    let (present, _) = one_story(&store).await;
    assert_eq!(present.len(), 30);
    assert_eq!(value(&store, "k29").await.as_deref(), Some("2"));
    assert_eq!(commit(&store, [put("k29", "2")]).await, Revision(last + 1));
    store.close().await;
}

#[tokio::test]
async fn a_store_of_format_1_opens_with_all_that_it_and_its_journal_hold() {
    let (live, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::embedded(live.path(), &Tasks::new()).unwrap();
    for number in 0..31 {
        commit(&store, [put(&format!("k{number}"), "1")]).await;
    }
    store.close().await;
    let store = Store::embedded(live.path(), &Tasks::new()).unwrap();
    commit(&store, [delete("k30"), put("k29", "2")]).await;
    copy(live.path(), dir.path());
    store.close().await;
    // Killed with a commit in its journal, and closed in order.
    downgrade(dir.path());
    check(dir.path(), 32).await;
    check(dir.path(), 33).await;
    downgrade(live.path());
    check(live.path(), 32).await;
    check(live.path(), 33).await;
}
