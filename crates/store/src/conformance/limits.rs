//! Laws of what a store takes and refuses.

use std::time::Duration;

use bytes::Bytes;

use super::{StoreUnderTest, commit, delete, put};
use crate::{
    CommitOutcome, Compare, Limit, MAX_OPS, MAX_TXN_BYTES, Op, Range, Refusal, Revision, StoreError, Txn,
};

const HOUR: Duration = Duration::from_hours(1);

fn puts(count: usize) -> Vec<Op> {
    (0..count).map(|n| put(&format!("k{n}"), "v")).collect()
}

fn absences(count: usize) -> Vec<Compare> {
    (0..count).map(|n| Compare::Absent { key: format!("k{n}").into() }).collect()
}

fn large(bytes: usize) -> Op {
    Op::Put { key: "k".into(), value: Bytes::from(vec![1; bytes]), lease: None }
}

/// A transaction over a limit is refused with the limit and the numbers.
pub async fn what_is_too_large_is_named(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let refused = async |compares, ops| store.commit(Txn { compares, ops }).await.unwrap_err();
    let many = MAX_OPS + 1;
    let too = |limit, found, most| StoreError::TooLarge { limit, found, most };
    assert_eq!(refused(vec![], puts(many)).await, too(Limit::Ops, many, MAX_OPS));
    assert_eq!(refused(absences(many), vec![]).await, too(Limit::Compares, many, MAX_OPS));
    let error = refused(vec![], vec![large(MAX_TXN_BYTES)]).await;
    assert_eq!(error, too(Limit::Bytes, MAX_TXN_BYTES + 1, MAX_TXN_BYTES));
    let compare = Compare::Value { key: "k".into(), value: Bytes::from(vec![1; MAX_TXN_BYTES]) };
    assert_eq!(refused(vec![compare], vec![]).await, error);
    assert_eq!(error.to_string(), "commit 1048577 bytes in one transaction: the most is 1048576");
    assert_eq!(store.list(Range::all(), None, 1).await.unwrap().revision, Revision(0));
}

/// Empty keys, a key twice and empty pages are refused, and nothing is changed.
pub async fn what_makes_no_sense_is_refused(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let refused = async |compares, ops| store.commit(Txn { compares, ops }).await.unwrap_err();
    let empty = StoreError::Refused(Refusal::EmptyKey);
    assert_eq!(refused(vec![], vec![put("a", "1"), put("", "1")]).await, empty);
    assert_eq!(refused(vec![], vec![delete("")]).await, empty);
    assert_eq!(refused(vec![Compare::Absent { key: Bytes::new() }], vec![]).await, empty);
    assert_eq!(store.get(Bytes::new()).await.unwrap_err(), empty);
    let twice = StoreError::Refused(Refusal::KeyTwice { key: "a".into() });
    assert_eq!(refused(vec![], vec![put("a", "1"), delete("a")]).await, twice);
    let page = store.list(Range::all(), None, 0).await.unwrap_err();
    assert_eq!(page, StoreError::Refused(Refusal::EmptyPage));
    assert_eq!(store.list(Range::all(), None, 1).await.unwrap().revision, Revision(0));
}

/// What is exactly at the limits is taken whole.
pub async fn the_largest_transaction_is_taken(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let outcome = store.commit(Txn { compares: absences(MAX_OPS), ops: puts(MAX_OPS) }).await.unwrap();
    assert_eq!(outcome, CommitOutcome::Committed(Revision(1)));
    assert_eq!(commit(&store, [large(MAX_TXN_BYTES - 1)]).await, Revision(2));
    let entry = store.get("k".into()).await.unwrap().unwrap();
    assert_eq!(entry.value.len(), MAX_TXN_BYTES - 1);
}

/// A closed store answers "closed", never "absent".
pub async fn a_closed_store_says_so(make: impl AsyncFn() -> StoreUnderTest) {
    let StoreUnderTest { store, keep: _keep } = make().await;
    let lease = store.grant(HOUR).await.unwrap();
    commit(&store, [put("a", "1")]).await;
    store.close().await;
    store.close().await;
    assert_eq!(store.get("a".into()).await, Err(StoreError::Closed));
    assert_eq!(store.list(Range::all(), None, 1).await, Err(StoreError::Closed));
    assert_eq!(store.commit(Txn { compares: vec![], ops: puts(1) }).await, Err(StoreError::Closed));
    assert_eq!(store.watch(Range::all(), Revision(0)).await.unwrap_err(), StoreError::Closed);
    assert_eq!(store.grant(HOUR).await, Err(StoreError::Closed));
    assert_eq!(store.keep_alive(lease).await, Err(StoreError::Closed));
    assert_eq!(store.revoke(lease).await, Err(StoreError::Closed));
    assert_eq!(store.compact(Revision(1)).await, Err(StoreError::Closed));
}
