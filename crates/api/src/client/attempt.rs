//! A request, and why it has no usable answer at one server or at any of several.

use http::Method;
use hyper::body::Bytes;

use super::error::{CallError, FailedAttempt, UnreachableCause};

/// A request, apart from the server that it is sent to.
#[derive(Debug, Clone)]
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// Path with its query.
    pub(super) path: &'a str,
    pub(super) body: Bytes,
}

/// A request without a usable answer.
#[derive(Debug)]
pub(super) struct Attempted {
    /// Whether nothing of the request reached the server.
    pub(super) is_unsent: bool,
    pub(super) error: CallError,
}

impl From<CallError> for Attempted {
    fn from(error: CallError) -> Self {
        Self { is_unsent: false, error }
    }
}

/// The error of a request that may have arrived: of a change it is said that it may have been made.
pub(super) fn lost(error: CallError, method: &Method, is_repeatable: bool) -> CallError {
    match &error {
        CallError::Unreachable { server, reason, .. } if !method.is_safe() && !is_repeatable => {
            CallError::AnswerLost { server: server.clone(), reason: reason.clone() }
        }
        CallError::Setup { .. }
        | CallError::Unreachable { .. }
        | CallError::NoneReachable { .. }
        | CallError::AnswerLost { .. }
        | CallError::Timeout { .. }
        | CallError::Problem(_)
        | CallError::Garbled { .. } => error,
    }
}

/// A request that failed at a server.
pub(super) struct FailedCall {
    pub(super) server: String,
    pub(super) error: CallError,
}

impl FailedCall {
    /// The reason, without what was tried.
    fn reason(&self) -> String {
        match &self.error {
            CallError::Unreachable { reason, .. }
            | CallError::AnswerLost { reason, .. }
            | CallError::Garbled { reason, .. } => reason.clone(),
            CallError::Timeout { .. } => "no answer in time".to_owned(),
            CallError::Problem(problem) => problem.detail.clone(),
            CallError::Setup { .. } | CallError::NoneReachable { .. } => self.error.to_string(),
        }
    }

    fn cause(&self) -> UnreachableCause {
        match self.error {
            CallError::Unreachable { cause, .. } => cause,
            CallError::Setup { .. }
            | CallError::NoneReachable { .. }
            | CallError::AnswerLost { .. }
            | CallError::Timeout { .. }
            | CallError::Problem(_)
            | CallError::Garbled { .. } => UnreachableCause::Connection,
        }
    }
}

/// The error of a request that failed at each of these servers.
pub(super) fn of_all(mut failed: Vec<FailedCall>) -> CallError {
    let says_enough = |call: &FailedCall| matches!(call.error, CallError::Timeout { may_be_made: true, .. });
    if let Some(last) = failed.pop_if(|last| says_enough(last)) {
        return last.error;
    }
    if failed.len() == 1
        && let Some(only) = failed.pop()
    {
        return only.error;
    }
    let cause = failed.first().map_or(UnreachableCause::Connection, FailedCall::cause);
    let is_shared = failed.iter().all(|call| call.cause() == cause);
    CallError::NoneReachable {
        cause: if is_shared { cause } else { UnreachableCause::Connection },
        attempts: failed
            .into_iter()
            .map(|call| FailedAttempt {
                reason: call.reason(),
                is_answered: matches!(call.error, CallError::Problem(_)),
                server: call.server,
            })
            .collect(),
    }
}
