//! Laws of leases. Their times are short so that ends come; nothing asserts how soon.

use std::time::Duration;

use super::{StoreUnderTest, changes_of, commit, commit_if, next, put, value};
use crate::{CommitOutcome, LeaseId, MAX_TTL, Op, Range, Refusal, Revision, Store, StoreError, Txn};

const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3_600);

fn bound(key: &str, lease: LeaseId) -> Op {
    Op::Put { key: key.to_owned().into(), value: "held".into(), lease: Some(lease) }
}

async fn put_bound(store: &Store, key: &str, lease: LeaseId) -> Result<CommitOutcome, StoreError> {
    store.commit(Txn { compares: vec![], ops: vec![bound(key, lease)] }).await
}

/// All keys of a lease that ran out go in one commit; a lease that is kept alive stays.
pub async fn a_lease_that_is_not_kept_alive_deletes_its_keys_at_once(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let (kept, left) = (store.grant(LONG).await.unwrap(), store.grant(SHORT).await.unwrap());
    commit(&store, [bound("left/1", left), bound("left/2", left), bound("kept", kept), put("free", "1")])
        .await;
    let mut watch = store.watch(Range::all(), Revision(1)).await.unwrap();
    store.keep_alive(kept).await.unwrap();
    let batch = next(&mut watch).await.unwrap();
    assert_eq!(
        (batch.revision, changes_of(&batch)),
        (Revision(2), vec!["-left/1".to_owned(), "-left/2".to_owned()])
    );
    assert_eq!(store.keep_alive(left).await, Err(StoreError::LeaseGone));
    assert_eq!(value(&store, "kept").await.as_deref(), Some("held"));
    assert_eq!(value(&store, "free").await.as_deref(), Some("1"));
}

/// Revoking deletes every key of the lease in one commit, more than a transaction could.
pub async fn a_revoked_lease_deletes_its_keys_at_once(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let lease = store.grant(LONG).await.unwrap();
    for round in 0..3 {
        let ops: Vec<_> = (0..100).map(|n| bound(&format!("{round}/{n:02}"), lease)).collect();
        commit(&store, ops).await;
    }
    store.revoke(lease).await.unwrap();
    let page = store.list(Range::all(), None, 10).await.unwrap();
    assert_eq!((page.revision, page.entries.len()), (Revision(4), 0));
    let empty = store.grant(LONG).await.unwrap();
    store.revoke(empty).await.unwrap();
    assert_eq!(
        commit(&store, [put("a", "1")]).await,
        Revision(5),
        "a lease without keys ends without a commit"
    );
}

/// A lease that has ended, or never was, can be used for nothing; the refusal changes nothing.
pub async fn an_ended_lease_is_gone(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let lease = store.grant(LONG).await.unwrap();
    store.revoke(lease).await.unwrap();
    for gone in [lease, LeaseId(987_654_321)] {
        assert_eq!(store.revoke(gone).await, Err(StoreError::LeaseGone));
        assert_eq!(store.keep_alive(gone).await, Err(StoreError::LeaseGone));
        assert_eq!(put_bound(&store, "a", gone).await, Err(StoreError::LeaseGone));
    }
    assert_eq!(value(&store, "a").await, None);
    assert_ne!(store.grant(LONG).await.unwrap(), lease);
}

/// The last put of a key says which lease it is bound to.
pub async fn a_put_decides_the_binding_of_its_key(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let (first, second) = (store.grant(LONG).await.unwrap(), store.grant(LONG).await.unwrap());
    commit(&store, [bound("freed", first), bound("moved", first), bound("stays", first)]).await;
    commit(&store, [put("freed", "1"), bound("moved", second)]).await;
    assert_eq!(store.get("moved".into()).await.unwrap().and_then(|entry| entry.lease), Some(second));
    store.revoke(first).await.unwrap();
    assert_eq!(value(&store, "stays").await, None);
    assert_eq!(value(&store, "freed").await.as_deref(), Some("1"));
    assert_eq!(value(&store, "moved").await.as_deref(), Some("held"));
    store.revoke(second).await.unwrap();
    assert_eq!(value(&store, "moved").await, None);
    let again = commit_if(&store, [], [put("stays", "2")]).await;
    assert_eq!(again, CommitOutcome::Committed(Revision(5)));
}

/// A lease of no time, or of more than can be meant, is refused.
pub async fn a_lease_time_has_limits(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    for ttl in [Duration::ZERO, MAX_TTL + Duration::from_secs(1), Duration::MAX] {
        assert_eq!(store.grant(ttl).await, Err(StoreError::Refused(Refusal::Ttl { ttl })));
    }
}
