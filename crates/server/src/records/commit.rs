//! The only place that commits: proposals of operations and deciders, grouped into as few transactions as possible.
//!
//! A proposal is committed entirely or not at all. It has the revisions that it was decided on; if one has changed, the
//! proposal conflicts and the others of the group are committed. Events get their numbers in the same transaction.

mod gather;
mod proposal;
mod task;

use bellwether_core::words::counter::Revision;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;
use tokio::sync::{mpsc, oneshot};

use proposal::Reply;
pub use proposal::{CommitError, CommitPipeline, Fence, Proposal, ProposedEvent};
use task::CommitWriter;

use crate::metrics::durations::Durations;

/// Capacity of each queue of proposals; when it is full, callers wait.
const QUEUE: usize = 4_096;

/// A proposal whose result is pending.
#[derive(Debug)]
pub struct PendingCommit(oneshot::Receiver<Result<Revision, CommitError>>);

impl PendingCommit {
    /// Waits for the revision of the commit.
    ///
    /// # Errors
    /// [`CommitError`]; nothing was changed, unless the result [is unknown](CommitError::may_be_made).
    pub async fn done(self) -> Result<Revision, CommitError> {
        self.0.await.map_err(|_| CommitError::Closed)?
    }
}

/// Passes proposals to the one writer. Those of deciders and people take precedence over those of nodes, of which a whole
/// fleet may send some at once. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Committer {
    first: mpsc::Sender<(Proposal, Reply)>,
    nodes: mpsc::Sender<(Proposal, Reply)>,
}

impl Committer {
    /// Starts the writer.
    #[must_use]
    pub fn start(store: Store, clock: Clock, fence: Fence, tasks: &Tasks) -> Self {
        Self::start_measured(store, clock, fence, tasks, Durations::default())
    }

    /// Starts the writer, which counts how long the store takes for each transaction.
    #[must_use]
    pub fn start_measured(
        store: Store,
        clock: Clock,
        fence: Fence,
        tasks: &Tasks,
        durations: Durations,
    ) -> Self {
        let (first, of_first) = mpsc::channel(QUEUE);
        let (nodes, of_nodes) = mpsc::channel(QUEUE);
        let writer = CommitWriter::new(store, clock, fence, durations);
        tasks.spawn("commit", writer.run(of_first, of_nodes, tasks.token()));
        Self { first, nodes }
    }

    /// Commits a proposal durably and returns its revision. Once it is queued, it is processed even if the caller is
    /// dropped.
    ///
    /// # Errors
    /// [`CommitError`]; nothing was changed, unless the result [is unknown](CommitError::may_be_made).
    pub async fn commit(&self, proposal: Proposal) -> Result<Revision, CommitError> {
        self.propose(proposal).await?.done().await
    }

    /// Queues a proposal.
    ///
    /// # Errors
    /// [`CommitError::Closed`].
    pub async fn propose(&self, proposal: Proposal) -> Result<PendingCommit, CommitError> {
        let (reply, answer) = oneshot::channel();
        let queue = if proposal.actor.is_node() { &self.nodes } else { &self.first };
        queue.send((proposal, reply)).await.map_err(|_| CommitError::Closed)?;
        Ok(PendingCommit(answer))
    }
}

#[cfg(test)]
mod tests;
