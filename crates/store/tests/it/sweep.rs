//! Damage anywhere in a store: it is refused, or nothing is lost and nothing wrong is served.

use std::fs;
use std::ops::Range;
use std::path::Path;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::{commit, delete, put};
use bellwether_store::{Op, Revision, Store, StoreError};
use proptest::test_runner::{Config, RngAlgorithm, TestRng};

use crate::whole::{State, state};

const FILES: [&str; 2] = ["store.redb", "journal"];

/// Commits that the journal alone has.
const COMMITS: u64 = 21;

/// What a store held.
struct Held {
    files: [Vec<u8>; 2],
    /// The state at each revision from the oldest on that is read.
    states: Vec<(Revision, State)>,
    /// Where the frames of the journal begin and end.
    frames: Vec<Range<usize>>,
}

impl Held {
    /// How many of the last commits damage from here on may take away: none if a whole frame is behind it, as then it is
    /// known for damage; else it looks like a write that was cut short.
    fn may_lack(&self, damage: Range<usize>) -> usize {
        let touched = |frame: &&Range<usize>| frame.end > damage.start;
        match self.frames.last() {
            Some(last) if damage.end > last.start => self.frames.iter().filter(touched).count(),
            Some(_) | None => 0,
        }
    }
}

/// The frames of a journal that was begun by opening a store.
fn frames(journal: &[u8]) -> Vec<Range<usize>> {
    let (mut frames, mut start) = (Vec::new(), 8_192);
    let generation = &journal[start + 8..start + 16];
    loop {
        let length = u32::from_le_bytes(journal[start..start + 4].try_into().unwrap());
        if length == 0 || journal[start + 8..start + 16] != *generation {
            return frames;
        }
        let end = start + 24 + usize::try_from(length).unwrap();
        frames.push(start..end);
        start = end;
    }
}

async fn held(store: &Store, files: impl FnOnce() -> [Vec<u8>; 2]) -> Held {
    let (newest, present) = state(store, None).await.unwrap();
    let mut states = vec![(newest, present)];
    for revision in (newest.0 - COMMITS..newest.0).rev().chain([newest.0 / 2, 1]) {
        states.push((Revision(revision), state(store, Some(Revision(revision))).await.unwrap().1));
    }
    Held { files: files(), states, frames: Vec::new() }
}

async fn written(dir: &Path) -> Store {
    let store = Store::embedded(dir, &Tasks::new()).unwrap();
    let lease = store.grant(std::time::Duration::from_secs(3_600)).await.unwrap();
    for number in 0..120 {
        let (key, value) = (format!("k{:03}", number % 70), format!("{number} {}", "v".repeat(number * 13)));
        let bound = Op::Put { key: format!("bound{number}").into(), value: "1".into(), lease: Some(lease) };
        commit(&store, [put(&key, &value), bound]).await;
        if number % 9 == 0 {
            commit(&store, [delete(&key)]).await;
        }
    }
    store
}

fn read(dir: &Path) -> [Vec<u8>; 2] {
    FILES.map(|file| fs::read(dir.join(file)).unwrap())
}

/// One that was closed in order.
async fn closed() -> Held {
    let dir = tempfile::tempdir().unwrap();
    let store = written(dir.path()).await;
    let mut held = held(&store, || [vec![], vec![]]).await;
    store.close().await;
    held.files = read(dir.path());
    held
}

/// One that was killed, with some of it in the journal alone.
async fn killed() -> Held {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path()).await.close().await;
    let store = Store::embedded(dir.path(), &Tasks::new()).unwrap();
    for number in 0..COMMITS {
        commit(&store, [put(&format!("k{number:03}"), &format!("again {number}"))]).await;
    }
    let mut held = held(&store, || read(dir.path())).await;
    held.frames = frames(&held.files[1]);
    assert_eq!(held.frames.len() as u64, COMMITS);
    store.close().await;
    held
}

