//! Watches, each a stream of etcd's that is reopened when it dies. Ensures that nothing is delivered twice, left out or
//! split: what was delivered is skipped, and parts of one commit are joined.
//!
//! All streams of a store share one connection per member. What a caller does not read stays at etcd, by HTTP/2's own
//! flow control.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::api::generated::event::EventType;
use super::api::generated::watch_request::RequestUnion;
use super::api::generated::{Event, WatchProgressRequest, WatchRequest, WatchResponse};
use super::fault::CallFault;
use super::keyspace::{from_etcd, revision_of};
use super::read::check_kept;
use super::shared::EtcdClient;
use super::stream::{WatchStream, open};
use crate::entry::Revision;
use crate::error::StoreError;
use crate::range::Range;
use crate::watch::{Batch, Batches, Change, Watch, WatchError};

/// Pause before a stream is reopened.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a closed store's watches wait for commits that it made and that etcd has not delivered yet.
const FAREWELL: Duration = Duration::from_secs(1);

/// Watches `range` behind `after`.
pub(super) async fn start(
    shared: Arc<EtcdClient>,
    range: Range,
    after: Revision,
) -> Result<Watch, StoreError> {
    check_kept(&shared, Some(after)).await?;
    let mut follower = WatchFollower {
        range,
        seen: after,
        header: Revision(0),
        ready: VecDeque::new(),
        partial: None,
        stream: None,
        opening: None,
        over: None,
        patience: Instant::now(),
        state: SilenceTolerance::Calm,
        shared,
    };
    if !follower.range.is_empty() {
        let opened = open(&follower.shared, &follower.range, after).await;
        follower.stream = Some(opened.map_err(CallFault::unreachable)?);
        follower.heard();
    }
    Ok(Watch::new(follower))
}

/// What silence on the stream means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SilenceTolerance {
    /// Nothing yet.
    Calm,
    /// etcd was asked whether it is there and has what this store had seen of it by then.
    Asked(Revision),
    /// The store is closed: nothing more will come.
    Leaving,
}

impl SilenceTolerance {
    /// Whether an answer without events, at a revision, shows that nothing is missing. From a member that stays behind the
    /// others it does not: such a one would be listened to for ever, and never tell.
    fn accepts(self, header: Revision) -> bool {
        match self {
            Self::Calm | Self::Leaving => true,
            Self::Asked(seen) => header >= seen,
        }
    }
}

/// One watch.
struct WatchFollower {
    shared: Arc<EtcdClient>,
    range: Range,
    /// Every commit up to here is delivered or in `ready`.
    seen: Revision,
    /// The newest revision in an answer with events on this stream.
    header: Revision,
    ready: VecDeque<Batch>,
    /// A commit of which further parts may come.
    partial: Option<Batch>,
    stream: Option<WatchStream>,
    /// Persists across calls, so that a caller that waits in short steps makes progress.
    opening: Option<BoxFuture<'static, Result<WatchStream, WatchError>>>,
    over: Option<WatchError>,
    /// When silence has lasted too long.
    patience: Instant,
    state: SilenceTolerance,
}

impl fmt::Debug for WatchFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("range", &self.range)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl Batches for WatchFollower {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, WatchError>> {
        self.advance().boxed()
    }
}

