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
    /// The deadline passed.
    #[error("get an answer from the server at {server} within {}", Span::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)).brief())]
    Timeout {
        /// Address of the server.
        server: String,
        /// The deadline.
        after: Duration,
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
