//! A disk that is full: commits say so, reads go on, nothing is there by half, and room alone heals it.
//!
//! The kernel does the refusing, in a child: once a small file system of its own is full, which takes the
//! right to mount one (root, or user namespaces); once it may not grow files beyond a limit.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{commit_if, put, value};
use bellwether_store::{CommitOutcome, Condition, Range, Revision, Store, StoreError, Txn};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::child;
use crate::whole::one_story;

/// Runs its arguments with a file system of 48 MiB mounted on the child's directory, for them alone.
const SMALL_DISK: &str = r#"
    own="unshare --mount"
    $own true 2>/dev/null || own="unshare --user --map-root-user --mount"
    exec $own sh -c 'mount -t tmpfs -o size=48m none "$BELLWETHER_STORE_TEST_CHILD" && exec "$@"' sh "$@"
"#;

/// Runs its arguments so that no file grows beyond 24 MiB (49152 blocks). Going beyond must be an error, as on
/// a full disk, not a signal.
const SMALL_FILES: &str = r#"trap "" XFSZ && ulimit -S -f 49152 && exec "$@""#;

const FILLER_BYTES: usize = 200_000;

fn run(entry: &str, shell: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut process = child::start(entry, dir.path(), Some(shell));
    let mut said = String::new();
    process.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(process.wait().unwrap().success(), "the child failed, or cannot be set up: {said}");
    assert!(said.contains("met the limit and recovered"), "{said}");
}

#[test]
fn a_full_disk_refuses_commits_and_nothing_else() {
    run("full::the_child_on_a_small_disk", SMALL_DISK);
}

#[test]
fn a_file_that_may_not_grow_refuses_commits_and_nothing_else() {
    run("full::the_child_with_small_files", SMALL_FILES);
}

/// Commits pairs of equal values around a large one until there is no room. Gives the last number that is
/// durable.
async fn fill(store: &Store, dir: &Path, from: u64) -> u64 {
    let filler = "x".repeat(FILLER_BYTES);
    for number in from + 1..from + 1_000 {
        let text = number.to_string();
        let ops = vec![put("first", &text), put(&format!("filler/{number}"), &filler), put("last", &text)];
        match store.commit(Txn { compares: vec![], ops }).await {
            Ok(outcome) => assert_eq!(outcome, CommitOutcome::Committed(Revision(number))),
            Err(error) => {
                assert_eq!(error, StoreError::DiskFull { place: dir.display().to_string() });
                return number - 1;
            }
        }
    }
    panic!("the limit was never met");
}

async fn assert_readable(store: &Store, count: u64) {
    for key in ["first", "last"] {
        assert_eq!(value(store, key).await, Some(count.to_string()), "nothing is there by half");
    }
    assert_eq!(store.list(Range::all(), None, 1).await.unwrap().revision, Revision(count));
    one_story(store).await;
}

/// Not a test of its own: what the child of the first test does.
#[tokio::test]
async fn the_child_on_a_small_disk() {
    let Some(disk) = child::directory() else { return };
    let (ballast, dir, tasks) = (disk.join("ballast"), disk.join("store"), Tasks::new());
    let store = Store::embedded(&dir, &tasks).unwrap();
    let lease = store.grant(Duration::from_secs(3_600)).await.unwrap();
    fs::write(&ballast, vec![1; 24 << 20]).unwrap();
    let count = fill(&store, &dir, 0).await;
    assert_readable(&store, count).await;
    assert!(matches!(store.health().borrow().condition, Condition::ReadOnly { .. }));
    assert!(store.health().borrow().size_bytes.is_some());
    assert_eq!(fill(&store, &dir, count).await, count, "and again");
    store.keep_alive(lease).await.unwrap();
    store.close().await;
    let store = Store::embedded(&dir, &tasks).unwrap();
    assert_readable(&store, count).await;
    assert_eq!(fill(&store, &dir, count).await, count, "and after opening again");
    fs::remove_file(&ballast).unwrap();
    let again = commit_if(&store, [], [put("again", "1")]).await;
    assert_eq!(again, CommitOutcome::Committed(Revision(count + 1)));
    assert_eq!(store.health().borrow().condition, Condition::Writable);
    store.close().await;
    println!("met the limit and recovered");
}

#[test]
fn a_file_that_could_not_be_opened_again_is_read_once_there_is_room() {
    run("full::the_child_that_reads", SMALL_DISK);
}

/// Not a test of its own: what the child of the test above does. Small commits go on into the journal where large ones are
/// refused, until the journal is full as well and the file cannot be opened again to take what is in it.
#[tokio::test]
async fn the_child_that_reads() {
    let Some(disk) = child::directory() else { return };
    let (ballast, dir, tasks) = (disk.join("ballast"), disk.join("store"), Tasks::new());
    let store = Store::embedded(&dir, &tasks).unwrap();
    fs::write(&ballast, vec![1; 36 << 20]).unwrap();
    let fill_disk = || {
        let mut rest = fs::File::create(disk.join("rest")).unwrap();
        while std::io::Write::write(&mut rest, &[1; 4_096]).is_ok_and(|written| written > 0) {}
    };
    fill_disk();
    let commit = async |size: usize, number: usize| {
        let ops = vec![put(&format!("key/{size}/{number}"), &"x".repeat(size))];
        store.commit(Txn { compares: vec![], ops }).await
    };
    let mut written = 0;
    for round in 0..6 {
        let size = if round % 2 == 0 { 60_000 } else { 100 };
        for number in 0..5_000 {
            match commit(size, round * 10_000 + number).await {
                Ok(_) => written += 1,
                Err(StoreError::DiskFull { .. }) => break,
                Err(other) => panic!("{other}"),
            }
        }
    }
    fs::remove_file(disk.join("rest")).unwrap();
    fs::remove_file(&ballast).unwrap();
    let page = store.list(Range::all(), None, 100_000).await.unwrap();
    assert_eq!(page.entries.len(), written, "what was acknowledged is there, and nothing else");
    commit(100, 1_000_000).await.unwrap();
    store.close().await;
    println!("met the limit and recovered");
}

/// Not a test of its own: what the child of the second test does.
#[tokio::test]
async fn the_child_with_small_files() {
    let Some(dir) = child::directory() else { return };
    let tasks = Tasks::new();
    let store = Store::embedded(&dir, &tasks).unwrap();
    let count = fill(&store, &dir, 0).await;
    assert_readable(&store, count).await;
    let mut limit = getrlimit(Resource::Fsize);
    limit.current = limit.maximum;
    setrlimit(Resource::Fsize, limit).unwrap();
    let again = commit_if(&store, [], [put("again", "1")]).await;
    assert_eq!(again, CommitOutcome::Committed(Revision(count + 1)));
    store.close().await;
    let store = Store::embedded(&dir, &tasks).unwrap();
    one_story(&store).await;
    assert_eq!(value(&store, "last").await, Some(count.to_string()));
    store.close().await;
    println!("met the limit and recovered");
}
