//! Compacting etcd's history on our own schedule. Owns who does it: whoever increments a shared key.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::time::Instant;

use super::api::generated::compare::{CompareResult, CompareTarget, TargetUnion};
use super::api::generated::request_op::Request;
use super::api::generated::response_op::Response;
use super::api::generated::{
    CompactionRequest, Compare, PutRequest, RangeRequest, RequestOp, TxnRequest, TxnResponse,
};
use super::fault::CallFault;
use super::keyspace::{revision_of, to_etcd};
use super::read::misread;
use super::settings::{COMPACTION_KEY, Compaction};
use super::shared::{EtcdClient, kv};
use crate::entry::Revision;
use crate::error::StoreError;

/// Compacts history below `before`. It is no error if that was done already.
pub(super) async fn compact(shared: &EtcdClient, before: Revision) -> Result<(), StoreError> {
    let request = CompactionRequest { revision: to_etcd(before), physical: false };
    let answer = shared.endpoints.repeat(|channel| async move { kv(channel).compact(request).await });
    match answer.await {
        Ok(_) | Err(CallFault::Compacted) => Ok(()),
        Err(fault) => Err(misread(shared, fault).await),
    }
}

/// Compacts history by the schedule until the store is closed. Every server runs this; in each period one of them, the first
/// to increment the key from the value it knew, compacts.
pub(super) async fn run(shared: std::sync::Arc<EtcdClient>, schedule: Compaction) {
    let mut known = 0;
    let mut past: VecDeque<(Instant, Revision)> = VecDeque::new();
    loop {
        // Both arms only wait.
        tokio::select! {
            () = shared.closed.cancelled() => return,
            () = tokio::time::sleep(schedule.every) => {}
        }
        let target = target(&mut past, schedule);
        let is_ours = match take_turn(&shared, known, target).await {
            Ok(turn) => {
                known = turn.count;
                past.push_back((Instant::now(), turn.revision));
                turn.is_ours
            }
            // Without space nobody can increment the key, and compacting, which is harmless when several do it, frees some.
            Err(CallFault::NoSpace) => true,
            Err(fault) => {
                tracing::warn!("cannot agree on who compacts etcd: {}", fault.reason());
                false
            }
        };
        if let Some(before) = target.filter(|_| is_ours) {
            match compact(&shared, before).await {
                Ok(()) => tracing::debug!(%before, "compacted etcd"),
                Err(error) => tracing::warn!("cannot compact etcd: {error}"),
            }
        }
    }
}

/// The newest revision that is old enough; forgets those before it.
fn target(past: &mut VecDeque<(Instant, Revision)>, schedule: Compaction) -> Option<Revision> {
    let is_old = |(when, _): &(Instant, Revision)| when.elapsed() >= schedule.keep;
    while past.get(1).is_some_and(is_old) {
        past.pop_front();
    }
    past.front().filter(|first| is_old(first)).map(|(_, revision)| *revision)
}

/// The result of asking for this period's turn.
struct CompactionTurn {
    is_ours: bool,
    /// Value of the key.
    count: i64,
    /// The current revision.
    revision: Revision,
}

async fn take_turn(
    shared: &EtcdClient,
    known: i64,
    target: Option<Revision>,
) -> Result<CompactionTurn, CallFault> {
    let key = Bytes::from_static(COMPACTION_KEY.as_bytes());
    let value = target.unwrap_or_default().to_string().into();
    let put = Request::RequestPut(PutRequest { key: key.clone(), value, lease: 0 });
    let look = Request::RequestRange(RangeRequest { key: key.clone(), ..RangeRequest::default() });
    let is_known = Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Version.into(),
        key,
        target_union: Some(TargetUnion::Version(known)),
    };
    let request = TxnRequest {
        compare: vec![is_known],
        success: vec![RequestOp { request: Some(put) }],
        failure: vec![RequestOp { request: Some(look) }],
    };
    let answer = shared.txn(request).await?;
    let revision = revision_of(answer.header);
    let is_ours = answer.succeeded;
    let count = if is_ours { known.saturating_add(1) } else { version(answer) };
    Ok(CompactionTurn { is_ours, count, revision })
}

/// Value of the key in the answer.
fn version(answer: TxnResponse) -> i64 {
    let found = answer.responses.into_iter().find_map(|response| match response.response? {
        Response::ResponseRange(range) => range.kvs.into_iter().next(),
        Response::ResponsePut(_) | Response::ResponseDeleteRange(_) => None,
    });
    found.map_or(0, |found| found.version)
}
