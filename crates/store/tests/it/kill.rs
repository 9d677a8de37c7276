//! kill -9 in the middle of commits: what was acknowledged stays, what was not is whole or not there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Child;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{put, soon, text, value};
use bellwether_store::{CommitOutcome, Compare, LeaseId, MAX_TTL, Op, Revision, Store, Txn};

use crate::child;
use crate::whole::{oldest, one_story};

const WRITERS: u64 = 8;
/// How many acknowledgements the parent hears before it kills: from "just begun" to "well under way", and
/// many around the one at which the journal is long and the database catches up with the disk.
const MOMENTS: [usize; 18] =
    [1, 2, 5, 13, 34, 89, 233, 610, 150, 3, 377, 396, 402, 408, 414, 420, 426, 1_200];

/// The value that makes journals long after some 400 commits.
const FILLER_BYTES: usize = 10_000;

/// One acknowledged commit: writer, number, revision.
type Acknowledged = (u64, u64, Revision);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_commits_survive_kill_9_and_others_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut leases = Vec::new();
    for moment in MOMENTS {
        let (lease, acknowledged) = write_and_kill(dir.path(), moment);
        assert!(!leases.contains(&lease), "a lease's number is never given again");
        leases.push(lease);
        let tasks = Tasks::new();
        let store = Store::embedded(dir.path(), &tasks).unwrap();
        check(&store, &acknowledged).await;
        store.keep_alive(lease).await.unwrap();
        store.close().await;
    }
}

/// Lets a child write until `moment` acknowledgements were heard, and kills it while it goes on.
fn write_and_kill(dir: &Path, moment: usize) -> (LeaseId, Vec<Acknowledged>) {
    let mut process = child::start("kill::the_writing_child", dir, None);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let lease =
        lines.by_ref().find_map(|line| line.strip_prefix("lease ").map(|id| id.parse().unwrap())).unwrap();
    let mut heard = Vec::new();
    hear(lines.by_ref(), moment, &mut heard);
    kill(&mut process);
    hear(lines, usize::MAX, &mut heard);
    (LeaseId(lease), heard)
}

fn hear(lines: impl Iterator<Item = String>, most: usize, heard: &mut Vec<Acknowledged>) {
    let acknowledged = lines.filter_map(|line| {
        // The last line may be cut short by the kill; it has its end mark only when it is whole.
        let numbers: Vec<u64> =
            line.strip_prefix("ack ")?.strip_suffix(" .")?.split(' ').map(|n| n.parse().unwrap()).collect();
        let [writer, number, revision] = numbers[..] else { return None };
        Some((writer, number, Revision(revision)))
    });
    heard.extend(acknowledged.take(most));
}

fn kill(process: &mut Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

async fn check(store: &Store, acknowledged: &[Acknowledged]) {
    let (present, puts) = one_story(store).await;
    let kept: BTreeMap<String, String> =
        present.values().map(|entry| (text(&entry.key), text(&entry.value))).collect();
    for writer in 0..WRITERS {
        let both = [format!("a/{writer}"), format!("z/{writer}")].map(|key| kept.get(&key));
        assert_eq!(both[0], both[1], "no commit is there by half");
    }
    let oldest = oldest(store).await;
    for (writer, number, revision) in acknowledged {
        let present: u64 = kept[&format!("a/{writer}")].parse().unwrap();
        assert!(present >= *number, "writer {writer} was told that {number} is durable; {present} is there");
        if *revision > oldest {
            assert_eq!(puts[revision][&format!("a/{writer}")], number.to_string());
        }
    }
}

/// Not a test of its own: what the child of the test above does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writing_child() {
    let Some(dir) = child::directory() else { return };
    let tasks = Tasks::new();
    let store = Store::embedded(&dir, &tasks).unwrap();
    let lease = store.grant(MAX_TTL).await.unwrap();
    say(format!("\nlease {lease}\n"));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tasks.spawn("writer", write_for_ever(store.clone(), writer, lease)))
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

async fn write_for_ever(store: Store, writer: u64, lease: LeaseId) {
    let (first, second) = (format!("a/{writer}"), format!("z/{writer}"));
    let filler = vec![b'x'; FILLER_BYTES].into();
    let bound = Op::Put { key: format!("bound/{writer}").into(), value: filler, lease: Some(lease) };
    let mut number: u64 = value(&store, &first).await.map_or(0, |text| text.parse().unwrap());
    loop {
        let compare = match number {
            0 => Compare::Absent { key: first.clone().into() },
            _ => Compare::Value { key: first.clone().into(), value: number.to_string().into() },
        };
        number += 1;
        let text = number.to_string();
        let ops = vec![put(&first, &text), bound.clone(), put(&second, &text)];
        let outcome = store.commit(Txn { compares: vec![compare], ops }).await.unwrap();
        let CommitOutcome::Committed(revision) = outcome else { panic!("another writer wrote {first}") };
        say(format!("ack {writer} {number} {revision} .\n"));
        if writer == 0 && number.is_multiple_of(50) {
            store.compact(Revision(revision.0 - 20)).await.unwrap();
        }
    }
}

/// Writes a line to the parent in one piece.
fn say(line: String) {
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_is_refused_until_the_first_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = child::start("kill::the_writing_child", dir.path(), None);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("lease ")));
    let tasks = Tasks::new();
    let refused = Store::embedded(dir.path(), &tasks).unwrap_err().to_string();
    let expected =
        format!("lock {}: another process has this store open; stop it first", dir.path().display());
    assert_eq!(refused, expected);
    std::fs::remove_file(dir.path().join("lock")).unwrap();
    let refused = Store::embedded(dir.path(), &tasks).unwrap_err().to_string();
    assert_eq!(refused, expected, "though somebody removed the file that is locked");
    kill(&mut process);
    let store = Store::embedded(dir.path(), &tasks).unwrap();
    let again = Store::embedded(dir.path(), &tasks).unwrap_err().to_string();
    assert_eq!(again, expected, "nor twice in one process");
    soon(store.close()).await;
    soon(Store::embedded(dir.path(), &tasks).unwrap().close()).await;
}
