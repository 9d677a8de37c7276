//! A disk that is full: commits say so, reads go on, nothing is there by half, and room alone heals it.
//!
//! The kernel does the refusing: a child may not grow files beyond a limit it later raises itself.

use std::io::Read;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{commit_if, put, value};
use bellwether_store::{Outcome, Range, Revision, Store, StoreError, Txn};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::child;
use crate::whole::one_story;

/// Writing beyond the limit must be an error, as on a full disk, not a signal; 24 MiB is 49152 blocks.
const LIMITED: &str = r#"trap "" XFSZ && ulimit -S -f 49152 && exec "$@""#;

#[test]
fn a_full_disk_refuses_commits_until_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = child::start("full::the_limited_child", dir.path(), Some(LIMITED));
    let mut said = String::new();
    process.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(process.wait().unwrap().success(), "{said}");
    assert!(said.contains("met the limit and recovered"), "{said}");
}

/// Not a test of its own: what the child of the test above does.
#[tokio::test]
async fn the_limited_child() {
    let Some(dir) = child::directory() else { return };
    let tasks = Tasks::new();
    let store = Store::embedded(&dir, &tasks).unwrap();
    let filler = "x".repeat(200_000);
    let mut count = 0;
    let error = loop {
        let number = (count + 1).to_string();
        let ops =
            vec![put("first", &number), put(&format!("filler/{number}"), &filler), put("last", &number)];
        match store.commit(Txn { compares: vec![], ops }).await {
            Ok(outcome) => assert_eq!(outcome, Outcome::Committed(Revision(count + 1))),
            Err(error) => break error,
        }
        count += 1;
        assert!(count < 1_000, "the limit was never met");
    };
    assert_eq!(error, StoreError::DiskFull { place: dir.display().to_string() });
    for key in ["first", "last"] {
        assert_eq!(value(&store, key).await, Some(count.to_string()), "nothing is there by half");
    }
    let page = store.list(Range::all(), None, 1).await.unwrap();
    assert_eq!(page.revision, Revision(count));
    let mut limit = getrlimit(Resource::Fsize);
    limit.current = limit.maximum;
    setrlimit(Resource::Fsize, limit).unwrap();
    let again = commit_if(&store, [], [put("again", &filler)]).await;
    assert_eq!(again, Outcome::Committed(Revision(count + 1)));
    one_story(&store).await;
    store.close().await;
    let store = Store::embedded(&dir, &tasks).unwrap();
    one_story(&store).await;
    assert_eq!(value(&store, "last").await, Some(count.to_string()));
    println!("met the limit and recovered");
}
