//! Following the members of an etcd: those that it has now are used beside the configured ones, and remembered for the next start.
//!
//! A URL that a member tells of itself may mean another etcd from here, such as `http://localhost:2379`. So one is used only once that very
//! member of this very etcd has answered there, and none without TLS where all configured ones have it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tonic::Status;

use super::api::generated::cluster_client::ClusterClient;
use super::api::generated::{Member, MemberListRequest, RangeRequest};
use super::fault::CallFault;
use super::probe::status;
use super::remembered::Remembered;
use super::shared::{EtcdClient, kv, led};

/// Most URLs that are used: an etcd has seldom more than seven members, with two URLs each.
const MAX_LEARNT: usize = 32;

/// Follows the members until the store is closed: so often, and soon after one has failed. Once this has ended, it writes no file any more.
pub(super) async fn run(shared: Arc<EtcdClient>, every: Duration) {
    loop {
        let most = shared.endpoints.deadline() * 2;
        // Both arms only ask etcd.
        let learnt = tokio::select! {
            () = shared.closed.cancelled() => return,
            learnt = tokio::time::timeout(most, learn(&shared)) => learnt,
        };
        match learnt {
            Ok(Ok(learnt)) => shared.remember(&learnt).await,
            // The probe tells of an etcd that does not answer.
            Ok(Err(fault)) => tracing::debug!("cannot read the members of etcd: {}", fault.reason()),
            Err(_) => tracing::debug!("cannot read the members of etcd in time"),
        }
        // All arms only wait.
        tokio::select! {
            () = shared.closed.cancelled() => return,
            () = shared.failed.notified() => {
                tokio::select! {
                    () = shared.closed.cancelled() => return,
                    () = tokio::time::sleep(shared.endpoints.patience()) => {}
                }
            }
            () = tokio::time::sleep(every) => {}
        }
    }
}

/// Reads the members from a quorum, uses those that answer as such, and says what is to be remembered.
async fn learn(shared: &EtcdClient) -> Result<Remembered, CallFault> {
    let answer = shared.endpoints.repeat(|channel| async move {
        // A list of 3.4 is what the member itself has heard of: after a read from a quorum it is no older than that.
        let read = RangeRequest { key: vec![0].into(), count_only: true, ..RangeRequest::default() };
        kv(channel.clone()).range(read).await?;
        let listed = ClusterClient::new(led(channel)).member_list(MemberListRequest {}).await?.into_inner();
        if listed.members.is_empty() { Err(Status::unavailable("it named no members")) } else { Ok(listed) }
    });
    let listed = answer.await?;
    let of = listed.header.map(|header| header.cluster_id);
    let Some(cluster) = shared.cluster.get().copied().filter(|cluster| Some(*cluster) == of) else {
        return Err(CallFault::Refused("another etcd answered".to_owned()));
    };
    let voting = listed.members.iter().filter(|member| !member.is_learner);
    let urls = voting.flat_map(|member| member.client_ur_ls.iter().map(move |url| (member, url)));
    let urls = urls.filter(|(_, url)| shared.endpoints.permits(url)).take(MAX_LEARNT);
    let found = join_all(urls.map(|(member, url)| is_there(shared, cluster, (member, url)))).await;
    let learnt: Vec<String> = found.into_iter().flatten().collect();
    if learnt.is_empty() {
        return Err(CallFault::Refused("none of its members answers where it says that it is".to_owned()));
    }
    if shared.endpoints.learn(&learnt) {
        let all = shared.endpoints.addresses();
        tracing::info!(endpoints = all.join(", "), "the members of etcd are others now");
        shared.health.send_if_modified(|health| {
            let is_new = health.endpoints != all;
            health.endpoints = all;
            is_new
        });
    }
    Ok(Remembered { cluster, members: learnt })
}

/// The URL, if it is in use, or that member answers there.
async fn is_there(shared: &EtcdClient, cluster: u64, (listed, url): (&Member, &str)) -> Option<String> {
    let url = url.trim_end_matches('/');
    if shared.endpoints.has(url) {
        return Some(url.to_owned());
    }
    let member = shared.endpoints.candidate(url)?;
    let header = status(&member, shared.endpoints.patience()).await.ok()?.header?;
    (header.cluster_id == cluster && header.member_id == listed.id).then(|| url.to_owned())
}
