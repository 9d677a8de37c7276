//! Compare-and-commit as one transaction of etcd, sent once.

use std::collections::BTreeMap;

use bellwether_rt::fail::{self, FailPoint};
use bytes::Bytes;

use super::api::generated::compare::{CompareResult, CompareTarget, TargetUnion};
use super::api::generated::request_op::Request;
use super::api::generated::response_op::Response;
use super::api::generated::{
    Compare as Condition, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest, TxnResponse,
};
use super::fault::CallFault;
use super::keyspace::{Keyspace, compared, lease_to_etcd, revision_of};
use super::read;
use super::shared::EtcdClient;
use crate::entry::{Entry, Revision};
use crate::error::{Limit, StoreError};
use crate::judge::holds;
use crate::limits::MAX_TXN_BYTES;
use crate::range::Range;
use crate::txn::{CommitOutcome, Compare, FailedCompare, Op, Txn};

/// Commits `txn`.
pub(super) async fn commit(shared: &EtcdClient, txn: &Txn) -> Result<CommitOutcome, StoreError> {
    let (request, before) = (request(&shared.keys, txn), shared.newest());
    fail::pass(FailPoint::EtcdUnsent);
    match shared.txn(request).await {
        Ok(answer) => {
            fail::pass(FailPoint::EtcdAnswered);
            Ok(outcome(shared, txn, answer))
        }
        Err(CallFault::NoSpace) => match lone_delete(txn) {
            Some(key) => delete(shared, txn, key).await,
            None => Err(full(shared, txn, before).await),
        },
        Err(fault) => Err(refused(shared, txn, fault)),
    }
}

/// The key of a transaction that only deletes it, whatever is under it.
fn lone_delete(txn: &Txn) -> Option<&Bytes> {
    match (txn.compares.as_slice(), txn.ops.as_slice()) {
        ([], [Op::Delete { key }]) => Some(key),
        (_, _) => None,
    }
}

/// Deletes a key without a transaction: etcd before 3.4.20 and 3.5.0 to 3.5.6 refuse every transaction while they have no
/// space, also one that makes room.
async fn delete(shared: &EtcdClient, txn: &Txn, key: &Bytes) -> Result<CommitOutcome, StoreError> {
    let request = DeleteRangeRequest { key: shared.keys.key(key), ..DeleteRangeRequest::default() };
    match shared.delete(request).await {
        Ok(answer) => {
            let revision = revision_of(answer.header);
            shared.made(revision);
            Ok(CommitOutcome::Committed(revision))
        }
        Err(fault) => Err(refused(shared, txn, fault)),
    }
}

/// The error for who sent `txn`.
fn refused(shared: &EtcdClient, txn: &Txn, fault: CallFault) -> StoreError {
    match fault {
        CallFault::LeaseGone => StoreError::LeaseGone,
        CallFault::NoSpace => shared.is_full(),
        CallFault::RequestTooLarge => {
            StoreError::TooLarge { limit: Limit::Bytes, found: txn.size(), most: MAX_TXN_BYTES }
        }
        // A transaction that writes nothing leaves nothing open.
        CallFault::Lost(reason) if txn.ops.is_empty() => StoreError::Unreachable { reason },
        CallFault::Lost(reason) => StoreError::Unknown { reason },
        fault @ (CallFault::NotBegun(_)
        | CallFault::NoLeader
        | CallFault::Compacted
        | CallFault::Future
        | CallFault::AnswerTooLarge
        | CallFault::Refused(_)) => fault.unreachable(),
    }
}

/// The transaction in etcd's form. If a compare fails it answers what is under the compared keys instead.
fn request(keys: &Keyspace, txn: &Txn) -> TxnRequest {
    let look = compared_keys(txn).into_iter().map(|(key, is_value)| {
        let look = RangeRequest { key: keys.key(key), keys_only: !is_value, ..RangeRequest::default() };
        RequestOp { request: Some(Request::RequestRange(look)) }
    });
    TxnRequest {
        compare: txn.compares.iter().map(|compare| condition(keys, compare)).collect(),
        success: txn.ops.iter().map(|op| change(keys, op)).collect(),
        failure: look.collect(),
    }
}

