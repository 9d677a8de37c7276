//! Reading pages: linearizable, in calls of bounded size, joined to what the contract calls a page.

use std::sync::atomic::Ordering;

use super::api::generated::{RangeRequest, RangeResponse};
use super::fault::CallFault;
use super::keyspace::{revision_of, to_etcd};
use super::shared::EtcdClient;
use super::stream::oldest;
use crate::entry::{Keys, Page, Revision};
use crate::error::StoreError;
use crate::limits::{MAX_PAGE, MAX_PAGE_BYTES};
use crate::range::Range;

/// Most entries of one call: larger calls delay etcd's other work.
const MAX_CALL: usize = 1_000;

/// Reads a page.
pub(super) async fn list(
    shared: &EtcdClient,
    range: Range,
    at: Option<Revision>,
    limit: usize,
) -> Result<Page, StoreError> {
    if range.is_empty() {
        let revision = check_kept(shared, at).await?;
        return Ok(Page { entries: Vec::new(), revision, more: false });
    }
    let (limit, mut rest, mut pinned) = (limit.min(MAX_PAGE), range, at);
    let mut page = Page { entries: Vec::new(), revision: at.unwrap_or_default(), more: false };
    let mut bytes = 0_usize;
    loop {
        let answer = part(shared, &rest, pinned, limit.saturating_sub(page.entries.len())).await?;
        if pinned.is_none() {
            page.revision = revision_of(answer.header);
            pinned = Some(page.revision);
        }
        for found in answer.kvs {
            if bytes >= MAX_PAGE_BYTES {
                page.more = true;
                return Ok(page);
            }
            let entry = shared.keys.entry(found);
            bytes = bytes.saturating_add(entry.size());
            rest = rest.after(&entry.key);
            page.entries.push(entry);
        }
        page.more = answer.more;
        if !answer.more || page.entries.len() >= limit || bytes >= MAX_PAGE_BYTES {
            return Ok(page);
        }
    }
}

/// Reads a page of keys in one call: without values, the most that a page may hold are no more work for etcd than some
/// entries. Fewer if that is more than fits an answer.
pub(super) async fn keys(
    shared: &EtcdClient,
    range: Range,
    at: Option<Revision>,
    limit: usize,
) -> Result<Keys, StoreError> {
    if range.is_empty() {
        return list(shared, range, at, limit).await.map(Keys::from);
    }
    let (key, range_end) = shared.keys.range(&range);
    let mut asked = limit.min(MAX_PAGE);
    loop {
        let request = RangeRequest {
            key: key.clone(),
            range_end: range_end.clone(),
            limit: i64::try_from(asked).unwrap_or(i64::MAX),
            revision: at.map_or(0, to_etcd),
            keys_only: true,
            ..RangeRequest::default()
        };
        match shared.range(request).await {
            Ok(answer) => {
                let revision = at.unwrap_or_else(|| revision_of(answer.header));
                let found = answer.kvs.into_iter().map(|found| shared.keys.entry(found));
                let keys = found.map(|entry| (entry.key, entry.modified)).collect();
                return Ok(Keys { keys, revision, more: answer.more });
            }
            Err(CallFault::AnswerTooLarge) if asked > 1 => asked = asked.div_ceil(4),
            Err(fault) => return Err(misread(shared, fault).await),
        }
    }
}

/// One call, of as many entries as fit an answer.
async fn part(
    shared: &EtcdClient,
    range: &Range,
    at: Option<Revision>,
    limit: usize,
) -> Result<RangeResponse, StoreError> {
    let (key, range_end) = shared.keys.range(range);
    loop {
        let fitting = shared.fitting.load(Ordering::Relaxed);
        let asked = limit.min(fitting).min(MAX_CALL);
        let request = RangeRequest {
            key: key.clone(),
            range_end: range_end.clone(),
            limit: i64::try_from(asked).unwrap_or(i64::MAX),
            revision: at.map_or(0, to_etcd),
            ..RangeRequest::default()
        };
        match shared.range(request).await {
            Ok(answer) => {
                let bytes: usize = answer.kvs.iter().map(|found| found.value.len()).sum();
                if answer.kvs.len() == fitting && bytes < MAX_PAGE_BYTES / 4 {
                    let more = fitting.saturating_mul(2).min(MAX_CALL);
                    shared.fitting.store(more, Ordering::Relaxed);
                }
                return Ok(answer);
            }
            Err(CallFault::AnswerTooLarge) if asked > 1 => {
                shared.fitting.store(asked.div_ceil(4), Ordering::Relaxed);
            }
            Err(fault) => return Err(misread(shared, fault).await),
        }
    }
}

/// Whether a revision, or the current one, can be read and watched from; returns it.
pub(super) async fn check_kept(shared: &EtcdClient, at: Option<Revision>) -> Result<Revision, StoreError> {
    let request = RangeRequest {
        key: shared.keys.key(&[]),
        revision: at.map_or(0, to_etcd),
        count_only: true,
        ..RangeRequest::default()
    };
    match shared.range(request).await {
        Ok(answer) => Ok(at.unwrap_or_else(|| revision_of(answer.header))),
        Err(fault) => Err(misread(shared, fault).await),
    }
}

/// The error for the caller of a read, with the revisions that exist if those were the reason.
pub(super) async fn misread(shared: &EtcdClient, fault: CallFault) -> StoreError {
    match fault {
        CallFault::Compacted => match oldest(shared).await {
            Ok(oldest) => StoreError::Compacted { oldest },
            Err(fault) => fault.unreachable(),
        },
        CallFault::Future => {
            let present =
                RangeRequest { key: shared.keys.key(&[]), count_only: true, ..RangeRequest::default() };
            match shared.range(present).await {
                Ok(answer) => StoreError::Future { current: revision_of(answer.header) },
                Err(fault) => fault.unreachable(),
            }
        }
        CallFault::NotBegun(_)
        | CallFault::NoLeader
        | CallFault::Lost(_)
        | CallFault::NoSpace
        | CallFault::LeaseGone
        | CallFault::RequestTooLarge
        | CallFault::AnswerTooLarge
        | CallFault::Refused(_) => fault.unreachable(),
    }
}
