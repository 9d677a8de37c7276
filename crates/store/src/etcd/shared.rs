//! What all parts of one etcd store share: the members, the key space, what was learnt from answers.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataValue;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::api::generated::kv_client::KvClient;
use super::api::generated::{
    DeleteRangeRequest, DeleteRangeResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
};
use super::endpoints::Endpoints;
use super::fault::CallFault;
use super::keyspace::{Keyspace, revision_of};
use super::remembered::{self, Remembered};
use super::settings::EtcdSettings;
use crate::entry::Revision;
use crate::error::{OpenError, StoreError};
use crate::health::{Condition, Health};
use crate::limits::MAX_PAGE_BYTES;

/// The largest answer accepted, in bytes, twice a page: whoever requests more requests less then.
const MAX_ANSWER_BYTES: usize = 2 * MAX_PAGE_BYTES;

/// The largest answer of a transaction: 128 values of the largest size, as found under the keys it compared.
const MAX_OUTCOME_BYTES: usize = 256 << 20;

/// Entries requested before their size is known: 128 of the largest size are what etcd can assemble
/// without harm.
const FITTING_AT_FIRST: usize = 128;

#[derive(Debug)]
pub(super) struct EtcdClient {
    pub(super) endpoints: Endpoints,
    pub(super) keys: Keyspace,
    pub(super) health: watch::Sender<Health>,
    /// Id of the etcd, once a member has told it.
    pub(super) cluster: OnceLock<u64>,
    /// Notified when a member has failed.
    pub(super) failed: Notify,
    /// Where the members are remembered; `None` if they are not.
    remembers: Option<PathBuf>,
    /// Cancelled when the store is closed.
    pub(super) closed: CancellationToken,
    /// How many entries fitted an answer recently.
    pub(super) fitting: AtomicUsize,
    /// The newest revision in any answer.
    newest: AtomicU64,
    /// The newest revision that this store has made.
    made: AtomicU64,
}

impl EtcdClient {
    pub(super) async fn new(settings: &EtcdSettings, closed: CancellationToken) -> Result<Self, OpenError> {
        Ok(Self {
            endpoints: Endpoints::new(settings).await?,
            keys: Keyspace::new(settings.prefix.clone()),
            health: watch::Sender::new(Health::writable("etcd")),
            cluster: OnceLock::new(),
            failed: Notify::new(),
            remembers: settings.remembered.clone().filter(|_| settings.follow_every.is_some()),
            closed,
            fitting: AtomicUsize::new(FITTING_AT_FIRST),
            newest: AtomicU64::new(0),
            made: AtomicU64::new(0),
        })
    }

    /// Remembers the members for the next start. That it cannot is no reason to stop.
    pub(super) async fn remember(&self, remembered: &Remembered) {
        let Some(file) = &self.remembers else { return };
        if let Err(error) = remembered::write(file, self.endpoints.configured(), remembered).await {
            tracing::warn!(path = %file.display(), "cannot remember the members of etcd: {error}");
        }
    }

    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.is_cancelled() { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Reads one range, linearizably.
    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, CallFault> {
        let answer = self.endpoints.repeat(|channel| {
            let request = request.clone();
            async move { kv(channel).max_decoding_message_size(MAX_ANSWER_BYTES).range(request).await }
        });
        let answer = answer.await?.into_inner();
        self.saw(revision_of(answer.header));
        Ok(answer)
    }

    /// Sends a transaction, once.
    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, CallFault> {
        let answer = self.endpoints.once(|channel| {
            let request = request.clone();
            async move { kv(channel).txn(request).await }
        });
        Ok(answer.await?.into_inner())
    }

    /// Deletes a range, once.
    pub(super) async fn delete(&self, request: DeleteRangeRequest) -> Result<DeleteRangeResponse, CallFault> {
        let answer = self.endpoints.once(|channel| {
            let request = request.clone();
            async move { kv(channel).delete_range(request).await }
        });
        Ok(answer.await?.into_inner())
    }

    /// Records a revision reported by etcd.
    pub(super) fn saw(&self, revision: Revision) {
        self.newest.fetch_max(revision.0, Ordering::Relaxed);
    }

    /// The newest revision reported by etcd.
    pub(super) fn newest(&self) -> Revision {
        Revision(self.newest.load(Ordering::Relaxed))
    }

    /// Records a commit.
    pub(super) fn made(&self, revision: Revision) {
        self.saw(revision);
        self.made.fetch_max(revision.0, Ordering::Relaxed);
    }

    /// The newest commit of this store.
    pub(super) fn newest_made(&self) -> Revision {
        Revision(self.made.load(Ordering::Relaxed))
    }

    /// Publishes at once that a call met a full etcd. The probe reverts it.
    pub(super) fn is_full(&self) -> StoreError {
        self.health.send_if_modified(|health| {
            let was_writable = matches!(health.condition, Condition::Writable);
            if was_writable {
                health.condition = Condition::ReadOnly { reason: FULL.to_owned(), since: Instant::now() };
            }
            was_writable
        });
        StoreError::DiskFull { place: format!("etcd at {}", self.endpoints.addresses().join(", ")) }
    }
}

/// Why an etcd without space accepts no writes, and what to do.
pub(super) const FULL: &str = "etcd has reached its space quota (NOSPACE); compact and defragment it, then disarm the alarm with etcdctl";

/// A channel to a member that rejects requests at once while it knows no leader, instead of keeping them.
pub(super) type LeaderChannel = InterceptedService<Channel, fn(Request<()>) -> Result<Request<()>, Status>>;

/// Requires a leader, as etcd's own client does.
fn require_leader(mut request: Request<()>) -> Result<Request<()>, Status> {
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    Ok(request)
}

/// The channel to a member on which a leader is required.
pub(super) fn led(channel: Channel) -> LeaderChannel {
    InterceptedService::new(channel, require_leader)
}

/// The client of keys and values.
pub(super) fn kv(channel: Channel) -> KvClient<LeaderChannel> {
    KvClient::new(led(channel))
        .max_decoding_message_size(MAX_OUTCOME_BYTES)
        .max_encoding_message_size(usize::MAX)
}
