//! Laws of writers and watchers that run at the same time.

use std::collections::BTreeMap;

use bellwether_rt::tasks::Tasks;

use super::commits::indexes;
use super::{BOUND, StoreUnderTest, commit, commit_if, dump, next, put, soon, text, value};
use crate::{CommitOutcome, Compare, Range, Revision, Store};

const WRITERS: u64 = 8;
const ROUNDS: u64 = 25;

/// Runs `work` for each of several writers at once and gives what each counted.
async fn race<W>(store: &Store, work: impl Fn(Store, u64) -> W) -> Vec<u64>
where
    W: Future<Output = u64> + Send + 'static,
{
    let tasks = Tasks::new();
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| tasks.spawn("writer", work(store.clone(), writer))).collect();
    let mut results = Vec::new();
    for writer in writers {
        results.push(soon(writer).await.unwrap().unwrap());
    }
    tasks.stop(BOUND).await.unwrap();
    results
}

/// Of all writers that compare with the same revision, exactly one commits.
pub async fn of_many_writers_one_wins_each_round(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    for round in 0..ROUNDS {
        let base = Revision(round);
        let wins = race(&store, move |store: Store, writer| async move {
            let compare = Compare::Modified { key: "k".into(), revision: base };
            match commit_if(&store, [compare], [put("k", &writer.to_string())]).await {
                CommitOutcome::Committed(revision) => {
                    assert_eq!(revision, base.next());
                    1
                }
                CommitOutcome::Conflict { revision, failed } => {
                    assert_eq!((revision, indexes(&failed)), (base.next(), vec![0]));
                    0
                }
            }
        })
        .await;
        assert_eq!(wins.iter().sum::<u64>(), 1, "in round {round}");
    }
}

/// Read, add one, commit if unchanged, else again: no addition is lost.
pub async fn a_counter_counts_every_writer(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    commit(&store, [put("n", "0")]).await;
    race(&store, |store: Store, _| async move {
        let mut added = 0;
        while added < ROUNDS {
            let entry = store.get("n".into()).await.unwrap().unwrap();
            let count: u64 = text(&entry.value).parse().unwrap();
            let compare = Compare::Modified { key: "n".into(), revision: entry.modified };
            let outcome = commit_if(&store, [compare], [put("n", &(count + 1).to_string())]).await;
            added += u64::from(matches!(outcome, CommitOutcome::Committed(_)));
        }
        added
    })
    .await;
    assert_eq!(value(&store, "n").await, Some((WRITERS * ROUNDS).to_string()));
}

/// Under many writers every watcher sees each revision once, in order, and ends with the state.
pub async fn watchers_agree_with_the_state(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(store.watch(Range::all(), Revision(0)).await.unwrap());
    }
    race(&store, |store: Store, writer| async move {
        for n in 0..ROUNDS {
            let shared = format!("shared/{}", n % 3);
            commit(
                &store,
                [put(&format!("own/{writer}"), &n.to_string()), put(&shared, &writer.to_string())],
            )
            .await;
        }
        0
    })
    .await;
    let state: BTreeMap<_, _> = dump(&store, Range::all(), None).await.into_iter().collect();
    for watch in &mut watches {
        let mut seen = BTreeMap::new();
        for expected in 1..=WRITERS * ROUNDS {
            let batch = next(watch).await.unwrap();
            assert_eq!((batch.revision, batch.changes.len()), (Revision(expected), 2));
            let entries = batch.changes.into_iter().filter_map(|change| change.entry);
            seen.extend(entries.map(|entry| (text(&entry.key), text(&entry.value))));
        }
        assert_eq!(seen, state);
    }
}
