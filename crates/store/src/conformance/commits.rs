//! Laws of compare-and-commit.

use super::{StoreUnderTest, commit, commit_if, delete, put, value};
use crate::{CommitOutcome, Compare, FailedCompare, Revision};

/// Revisions start at 0 and each commit adds exactly 1, however many keys it changes. (In an etcd that others write
/// to, each commit adds at least 1.)
pub async fn a_commit_counts_one_revision(make: impl AsyncFn() -> StoreUnderTest) {
    let subject = make().await;
    assert_eq!(commit(&subject.store, [put("a", "1")]).await, Revision(1));
    assert_eq!(commit(&subject.store, [put("a", "2"), put("b", "2"), put("c", "2")]).await, Revision(2));
    assert_eq!(commit(&subject.store, [delete("a")]).await, Revision(3));
    let entry = subject.store.get("b".into()).await.unwrap().unwrap();
    assert_eq!((entry.created, entry.modified), (Revision(2), Revision(2)));
}

/// Each compare holds exactly when it says so.
pub async fn every_compare_is_weighed(make: impl AsyncFn() -> StoreUnderTest) {
    let subject = make().await;
    commit(&subject.store, [put("a", "1")]).await;
    commit(&subject.store, [put("a", "2")]).await;
    let modified =
        |key: &'static str, revision| Compare::Modified { key: key.into(), revision: Revision(revision) };
    let created =
        |key: &'static str, revision| Compare::Created { key: key.into(), revision: Revision(revision) };
    let holds =
        |key: &'static str, value: &'static str| Compare::Value { key: key.into(), value: value.into() };
    let absent = |key: &'static str| Compare::Absent { key: key.into() };
    let good =
        [absent("b"), modified("a", 2), created("a", 1), holds("a", "2"), modified("b", 0), created("b", 0)];
    assert_eq!(commit_if(&subject.store, good, []).await, CommitOutcome::Committed(Revision(2)));
    let bad =
        [absent("a"), modified("a", 1), created("a", 2), holds("a", "1"), modified("b", 1), holds("b", "")];
    let shows_value =
        bad.each_ref().map(|compare| matches!(compare, Compare::Absent { .. } | Compare::Value { .. }));
    let outcome = commit_if(&subject.store, bad, []).await;
    let failed = conflict(outcome, Revision(2));
    // Each is named, with what is there instead.
    assert_eq!(indexes(&failed), [0, 1, 2, 3, 4, 5]);
    for (compare, shows_value) in failed.iter().zip(shows_value) {
        let of_b = compare.index >= 4;
        assert_eq!(compare.found.is_none(), of_b, "{compare:?}");
        let Some(entry) = &compare.found else { continue };
        assert_eq!((entry.created, entry.modified), (Revision(1), Revision(2)), "{compare:?}");
        assert!(!shows_value || entry.value == "2", "{compare:?}");
    }
}

/// The compares that did not hold, of a transaction that met this revision.
fn conflict(outcome: CommitOutcome, at: Revision) -> Vec<FailedCompare> {
    match outcome {
        CommitOutcome::Conflict { revision, failed } if revision == at => failed,
        other @ (CommitOutcome::Committed(_) | CommitOutcome::Conflict { .. }) => {
            unreachable!("no conflict at {at}: {other:?}")
        }
    }
}

/// Their indexes.
pub(super) fn indexes(failed: &[FailedCompare]) -> Vec<usize> {
    failed.iter().map(|compare| compare.index).collect()
}

/// One compare of several fails: it is named, and no change is made.
pub async fn a_failed_compare_changes_nothing(make: impl AsyncFn() -> StoreUnderTest) {
    let subject = make().await;
    commit(&subject.store, [put("a", "1")]).await;
    let compares = [
        Compare::Value { key: "a".into(), value: "1".into() },
        Compare::Absent { key: "a".into() },
        Compare::Absent { key: "b".into() },
    ];
    let outcome = commit_if(&subject.store, compares, [put("a", "2"), put("b", "2")]).await;
    assert_eq!(indexes(&conflict(outcome, Revision(1))), [1]);
    assert_eq!(value(&subject.store, "a").await.as_deref(), Some("1"));
    assert_eq!(value(&subject.store, "b").await, None);
}

/// No operations, or only deletes of absent keys: the compares are answered, the revision stays.
pub async fn a_transaction_that_changes_nothing_is_no_commit(make: impl AsyncFn() -> StoreUnderTest) {
    let subject = make().await;
    assert_eq!(commit(&subject.store, []).await, Revision(0));
    assert_eq!(commit(&subject.store, [delete("a")]).await, Revision(0));
    assert_eq!(commit(&subject.store, [put("a", "1")]).await, Revision(1));
    assert_eq!(
        commit(&subject.store, [put("a", "1")]).await,
        Revision(2),
        "putting the same value is a change"
    );
}

/// A key that was deleted and put again has a new `created`.
pub async fn a_key_made_again_is_created_again(make: impl AsyncFn() -> StoreUnderTest) {
    let subject = make().await;
    commit(&subject.store, [put("a", "1")]).await;
    commit(&subject.store, [delete("a")]).await;
    commit(&subject.store, [put("a", "3")]).await;
    commit(&subject.store, [put("a", "4")]).await;
    let entry = subject.store.get("a".into()).await.unwrap().unwrap();
    assert_eq!((entry.created, entry.modified), (Revision(3), Revision(4)));
}
