//! Why etcd gave no answer, distinguished by what that means for the requested change.

use std::error::Error;
use std::time::Duration;

use tonic::{Code, ConnectError, Status};

use crate::error::StoreError;

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallFault {
    /// It did not reach etcd, or etcd rejected it before it began: nothing was made. Another member may accept it.
    NotBegun(String),
    /// The member knows no leader, and rejected it before it began. Another may know one, or one will be elected.
    NoLeader,
    /// It may have reached etcd, and no answer came: the change may be made, now or later.
    Lost(String),
    /// etcd has reached its quota. Puts and grants are refused.
    NoSpace,
    /// The revision is no longer kept.
    Compacted,
    /// The revision does not exist yet.
    Future,
    /// There is no such lease.
    LeaseGone,
    /// The request is too large for etcd.
    RequestTooLarge,
    /// The answer is larger than accepted.
    AnswerTooLarge,
    /// It was understood and refused, or answered by something that is not etcd: nothing was made.
    Refused(String),
}

/// Texts of etcd's refusals, in all of its versions.
const SAID: [(&str, CallFault); 6] = [
    ("etcdserver: no leader", CallFault::NoLeader),
    ("required revision has been compacted", CallFault::Compacted),
    ("required revision is a future revision", CallFault::Future),
    ("database space exceeded", CallFault::NoSpace),
    ("requested lease not found", CallFault::LeaseGone),
    ("request is too large", CallFault::RequestTooLarge),
];

impl CallFault {
    /// The fault of a call that was not answered in time.
    pub(super) fn silent(after: Duration) -> Self {
        Self::Lost(format!("no answer within {after:?}"))
    }

    /// The fault with the member that was asked.
    pub(super) fn at(self, address: &str) -> Self {
        match self {
            Self::NotBegun(reason) => Self::NotBegun(format!("{address}: {reason}")),
            Self::Lost(reason) => Self::Lost(format!("{address}: {reason}")),
            Self::Refused(reason) => Self::Refused(format!("{address}: {reason}")),
            Self::NoLeader
            | Self::NoSpace
            | Self::Compacted
            | Self::Future
            | Self::LeaseGone
            | Self::RequestTooLarge
            | Self::AnswerTooLarge => self,
        }
    }

    /// Whether it certainly never began, and another member may accept it.
    pub(super) fn is_unbegun(&self) -> bool {
        match self {
            Self::NotBegun(_) | Self::NoLeader => true,
            Self::Lost(_)
            | Self::NoSpace
            | Self::Compacted
            | Self::Future
            | Self::LeaseGone
            | Self::RequestTooLarge
            | Self::AnswerTooLarge
            | Self::Refused(_) => false,
        }
    }

    /// Whether another member may succeed.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::NotBegun(_) | Self::NoLeader | Self::Lost(_) => true,
            Self::NoSpace
            | Self::Compacted
            | Self::Future
            | Self::LeaseGone
            | Self::RequestTooLarge
            | Self::AnswerTooLarge
            | Self::Refused(_) => false,
        }
    }

    /// The error for the caller of a read, or of anything idempotent. Faults with a
    /// meaning of their own were handled before.
    pub(super) fn unreachable(self) -> StoreError {
        StoreError::Unreachable { reason: self.reason() }
    }

    /// The fault as text.
    pub(super) fn reason(self) -> String {
        match self {
            Self::NotBegun(reason) | Self::Lost(reason) | Self::Refused(reason) => reason,
            Self::NoLeader => {
                "it has no leader; see that most of its members run and reach each other".to_owned()
            }
            Self::NoSpace => "it has no space left".to_owned(),
            Self::Compacted => "it no longer keeps the revision".to_owned(),
            Self::Future => "it has not got to the revision".to_owned(),
            Self::LeaseGone => "it has no such lease".to_owned(),
            Self::RequestTooLarge => "it takes no request so large".to_owned(),
            Self::AnswerTooLarge => "its answer is too large".to_owned(),
        }
    }
}

impl From<Status> for CallFault {
    fn from(status: Status) -> Self {
        if is_connecting(&status) {
            return Self::NotBegun(words(&status));
        }
        let said = SAID.iter().find(|(text, _)| status.message().contains(text));
        if let Some((_, fault)) = said {
            return fault.clone();
        }
        match status.code() {
            Code::OutOfRange if status.message().contains("too large") => Self::AnswerTooLarge,
            // etcd's own limit on what waits, met before anything is proposed.
            Code::ResourceExhausted if status.message().contains("too many requests") => {
                Self::NotBegun(words(&status))
            }
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => Self::Lost(words(&status)),
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated => Self::Refused(words(&status)),
        }
    }
}

/// Whether the connection was never made.
fn is_connecting(status: &Status) -> bool {
    chain(status).any(|error| error.downcast_ref::<ConnectError>().is_some())
}

/// The causes of an error, from the outside in.
fn chain(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: Option<&(dyn Error + 'static)> = status.source();
    std::iter::successors(first, |error: &&(dyn Error + 'static)| (*error).source())
}

/// A status with its causes, each once.
fn words(status: &Status) -> String {
    let mut words = status.message().to_owned();
    // The layer that names itself this way knows nothing of the cause.
    for cause in chain(status).map(ToString::to_string).filter(|cause| cause != "transport error") {
        if !words.contains(&cause) {
            words = if words.is_empty() { cause } else { format!("{words}: {cause}") };
        }
    }
    if words.is_empty() { status.code().to_string() } else { words }
}
