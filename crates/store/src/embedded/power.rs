//! The law of the disk: whatever sync fails and whenever the power is cut, every acknowledged commit is there afterwards.
//!
//! A simulated disk has what it holds and what the system shows of it. At any operation a sync fails, after which the system
//! takes its pages for written, the process is killed, or the power is cut and a random part of what was not synced is lost.

mod disk;

use std::fmt::Debug;
use std::sync::Arc;

use bellwether_rt::tasks::Tasks;
use tokio::sync::oneshot;

use self::disk::{DiskFault, Random, SimDisk};
use super::Embedded;
use super::checkpoint::{Syncs, make_durable};
use super::directory::Directory;
use super::file::{self, OpenFiles};
use super::group::{CommitGroup, KEPT};
use super::request::WriterRequest;
use super::view::View;
use crate::backend::Backend;
use crate::error::{OpenError, StoreError};
use crate::health::Condition;
use crate::lease::Leases;
use crate::range::Range;
use crate::txn::{Op, Txn};

/// Keys that are written in turn.
const KEYS: u64 = 16;

/// What the commit of a revision writes: the same each time, so that the state at any revision is known.
fn change(revision: u64) -> (String, String) {
    let filler = usize::try_from(revision.wrapping_mul(2_654_435_761) % 6_000).unwrap();
    (format!("k{:02}", revision % KEYS), format!("{revision} {}", "x".repeat(filler)))
}

fn request(revision: u64) -> WriterRequest {
    let (key, value) = change(revision);
    let op = Op::Put { key: key.into(), value: value.into(), lease: None };
    let (reply, _) = oneshot::channel();
    WriterRequest::Commit { txn: Txn { compares: vec![], ops: vec![op] }, reply }
}

/// One history of a store: it is opened, used until something fails, and opened again.
struct History<'a> {
    directory: &'a Directory,
    disk: Arc<SimDisk>,
    random: Random,
    /// The last revision that was acknowledged or shown.
    known: u64,
}

impl History<'_> {
    /// Opens the store and checks what it holds. `None` if the disk failed meanwhile.
    fn open(&mut self) -> Result<Option<OpenFiles>, String> {
        match file::open_on(self.directory, self.disk.file(0), || Ok(self.disk.file(1))) {
            Ok(files) => {
                self.check(&files)?;
                Ok(Some(files))
            }
            Err(_) if self.disk.has_failed() => Ok(None),
            Err(error @ OpenError::Corrupt { .. }) => Err(format!("refused without need: {error}")),
            Err(error) => panic!("{error}"),
        }
    }

    fn check(&mut self, files: &OpenFiles) -> Result<(), String> {
        let damaged = |error: &dyn Debug| format!("a read failed: {error:?}");
        let view = View::of(&files.database).map_err(|fault| damaged(&fault))?;
        let found = view.revision().0;
        if found < self.known {
            return Err(format!("revision {} was acknowledged, and {found} is left", self.known));
        }
        self.known = found;
        let page = view.page(&Range::all(), None, 100).map_err(|fault| damaged(&fault))?;
        let page = page.map_err(|error| damaged(&error))?;
        let held = page.entries.iter().map(|entry| (entry.key.clone(), entry.value.clone()));
        let mut expected: Vec<_> = (found.saturating_sub(KEYS - 1).max(1)..=found)
            .map(change)
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        expected.sort();
        if held.eq(expected) { Ok(()) } else { Err(format!("the state at {found} is another")) }
    }

    /// Commits and makes durable until something fails or enough was done.
    fn work(&mut self, files: &mut OpenFiles) {
        let OpenFiles { database, journal, room, .. } = files;
        for _ in 0..self.random.below(12) {
            if self.random.below(4) == 0 {
                if make_durable(database, journal, room, Syncs::One).is_err() {
                    return;
                }
                continue;
            }
            let last = self.known + 1 + self.random.below(3);
            let requests: Vec<_> = (self.known + 1..=last).map(request).collect();
            let written = CommitGroup::new(KEPT).write(database, journal, &Leases::default(), &requests);
            if written.is_err() {
                return;
            }
            self.known = last;
        }
    }

    fn run(mut self) -> Result<(), String> {
        for _ in 0..8 {
            let fault = match self.random.below(4) {
                0 => DiskFault::None,
                1 => DiskFault::FailedSync,
                2 => DiskFault::Kill,
                _ => DiskFault::PowerCut,
            };
            // Opening takes some operations of its own, and is hit as well.
            self.disk.arm(fault, self.random.below(90));
            if let Some(mut files) = self.open()? {
                self.work(&mut files);
                if self.random.below(2) == 0 {
                    self.disk.kill();
                }
                drop(files);
            }
            if self.random.below(3) == 0 {
                self.disk.cut_power();
            }
            self.disk.restart();
        }
        self.open().map(drop)
    }
}

/// Runs a history for each seed until one breaks the law.
fn first_broken(seeds: std::ops::Range<u64>, forgets: bool) -> Option<(u64, String)> {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::lock(dir.path()).unwrap();
    drop(file::open(&directory).unwrap());
    let images = [directory.file(), directory.journal()].map(|file| std::fs::read(file).unwrap());
    seeds.into_iter().find_map(|seed| {
        let disk = SimDisk::holding(&images, seed, forgets);
        let history = History { directory: &directory, disk, random: Random(seed), known: 0 };
        history.run().err().map(|broken| (seed, broken))
    })
}

#[test]
fn whatever_sync_fails_and_whenever_the_power_is_cut_no_acknowledged_commit_is_lost() {
    // 256 unless PROPTEST_CASES asks for others; each takes a tenth of a second.
    let cases = proptest::test_runner::Config::default().cases;
    assert_eq!(first_broken(0..u64::from(cases) / 2, true), None);
}

#[test]
fn without_forgetting_what_only_the_system_shows_commits_are_lost_after_a_failed_sync() {
    let (seed, broken) = first_broken(0..10_000, false).unwrap();
    assert!(broken.contains("was acknowledged") || broken.contains("refused"), "{seed}: {broken}");
}

#[tokio::test]
async fn a_failed_sync_is_known_before_it_is_answered_and_nothing_is_written_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::lock(dir.path()).unwrap();
    drop(file::open(&directory).unwrap());
    let images = [directory.file(), directory.journal()].map(|file| std::fs::read(file).unwrap());
    let disk = SimDisk::holding(&images, 0, true);
    let files = file::open_on(&directory, disk.file(0), || Ok(disk.file(1))).unwrap();
    let store = Embedded::run(files, directory, &Tasks::new()).unwrap();
    let commit = |revision: u64| {
        let (key, value) = change(revision);
        let op = Op::Put { key: key.into(), value: value.into(), lease: None };
        store.commit(Txn { compares: vec![], ops: vec![op] })
    };
    commit(1).await.unwrap();
    disk.arm(DiskFault::FailedSync, 0);
    for _ in 0..2 {
        let error = commit(2).await.unwrap_err();
        assert!(matches!(error, StoreError::Broken { .. }), "{error}");
        let health = store.health();
        let condition = health.borrow().condition.clone();
        let Condition::Failed { reason, .. } = condition else { panic!("{condition:?}") };
        assert!(reason.contains("cannot sync: the disk failed; see to its disk"), "{reason}");
    }
    assert!(dir.path().join("suspect").exists());
    assert_eq!(store.list(Range::all(), None, 10).await.unwrap().entries.len(), 1);
    store.close().await;
}
