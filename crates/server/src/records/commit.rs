//! The one place that commits: proposals from operations and deciders, gathered into as few transactions as fit.
//!
//! Each proposal is whole or not at all. It carries the revisions it was decided on; if one has moved on, that proposal
//! conflicts and the others go through. Events get their numbers here, in the same transaction as their change.

mod gather;
mod task;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_api::shape::ShapeError;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::Key;
use bellwether_core::verdict::Write;
use bellwether_core::words::counter::{Revision, Term};
use bellwether_core::words::name::{Actor, Namespace};
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_store::{Store, StoreError};
use tokio::sync::{mpsc, oneshot};

/// Proposals of a kind that wait for the writer. When it is full, whoever proposes waits.
const QUEUE: usize = 4_096;

/// Something to be committed whole.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The namespace of the records and events.
    pub namespace: Namespace,
    /// Who wants it; events name them.
    pub actor: Actor,
    /// The leadership it was decided under, for deciders.
    pub term: Option<Term>,
    /// Records that were looked at and must not have changed since, each with its revision.
    pub seen: Vec<(Key, Revision)>,
    /// What changes, each with the revision it was decided on; zero for "it must not be there yet".
    pub writes: Vec<(Write, Revision)>,
    /// What is told about it.
    pub events: Vec<EventDraft>,
    /// The line it stands in, if it does.
    pub line: Option<CommitPipeline>,
}

/// Proposals that go through in the order in which they are handed over, and none after one that did not.
#[derive(Debug, Clone, Default)]
pub struct CommitPipeline(Arc<AtomicBool>);

impl CommitPipeline {
    fn is_broken(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn break_off(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Why a proposal was not committed. Nothing of it was, unless it [may be](Self::may_be_made).
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A record it was decided on has changed since.
    #[error("change it: somebody else changed it first")]
    Conflict,
    /// The leadership it was decided under is over.
    #[error("decide on: another server leads now")]
    LostTerm,
    /// It is larger than one transaction.
    #[error("commit so many changes at once")]
    TooLarge,
    /// A record has no stored form.
    #[error("write a record: could not {0}")]
    Shape(ShapeError),
    /// The store did not take it.
    #[error("{0}")]
    Store(StoreError),
    /// The server is stopping.
    #[error("commit it: the server is stopping")]
    Closed,
}

impl CommitError {
    /// Whether it may have been committed all the same.
    #[must_use]
    pub const fn may_be_made(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unknown { .. } | StoreError::Broken { .. }))
    }
}

type Reply = oneshot::Sender<Result<Revision, CommitError>>;

/// Proposals of a kind that wait for the writer.
type Queue = mpsc::Receiver<(Proposal, Reply)>;

/// A proposal on its way.
#[derive(Debug)]
pub struct PendingCommit(oneshot::Receiver<Result<Revision, CommitError>>);

impl PendingCommit {
    /// Waits for the revision that it got.
    ///
    /// # Errors
    /// [`CommitError`]; nothing was changed then, unless it [may be](CommitError::may_be_made).
    pub async fn done(self) -> Result<Revision, CommitError> {
        self.0.await.map_err(|_| CommitError::Closed)?
    }
}

/// How commits are kept from those who no longer lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// What terms are more than the revisions of this store.
    pub term_base: u64,
    /// Whether a decider's commit compares the leadership at all.
    pub compares: bool,
}

impl Default for Fence {
    fn default() -> Self {
        Self { term_base: 0, compares: true }
    }
}

/// Hands proposals to the one writer: what deciders and people want goes before what nodes tell, of which there may be a
/// fleet's worth at once. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Committer {
    first: mpsc::Sender<(Proposal, Reply)>,
    nodes: mpsc::Sender<(Proposal, Reply)>,
}

impl Committer {
    /// Starts the writer.
    #[must_use]
    pub fn start(store: Store, clock: Clock, fence: Fence, tasks: &Tasks) -> Self {
        let (first, of_first) = mpsc::channel(QUEUE);
        let (nodes, of_nodes) = mpsc::channel(QUEUE);
        tasks.spawn("commit", task::run(store, (clock, fence), (of_first, of_nodes), tasks.token()));
        Self { first, nodes }
    }

    /// Commits a proposal, durably, and answers the revision it got. Once handed over it is finished even if the caller
    /// stops waiting.
    ///
    /// # Errors
    /// [`CommitError`]; nothing was changed then, unless it [may be](CommitError::may_be_made).
    pub async fn commit(&self, proposal: Proposal) -> Result<Revision, CommitError> {
        self.propose(proposal).await?.done().await
    }

    /// Hands a proposal over, behind those of its kind that were before.
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
