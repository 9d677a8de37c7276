//! One watch stream at one member of etcd, and what can be learnt from opening one.

use bytes::Bytes;
use tokio::sync::mpsc;
use tonic::Streaming;

use super::api::generated::watch_client::WatchClient;
use super::api::generated::watch_request::RequestUnion;
use super::api::generated::{WatchCreateRequest, WatchRequest, WatchResponse};
use super::fault::CallFault;
use super::keyspace::{from_etcd, to_etcd};
use super::shared::{EtcdClient, led};
use crate::entry::Revision;
use crate::range::Range;

/// The largest message accepted: etcd splits commits into parts of some 2 MiB, but never a single value.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// An open stream.
pub(super) struct WatchStream {
    /// Which member it is at.
    pub(super) place: usize,
    pub(super) requests: mpsc::Sender<WatchRequest>,
    pub(super) answers: Streaming<WatchResponse>,
}

/// Opens a stream at the current member.
pub(super) async fn open(
    shared: &EtcdClient,
    range: &Range,
    after: Revision,
) -> Result<WatchStream, CallFault> {
    let (key, range_end) = shared.keys.range(range);
    // From the revision itself, which is skipped: etcd's compaction at a revision also removes deletes of that
    // revision, and only so does it answer "compacted".
    let create = WatchCreateRequest {
        key,
        range_end,
        start_revision: to_etcd(after),
        progress_notify: true,
        fragment: true,
        ..WatchCreateRequest::default()
    };
    let member = shared.endpoints.current();
    let (requests, queue) = mpsc::channel(4);
    let first = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let rest = futures_util::stream::unfold(queue, async |mut queue| Some((queue.recv().await?, queue)));
    let all = futures_util::StreamExt::chain(futures_util::stream::iter([first]), rest);
    // A member that has lost its leader ends the stream instead of keeping silent.
    let client = WatchClient::new(led(member.streams.clone()));
    let mut client = client.max_decoding_message_size(MAX_ANSWER_BYTES);
    let opened = tokio::time::timeout(shared.endpoints.deadline() / 2, client.watch(all)).await;
    let fault = match opened {
        Ok(Ok(answers)) => {
            return Ok(WatchStream { place: member.place, requests, answers: answers.into_inner() });
        }
        Ok(Err(status)) => CallFault::from(status),
        Err(_) => CallFault::silent(shared.endpoints.deadline() / 2),
    };
    shared.endpoints.move_on(member.place);
    Err(fault.at(&member.address))
}

/// The oldest revision that is kept, which etcd reports only to those who watch from before it.
pub(super) async fn oldest(shared: &EtcdClient) -> Result<Revision, CallFault> {
    let mut stream = open(shared, &Range::one(Bytes::new()), Revision(0)).await?;
    let answer = async {
        while let Some(answer) = stream.answers.message().await? {
            if answer.compact_revision > 0 {
                return Ok(from_etcd(answer.compact_revision));
            }
        }
        Err(CallFault::Lost("etcd did not say what it keeps".to_owned()))
    };
    let most = shared.endpoints.deadline();
    tokio::time::timeout(most, answer).await.unwrap_or_else(|_| Err(CallFault::silent(most)))
}
