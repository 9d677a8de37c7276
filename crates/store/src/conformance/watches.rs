//! Laws of watching.

use futures_util::FutureExt;

use super::{StoreUnderTest, changes_of, commit, delete, next, put};
use crate::{Range, Revision, StoreError, WatchError};

/// Each commit is one batch with all of its changes, revisions ascend, deletes are delivered.
pub async fn a_watch_sees_each_commit_whole_and_in_order(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    commit(&store, [put("b", "1"), put("a", "1")]).await;
    commit(&store, [delete("b"), put("c", "2"), delete("never")]).await;
    let first = next(&mut watch).await.unwrap();
    assert_eq!((first.revision, changes_of(&first)), (Revision(1), vec!["b=1".to_owned(), "a=1".to_owned()]));
    let second = next(&mut watch).await.unwrap();
    assert_eq!(
        (second.revision, changes_of(&second)),
        (Revision(2), vec!["-b".to_owned(), "c=2".to_owned()])
    );
    let stored = store.get("c".into()).await.unwrap();
    assert_eq!(second.changes.last().and_then(|change| change.entry.clone()), stored);
}

/// Commits outside of the range are passed over, changes outside of it are left out.
pub async fn a_watch_sees_only_its_range(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let mut watch = store.watch(Range::prefix("a/"), Revision(0)).await.unwrap();
    commit(&store, [put("b/1", "1")]).await;
    commit(&store, [put("b/1", "2"), put("a/1", "2")]).await;
    commit(&store, [put("a0", "3")]).await;
    commit(&store, [delete("a/1")]).await;
    let first = next(&mut watch).await.unwrap();
    assert_eq!((first.revision, changes_of(&first)), (Revision(2), vec!["a/1=2".to_owned()]));
    let second = next(&mut watch).await.unwrap();
    assert_eq!((second.revision, changes_of(&second)), (Revision(4), vec!["-a/1".to_owned()]));
}

/// A watch from any kept revision gives everything behind it, as if it had never stopped.
pub async fn a_watch_resumes_without_gap(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    for n in 1..=20 {
        commit(&store, [put("a", &n.to_string())]).await;
    }
    for after in 0..20 {
        let mut watch = store.watch(Range::one("a"), Revision(after)).await.unwrap();
        for expected in after + 1..=20 {
            let batch = next(&mut watch).await.unwrap();
            assert_eq!(
                (batch.revision, changes_of(&batch)),
                (Revision(expected), vec![format!("a={expected}")])
            );
        }
    }
    let future = store.watch(Range::all(), Revision(21)).await.unwrap_err();
    assert_eq!(future, StoreError::Future { current: Revision(20) });
}

/// History that is gone is refused, not skipped; what is left is delivered.
pub async fn a_watch_from_compacted_history_is_refused(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let mut slow = store.watch(Range::all(), Revision(0)).await.unwrap();
    for n in 1..=5 {
        commit(&store, [put("a", &n.to_string())]).await;
    }
    store.compact(Revision(3)).await.unwrap();
    let error = store.watch(Range::all(), Revision(2)).await.unwrap_err();
    assert_eq!(error, StoreError::Compacted { oldest: Revision(3) });
    let mut watch = store.watch(Range::all(), Revision(3)).await.unwrap();
    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(4));
    // A watch that has not begun to read may have its history taken away; it is never given a gap.
    match next(&mut slow).await {
        Ok(batch) => assert_eq!(batch.revision, Revision(1)),
        Err(error) => assert_eq!(error, WatchError::Compacted { oldest: Revision(3) }),
    }
}

/// A watcher that waits is woken by the commit it waits for.
pub async fn a_waiting_watch_wakes(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    let (batch, revision) = tokio::join!(next(&mut watch), commit(&store, [put("a", "1")]));
    assert_eq!(batch.unwrap().revision, revision);
}

/// Waiting may be broken off at any time without losing a batch.
pub async fn a_dropped_wait_loses_nothing(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    for expected in 1..=10 {
        assert!(watch.next().now_or_never().is_none());
        commit(&store, [put("a", "1")]).await;
        assert_eq!(next(&mut watch).await.unwrap().revision, Revision(expected));
    }
}

/// Closing a store delivers what was committed and then ends its watches.
pub async fn a_closed_store_ends_its_watches(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let mut watch = store.watch(Range::all(), Revision(0)).await.unwrap();
    commit(&store, [put("a", "1")]).await;
    store.close().await;
    assert_eq!(next(&mut watch).await.unwrap().revision, Revision(1));
    assert_eq!(next(&mut watch).await, Err(WatchError::Closed));
}