impl WatchFollower {
    async fn advance(&mut self) -> Result<Batch, WatchError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(batch);
            }
            if let Some(over) = &self.over {
                return Err(over.clone());
            }
            if self.shared.closed.is_cancelled() && self.seen >= self.shared.newest_made() {
                return Err(WatchError::Closed);
            }
            if self.range.is_empty() {
                self.shared.closed.cancelled().await;
                return Err(WatchError::Closed);
            }
            if self.stream.is_none() {
                self.resume().await;
            } else {
                self.listen().await;
            }
        }
    }

    /// Waits for the next event on the stream.
    async fn listen(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let closed = self.shared.closed.clone();
        // Dropping any arm loses nothing: a message stays in the stream until it is taken. Messages come first, so
        // that silence is measured only after everything was read.
        tokio::select! {
            biased;
            answer = stream.answers.message() => match answer {
                Ok(Some(answer)) => self.take(answer),
                Ok(None) | Err(_) => self.lose(),
            },
            () = closed.cancelled(), if self.state != SilenceTolerance::Leaving => {
                self.state = SilenceTolerance::Leaving;
                self.patience = Instant::now() + FAREWELL;
            }
            () = tokio::time::sleep_until(self.patience) => self.doubt(),
        }
    }

    /// After silence: asks whether etcd is there, and then abandons the stream.
    fn doubt(&mut self) {
        match (self.state, &self.stream) {
            (SilenceTolerance::Calm, Some(stream)) => {
                let ask = RequestUnion::ProgressRequest(WatchProgressRequest {});
                // A full queue or a closed one is silence too.
                drop(stream.requests.try_send(WatchRequest { request_union: Some(ask) }));
                self.state = SilenceTolerance::Asked(self.shared.newest());
                self.patience = Instant::now() + self.shared.endpoints.deadline();
            }
            (SilenceTolerance::Leaving, _) => self.over = Some(WatchError::Closed),
            (SilenceTolerance::Asked(_), _) | (SilenceTolerance::Calm, None) => self.lose(),
        }
    }

    /// Something arrived.
    fn heard(&mut self) {
        if self.state != SilenceTolerance::Leaving {
            self.state = SilenceTolerance::Calm;
            self.patience = Instant::now() + self.shared.endpoints.deadline() * 2;
        }
    }

    /// Abandons the stream.
    fn lose(&mut self) {
        self.partial = None;
        if let Some(stream) = self.stream.take() {
            self.shared.endpoints.move_on(stream.place);
        }
    }

    /// Reopens a stream after what was seen. Ends when the store is closed.
    async fn resume(&mut self) {
        let opening = self
            .opening
            .get_or_insert_with(|| reopen(self.shared.clone(), self.range.clone(), self.seen).boxed());
        // Dropping the first arm keeps the future.
        let opened = tokio::select! {
            opened = opening => opened,
            () = self.shared.closed.cancelled() => Err(WatchError::Closed),
        };
        self.opening = None;
        match opened {
            Ok(stream) => {
                (self.stream, self.header) = (Some(stream), Revision(0));
                self.heard();
            }
            Err(error) => self.over = Some(error),
        }
    }

    fn take(&mut self, answer: WatchResponse) {
        let header = revision_of(answer.header);
        if !answer.events.is_empty() || self.state.accepts(header) {
            self.heard();
        }
        if answer.canceled {
            if answer.compact_revision > 0 {
                self.over = Some(WatchError::Compacted { oldest: from_etcd(answer.compact_revision) });
            } else {
                tracing::info!(reason = answer.cancel_reason, "etcd ended a watch; opening it again");
                self.lose();
            }
            return;
        }
        if answer.events.is_empty() {
            return;
        }
        // Answers without events overtake those with some, so only these are compared with each other.
        if header < self.header {
            self.over = Some(WatchError::WentBack { seen: self.header, found: header });
            return;
        }
        self.header = header;
        self.shared.saw(header);
        for event in answer.events {
            self.add(event);
            if self.stream.is_none() {
                return;
            }
        }
        if !answer.fragment {
            self.complete();
        }
    }

    fn add(&mut self, event: Event) {
        let is_delete = event.r#type() == EventType::Delete;
        let Some(kv) = event.kv else { return };
        let entry = self.shared.keys.entry(kv);
        let revision = entry.modified;
        if revision <= self.seen {
            return;
        }
        match self.partial.as_ref().map(|partial| partial.revision.cmp(&revision)) {
            Some(Ordering::Less) => self.complete(),
            // Out of order: what is between is missing. It is requested again.
            Some(Ordering::Greater) => return self.lose(),
            Some(Ordering::Equal) | None => {}
        }
        let change = Change { key: entry.key.clone(), entry: (!is_delete).then_some(entry), revision };
        self.partial.get_or_insert_with(|| Batch { revision, changes: Vec::new() }).changes.push(change);
    }

    /// The commit has no further parts.
    fn complete(&mut self) {
        if let Some(batch) = self.partial.take().filter(|batch| batch.revision > self.seen) {
            self.seen = batch.revision;
            self.ready.push_back(batch);
        }
    }
}

/// Reopens a stream, as often as it takes, unless what was not seen yet is compacted.
async fn reopen(shared: Arc<EtcdClient>, range: Range, seen: Revision) -> Result<WatchStream, WatchError> {
    loop {
        tokio::time::sleep(PAUSE).await;
        match check_kept(&shared, Some(seen)).await {
            Ok(_) => {}
            Err(StoreError::Unreachable { reason }) => {
                tracing::debug!(reason, "a watch waits for etcd");
                continue;
            }
            Err(StoreError::Future { current }) => return Err(WatchError::WentBack { seen, found: current }),
            Err(error) => return Err(error.into()),
        }
        match open(&shared, &range, seen).await {
            Ok(stream) => return Ok(stream),
            Err(fault) => tracing::debug!(reason = fault.reason(), "a watch waits for etcd"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_answers_but_stays_behind_is_as_good_as_silent() {
        let asked = SilenceTolerance::Asked(Revision(7));
        assert!(!asked.accepts(Revision(6)));
        assert!(asked.accepts(Revision(7)));
        assert!(SilenceTolerance::Calm.accepts(Revision(0)), "nothing was asked for");
    }
}
