//! Law: over any history, reopened wherever, the embedded store answers as the memory store does.

use std::collections::BTreeSet;

use bellwether_rt::tasks::Tasks;
use bellwether_store::conformance::soon;
use bellwether_store::{Compare, LeaseId, Op, Range, Revision, Store, Txn};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::whole::{one_story, state};

/// A lease's whole time: longer than any history runs.
const LONG: std::time::Duration = std::time::Duration::from_secs(3_600);

#[derive(Debug, Clone)]
enum Step {
    Commit(Txn),
    Grant,
    Revoke(LeaseId),
    Compact(u64),
    List { range: Range, at: u64, limit: usize },
    Reopen,
}

fn key() -> impl Strategy<Value = Bytes> {
    prop::sample::select(vec!["a", "a\0", "a/b", "a/c", "b", "\u{7f}"]).prop_map(Bytes::from)
}

fn value() -> impl Strategy<Value = Bytes> {
    prop_oneof![4 => vec(any::<u8>(), 0..4), 1 => vec(any::<u8>(), 5_000..9_000)].prop_map(Bytes::from)
}

fn revision() -> impl Strategy<Value = Revision> {
    (0..30_u64).prop_map(Revision)
}

fn lease() -> impl Strategy<Value = LeaseId> {
    (1..5_u64).prop_map(LeaseId)
}

fn compare() -> impl Strategy<Value = Compare> {
    prop_oneof![
        key().prop_map(|key| Compare::Absent { key }),
        (key(), revision()).prop_map(|(key, revision)| Compare::Modified { key, revision }),
        (key(), revision()).prop_map(|(key, revision)| Compare::Created { key, revision }),
        (key(), value()).prop_map(|(key, value)| Compare::Value { key, value }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let put = (key(), value(), prop::option::weighted(0.3, lease()));
    prop_oneof![
        3 => put.prop_map(|(key, value, lease)| Op::Put { key, value, lease }),
        1 => key().prop_map(|key| Op::Delete { key }),
    ]
}

fn txn() -> impl Strategy<Value = Txn> {
    let compares = prop_oneof![3 => Just(vec![]), 1 => vec(compare(), 1..3)];
    (compares, vec(op(), 0..4)).prop_map(|(compares, mut ops)| {
        let mut seen = BTreeSet::new();
        ops.retain(|op| {
            let (Op::Put { key, .. } | Op::Delete { key }) = op;
            seen.insert(key.clone())
        });
        Txn { compares, ops }
    })
}

fn range() -> impl Strategy<Value = Range> {
    prop_oneof![
        Just(Range::all()),
        key().prop_map(Range::prefix),
        (key(), key()).prop_map(|(start, end)| Range { start, end }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => txn().prop_map(Step::Commit),
        2 => Just(Step::Grant),
        1 => lease().prop_map(Step::Revoke),
        1 => (0..30_u64).prop_map(Step::Compact),
        4 => (range(), 0..40_u64, 1..6_usize).prop_map(|(range, at, limit)| Step::List { range, at, limit }),
        1 => Just(Step::Reopen),
    ]
}

/// Runs one history on both and compares every answer.
async fn agree(steps: Vec<Step>) {
    let (tasks, dir) = (Tasks::new(), tempfile::tempdir().unwrap());
    let memory = Store::memory(&tasks);
    let mut embedded = Store::embedded(dir.path(), &tasks).unwrap();
    for step in steps {
        match step {
            Step::Commit(txn) => assert_eq!(embedded.commit(txn.clone()).await, memory.commit(txn).await),
            Step::Grant => assert_eq!(embedded.grant(LONG).await, memory.grant(LONG).await),
            Step::Revoke(lease) => assert_eq!(embedded.revoke(lease).await, memory.revoke(lease).await),
            Step::Compact(before) => {
                let before = Revision(before);
                assert_eq!(embedded.compact(before).await, memory.compact(before).await);
            }
            Step::List { range, at, limit } => {
                // The upper numbers stand for "now".
                let at = Some(Revision(at)).filter(|at| at.0 < 30);
                assert_eq!(
                    embedded.list(range.clone(), at, limit).await,
                    memory.list(range, at, limit).await
                );
            }
            Step::Reopen => {
                embedded.close().await;
                embedded = Store::embedded(dir.path(), &tasks).unwrap();
            }
        }
    }
    assert_eq!(state(&embedded, None).await, state(&memory, None).await);
    assert_eq!(one_story(&embedded).await, one_story(&memory).await);
    embedded.close().await;
    memory.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_back_ends_answer_alike(steps in vec(step(), 1..50)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(soon(agree(steps)));
    }
}
