//! Leases, kept by etcd. Owns the rounding of their times.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::stream;

use super::api::generated::lease_client::LeaseClient;
use super::api::generated::{LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest};
use super::fault::CallFault;
use super::keyspace::{lease_to_etcd, revision_of};
use super::shared::{EtcdClient, led};
use crate::entry::LeaseId;
use crate::error::StoreError;

/// Grants a lease of `ttl`, rounded up to whole seconds; etcd's minimum is about 2 s. A grant whose
/// answer is lost is repeated: the lost one ends by itself, with nothing bound to it.
pub(super) async fn grant(shared: &EtcdClient, ttl: Duration) -> Result<LeaseId, StoreError> {
    let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
    let request = LeaseGrantRequest { ttl: i64::try_from(seconds).unwrap_or(i64::MAX), id: 0 };
    let answer = shared
        .endpoints
        .repeat(|channel| async move { LeaseClient::new(led(channel)).lease_grant(request).await });
    match answer.await {
        Ok(answer) => match u64::try_from(answer.get_ref().id) {
            Ok(id) if id > 0 => Ok(LeaseId(id)),
            Ok(_) | Err(_) => {
                Err(CallFault::Refused("etcd granted a lease without a number".to_owned()).unreachable())
            }
        },
        Err(CallFault::NoSpace) => Err(shared.is_full()),
        Err(fault) => Err(fault.unreachable()),
    }
}

/// Renews a lease.
pub(super) async fn keep_alive(shared: &EtcdClient, lease: LeaseId) -> Result<(), StoreError> {
    let request = LeaseKeepAliveRequest { id: lease_to_etcd(lease) };
    let answer = shared.endpoints.repeat_each(shared.endpoints.patience(), |channel| async move {
        let mut client = LeaseClient::new(led(channel));
        let mut answers = client.lease_keep_alive(stream::iter([request])).await?.into_inner();
        let lost = || tonic::Status::unavailable("the renewal ended without a word");
        answers.message().await?.ok_or_else(lost)
    });
    match answer.await {
        Ok(answer) if answer.ttl > 0 => Ok(()),
        Ok(_) | Err(CallFault::LeaseGone) => Err(StoreError::LeaseGone),
        Err(fault) => Err(fault.unreachable()),
    }
}

/// Ends a lease.
pub(super) async fn revoke(shared: &EtcdClient, lease: LeaseId) -> Result<(), StoreError> {
    let request = LeaseRevokeRequest { id: lease_to_etcd(lease) };
    let asked = AtomicU32::new(0);
    let answer = shared.endpoints.repeat(|channel| {
        asked.fetch_add(1, Ordering::Relaxed);
        async move { LeaseClient::new(led(channel)).lease_revoke(request).await }
    });
    match answer.await {
        Ok(answer) => {
            shared.made(revision_of(answer.get_ref().header));
            Ok(())
        }
        // An earlier call, whose answer was lost, may have ended it.
        Err(CallFault::LeaseGone) if asked.into_inner() > 1 => Ok(()),
        Err(CallFault::LeaseGone) => Err(StoreError::LeaseGone),
        Err(CallFault::Lost(reason)) => Err(StoreError::Unknown { reason }),
        Err(fault) => Err(fault.unreachable()),
    }
}
