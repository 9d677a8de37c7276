//! Proposals for the writer, and why one is not committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_api::shape::ShapeError;
use bellwether_core::decide::causes::causes;
use bellwether_core::records::event::{CausedBy, EventDraft};
use bellwether_core::records::key::AnyKey;
use bellwether_core::verdict::Write;
use bellwether_core::words::counter::{Revision, Term};
use bellwether_core::words::name::{Actor, Namespace};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_store::StoreError;
use tokio::sync::{mpsc, oneshot};

/// Changes that are committed together.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The namespace of the records and events.
    pub namespace: Namespace,
    /// Who proposes it: a node, or one of those who go first.
    pub actor: Actor,
    /// The term it was decided in, for deciders.
    pub term: Option<Term>,
    /// Records that must be unchanged, each with the revision that was read.
    pub seen: Vec<(AnyKey, Revision)>,
    /// Writes, each with the revision of the record that was read; zero if it must be absent.
    pub writes: Vec<(Write, Revision)>,
    /// The events of the change.
    pub events: Vec<ProposedEvent>,
    /// The pipeline that it is part of.
    pub line: Option<CommitPipeline>,
}

/// An event that is written with a proposal.
#[derive(Debug, Clone)]
pub struct ProposedEvent {
    /// Who caused it.
    pub actor: Actor,
    /// The event without its number.
    pub draft: EventDraft,
    /// Which event led to it, as far as that is known.
    pub caused_by: Option<CausedBy>,
}

impl ProposedEvent {
    /// Events that are written with these writes, decided on `world`.
    #[must_use]
    pub fn all(
        world: &World,
        namespace: &Namespace,
        events: Vec<(Actor, EventDraft)>,
        writes: &[(Write, Revision)],
    ) -> Vec<Self> {
        let none = Fleet::default();
        let fleet = world.fleets.get(namespace).unwrap_or(&none);
        let causes = causes(fleet, &events, writes.iter().map(|(write, _)| write));
        let all = events.into_iter().zip(causes);
        all.map(|((actor, draft), caused_by)| Self { actor, draft, caused_by }).collect()
    }
}

/// Proposals that are committed in order, and none after the first that fails.
#[derive(Debug, Clone, Default)]
pub struct CommitPipeline(Arc<AtomicBool>);

impl CommitPipeline {
    pub(super) fn is_broken(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn abort(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Why a proposal was not committed. Nothing was changed, unless the result [is unknown](Self::may_be_made).
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A record that it was decided on has changed.
    #[error("the record was changed concurrently")]
    Conflict {
        /// Revision of the change that was first, if it is known: zero if the record is gone.
        at: Revision,
    },
    /// The term that it was decided in is over.
    #[error("another server is the leader now")]
    LostTerm,
    /// Its actor is a node, which has used its quota of changes.
    #[error("the node changes more than a node may")]
    NodeQuota {
        /// When to try again, in milliseconds.
        retry_after_ms: u64,
    },
    /// It exceeds the limits of a transaction.
    #[error("cannot commit so many changes in one transaction")]
    TooLarge,
    /// A record cannot be encoded.
    #[error("cannot encode a record: {0}")]
    Shape(ShapeError),
    /// The store failed.
    #[error("cannot {0}")]
    Store(StoreError),
    /// The server is stopping.
    #[error("the server is stopping")]
    Closed,
}

impl CommitError {
    /// Whether it is about this proposal alone: another one may be committed.
    #[must_use]
    pub const fn is_its_own(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::NodeQuota { .. } | Self::TooLarge | Self::Shape(_))
    }

    /// Whether the result is unknown: it may have been committed.
    #[must_use]
    pub const fn may_be_made(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unknown { .. } | StoreError::Broken { .. }))
    }
}

/// How commits of former leaders are prevented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// Difference between a term and the revision at which the leadership was acquired.
    pub term_base: u64,
    /// Whether a decider's commit compares the leadership key.
    pub compares: bool,
}

impl Default for Fence {
    fn default() -> Self {
        Self { term_base: 0, compares: true }
    }
}

pub(super) type Reply = oneshot::Sender<Result<Revision, CommitError>>;

/// A queue of proposals.
pub(super) type Queue = mpsc::Receiver<(Proposal, Reply)>;
