//! Looking at a whole store, and checking that its log and its state tell one story.

use std::collections::BTreeMap;

use bellwether_store::conformance::{next, text};
use bellwether_store::{Entry, Range, Revision, Store, StoreError};
use bytes::Bytes;

/// Every entry by key.
pub(crate) type State = BTreeMap<Bytes, Entry>;

/// The whole state at a revision, now if none is given, read in small pages.
pub(crate) async fn state(store: &Store, at: Option<Revision>) -> Result<(Revision, State), StoreError> {
    let (mut range, mut at, mut all) = (Range::all(), at, State::new());
    loop {
        let page = store.list(range.clone(), at, 100).await?;
        at = Some(page.revision);
        let last = page.entries.last().map(|entry| entry.key.clone());
        all.extend(page.entries.into_iter().map(|entry| (entry.key.clone(), entry)));
        match last.filter(|_| page.more) {
            Some(key) => range = range.after(&key),
            None => return Ok((page.revision, all)),
        }
    }
}

/// The oldest revision that is kept.
pub(crate) async fn oldest(store: &Store) -> Revision {
    match store.list(Range::all(), Some(Revision(0)), 1).await {
        Ok(_) => Revision(0),
        Err(StoreError::Compacted { oldest }) => oldest,
        Err(error) => panic!("cannot {error}"),
    }
}

/// Replays the kept log onto the oldest state: revisions follow one another without gap, and the end is the
/// present. Gives the present and what each kept commit put.
pub(crate) async fn one_story(store: &Store) -> (State, BTreeMap<Revision, BTreeMap<String, String>>) {
    let (newest, present) = state(store, None).await.unwrap();
    let oldest = oldest(store).await;
    let (_, mut replayed) = state(store, Some(oldest)).await.unwrap();
    let mut watch = store.watch(Range::all(), oldest).await.unwrap();
    let mut puts = BTreeMap::new();
    for expected in oldest.0 + 1..=newest.0 {
        let batch = next(&mut watch).await.unwrap();
        assert_eq!(batch.revision, Revision(expected), "revisions follow one another");
        let put: &mut BTreeMap<_, _> = puts.entry(batch.revision).or_default();
        for change in batch.changes {
            match change.entry {
                Some(entry) => {
                    put.insert(text(&entry.key), text(&entry.value));
                    replayed.insert(change.key, entry);
                }
                None => drop(replayed.remove(&change.key)),
            }
        }
    }
    assert_eq!(replayed, present, "the log tells how the state came about");
    (present, puts)
}