/// What is wrong with an opened store, if anything is.
async fn wrong(store: &Store, states: &[(Revision, State)]) -> Option<String> {
    for (revision, expected) in states {
        match state(store, Some(*revision)).await {
            Ok((_, found)) if found == *expected => {}
            Ok(_) => return Some(format!("another state at {revision}")),
            // Damage that is found when it is read, and said.
            Err(StoreError::Broken { .. }) => {}
            Err(error) => return Some(format!("at {revision}: {error}")),
        }
    }
    match state(store, None).await {
        Ok((newest, _)) if newest == states[0].0 => None,
        Ok((newest, _)) => Some(format!("{newest} is the newest")),
        Err(StoreError::Broken { .. }) => None,
        Err(error) => Some(error.to_string()),
    }
}

struct Random(TestRng);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        use proptest::prelude::Rng as _;
        usize::try_from(self.0.next_u64() % u64::try_from(limit).unwrap()).unwrap()
    }
}

/// Damages a file somewhere; says where and how.
fn damage(random: &mut Random, bytes: &mut Vec<u8>) -> (Range<usize>, String) {
    // Half of it where something is.
    let mut place = random.below(bytes.len());
    if random.below(2) == 0 {
        let used: Vec<usize> = (0..bytes.len()).step_by(512).filter(|at| bytes[*at] != 0).collect();
        place = used[random.below(used.len())] + random.below(512);
    }
    let place = place.min(bytes.len() - 1);
    match random.below(8) {
        0 => {
            bytes.truncate(place);
            (place..usize::MAX, format!("cut at {place}"))
        }
        1 | 2 => {
            let start = place / 512 * 512;
            bytes[start..start + 512].fill(0);
            (start..start + 512, format!("a sector of zeros at {start}"))
        }
        3 => {
            let start = place / 4_096 * 4_096;
            let other = random.below(bytes.len() / 4_096) * 4_096;
            bytes.copy_within(other..other + 4_096, start);
            (start..start + 4_096, format!("page {other} at {start}"))
        }
        _ => {
            bytes[place] ^= 1 << random.below(8);
            (place..place + 1, format!("a bit at {place}"))
        }
    }
}

async fn sweep(held: Held) {
    // 128 of each store unless PROPTEST_CASES asks for others.
    let cases = Config::default().cases / 2;
    let mut random = Random(TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (mut refused, mut opened) = (0, 0);
    for case in 0..cases {
        let dir = tempfile::tempdir().unwrap();
        let mut files = held.files.clone();
        let which = random.below(2);
        let (place, how) = damage(&mut random, &mut files[which]);
        for (file, bytes) in FILES.iter().zip(&files) {
            fs::write(dir.path().join(file), bytes).unwrap();
        }
        match Store::embedded(dir.path(), &Tasks::new()) {
            Err(error) => {
                refused += 1;
                for (file, bytes) in FILES.iter().zip(&files) {
                    assert!(
                        fs::read(dir.path().join(file)).unwrap() == *bytes,
                        "{case}: {file} was changed: {how}: {error}"
                    );
                }
            }
            Ok(store) => {
                opened += 1;
                let may_lack = if which == 1 { held.may_lack(place) } else { 0 };
                let mut problem = None;
                for lacking in 0..=may_lack {
                    problem = wrong(&store, &held.states[lacking..]).await;
                    if problem.is_none() {
                        break;
                    }
                }
                assert_eq!(problem, None, "{case}: {}: {how}: {may_lack} may be lacking", FILES[which]);
                store.close().await;
            }
        }
    }
    assert!(refused > 0 && opened > 0, "{refused} were refused and {opened} opened");
}

#[tokio::test]
async fn a_closed_store_damaged_anywhere_is_refused_or_serves_nothing_wrong() {
    sweep(closed().await).await;
}

#[tokio::test]
async fn a_killed_store_damaged_anywhere_is_refused_or_serves_nothing_wrong() {
    sweep(killed().await).await;
}