/// The keys that are compared, and whether by value.
fn compared_keys(txn: &Txn) -> BTreeMap<&Bytes, bool> {
    let mut keys = BTreeMap::new();
    for compare in &txn.compares {
        let needs_value = matches!(compare, Compare::Value { .. } | Compare::Absent { .. });
        *keys.entry(compare.key()).or_default() |= needs_value;
    }
    keys
}

fn condition(keys: &Keyspace, compare: &Compare) -> Condition {
    let (target, union) = match compare {
        Compare::Absent { .. } => (CompareTarget::Create, TargetUnion::CreateRevision(0)),
        Compare::Modified { revision, .. } => {
            (CompareTarget::Mod, TargetUnion::ModRevision(compared(*revision)))
        }
        Compare::Created { revision, .. } => {
            (CompareTarget::Create, TargetUnion::CreateRevision(compared(*revision)))
        }
        Compare::Value { value, .. } => (CompareTarget::Value, TargetUnion::Value(value.clone())),
    };
    Condition {
        result: CompareResult::Equal.into(),
        target: target.into(),
        key: keys.key(compare.key()),
        target_union: Some(union),
    }
}

fn change(keys: &Keyspace, op: &Op) -> RequestOp {
    let request = match op {
        Op::Put { key, value, lease } => Request::RequestPut(PutRequest {
            key: keys.key(key),
            value: value.clone(),
            lease: lease.map_or(0, lease_to_etcd),
        }),
        Op::Delete { key } => Request::RequestDeleteRange(DeleteRangeRequest {
            key: keys.key(key),
            ..DeleteRangeRequest::default()
        }),
    };
    RequestOp { request: Some(request) }
}

fn outcome(shared: &EtcdClient, txn: &Txn, answer: TxnResponse) -> CommitOutcome {
    let revision = revision_of(answer.header);
    if answer.succeeded {
        shared.made(revision);
        return CommitOutcome::Committed(revision);
    }
    shared.saw(revision);
    let found = answer.responses.into_iter().map(|response| match response.response {
        Some(Response::ResponseRange(range)) => range.kvs.into_iter().next().map(|kv| shared.keys.entry(kv)),
        Some(Response::ResponsePut(_) | Response::ResponseDeleteRange(_)) | None => None,
    });
    let found: BTreeMap<&Bytes, Option<Entry>> = compared_keys(txn).into_keys().zip(found).collect();
    let failed = txn.compares.iter().enumerate().filter_map(|(index, compare)| {
        let found = found.get(compare.key()).and_then(Option::as_ref);
        (!holds(compare, found)).then(|| FailedCompare { index, found: found.cloned() })
    });
    CommitOutcome::Conflict { revision, failed: failed.collect() }
}

/// The answer when there is no space. etcd also answers so to the very transaction that reached the quota, and which it
/// made: so the first put is looked up.
async fn full(shared: &EtcdClient, txn: &Txn, before: Revision) -> StoreError {
    let full = shared.is_full();
    let put = txn.ops.iter().find_map(|op| match op {
        Op::Put { key, value, .. } => Some((key, value)),
        Op::Delete { .. } => None,
    });
    let Some((key, value)) = put else { return full };
    match read::list(shared, Range::one(key.clone()), None, 1).await.map(|page| page.entries) {
        Ok(found) if found.iter().any(|entry| entry.modified > before && entry.value == value) => {
            StoreError::Unknown { reason: "etcd reached its space quota with it".to_owned() }
        }
        Ok(_) => full,
        Err(_) => StoreError::Unknown { reason: "etcd reached its space quota and fell silent".to_owned() },
    }
}
