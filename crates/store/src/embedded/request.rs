//! Requests of callers to the writer, and their answers.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::entry::{LeaseId, Revision};
use crate::error::StoreError;
use crate::txn::{CommitOutcome, Txn};

/// Where one answer goes. The caller may be gone; the work is done all the same.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// One entry of the writer's queue.
#[derive(Debug)]
pub(super) enum WriterRequest {
    Commit {
        txn: Txn,
        reply: Reply<CommitOutcome>,
    },
    Grant {
        ttl: Duration,
        reply: Reply<LeaseId>,
    },
    Revoke {
        lease: LeaseId,
        reply: Reply<()>,
    },
    Compact {
        before: Revision,
        reply: Reply<()>,
    },
    /// Open the file again if it could not be opened after an earlier fault.
    Reopen {
        reply: Reply<()>,
    },
    /// Accept nothing more, finish what is queued, release the file.
    Stop,
}

/// The writer's answer, before it is durable.
#[derive(Debug)]
pub(super) enum WriterAnswer {
    Outcome(CommitOutcome),
    Lease(LeaseId),
    Done,
    No(StoreError),
}

impl WriterRequest {
    /// Bytes it adds to a group.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Commit { txn, .. } => txn.size(),
            Self::Grant { .. }
            | Self::Revoke { .. }
            | Self::Compact { .. }
            | Self::Reopen { .. }
            | Self::Stop => 0,
        }
    }

    /// Answers the caller.
    pub(super) fn settle(self, answer: WriterAnswer) {
        match (self, answer) {
            (request, WriterAnswer::No(error)) => request.refuse(error),
            (Self::Commit { reply, .. }, WriterAnswer::Outcome(outcome)) => send(reply, Ok(outcome)),
            (Self::Grant { reply, .. }, WriterAnswer::Lease(lease)) => send(reply, Ok(lease)),
            (
                Self::Revoke { reply, .. } | Self::Compact { reply, .. } | Self::Reopen { reply },
                WriterAnswer::Done,
            ) => send(reply, Ok(())),
            (Self::Stop, WriterAnswer::Done) => {}
            (request, WriterAnswer::Outcome(_) | WriterAnswer::Lease(_) | WriterAnswer::Done) => {
                request.refuse(StoreError::Broken { reason: "its writer mixed up answers".to_owned() });
            }
        }
    }

    /// Answers the caller with an error.
    pub(super) fn refuse(self, error: StoreError) {
        match self {
            Self::Commit { reply, .. } => send(reply, Err(error)),
            Self::Grant { reply, .. } => send(reply, Err(error)),
            Self::Revoke { reply, .. } | Self::Compact { reply, .. } | Self::Reopen { reply } => {
                send(reply, Err(error));
            }
            Self::Stop => {}
        }
    }
}

fn send<T>(reply: Reply<T>, answer: Result<T, StoreError>) {
    drop(reply.send(answer));
}
