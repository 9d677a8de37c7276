//! Errors of calls.

use std::time::Duration;

use bellwether_core::words::time::Span;

use crate::problem::Problem;

/// Why a server cannot be reached, as far as it decides what to check first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreachableCause {
    /// The server's certificate is not valid under the given CA, or not for this address.
    Certificate,
    /// The server's certificate is not valid yet, or not any more, by the clock of this machine.
    Clock,
    /// The server answers, but with TLS where the address says `http`, or without where it says `https`.
    Scheme,
    /// Any other reason: nothing listens there, the network, or the server closed the connection.
    Connection,
}

/// A server that could not take a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Address of the server.
    pub server: String,
    /// The reason.
    pub reason: String,
    /// Whether it answered: with a problem that another server may not have.
    pub is_answered: bool,
}

fn brief(duration: Duration) -> String {
    Span::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)).brief().to_string()
}

/// What is not known of a change whose answer is missing.
const fn unknown(may_be_made: bool) -> &'static str {
    if may_be_made { "; it is unknown whether the change was made" } else { "" }
}

/// What none of several servers did: some may have answered.
fn none_did(attempts: &[FailedAttempt]) -> &'static str {
    if attempts.iter().any(|attempt| attempt.is_answered) {
        "have the request served by any of the servers"
    } else {
        "reach any of the servers"
    }
}

/// Each server with its reason, on a line.
fn each(attempts: &[FailedAttempt]) -> String {
    let each = attempts.iter().map(|attempt| format!("{}: {}", attempt.server, attempt.reason));
    each.collect::<Vec<String>>().join("; ")
}

/// Why a call has no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The client cannot be created from the given values.
    #[error("use {what}: {reason}")]
    Setup {
        /// The value that cannot be used: server address, CA or certificate.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The server cannot be reached.
    #[error("reach the server at {server}: {reason}")]
    Unreachable {
        /// Address of the server.
        server: String,
        /// What to check first.
        cause: UnreachableCause,
        /// The reason.
        reason: String,
    },
    /// None of several servers could take the request.
    #[error("{}: {}", none_did(.attempts), each(.attempts))]
    NoneReachable {
        /// The servers that were tried, in this order.
        attempts: Vec<FailedAttempt>,
        /// What to check first, if it is the same for all.
        cause: UnreachableCause,
    },
    /// The connection ended before the answer to a change arrived.
    #[error("get the answer of the server at {server}: {reason}{}", unknown(true))]
    AnswerLost {
        /// Address of the server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The deadline passed.
    #[error("get an answer from the server at {server} within {}{}", brief(*after), unknown(*.may_be_made))]
    Timeout {
        /// Address of the server.
        server: String,
        /// The deadline.
        after: Duration,
        /// Whether it was a change, which may have been made.
        may_be_made: bool,
    },
    /// The server answered with a problem.
    #[error("{0}")]
    Problem(Problem),
    /// The answer of the server does not have the expected form.
    #[error("read the answer of the server at {server}: {reason}")]
    Garbled {
        /// Address of the server.
        server: String,
        /// The reason.
        reason: String,
    },
}
