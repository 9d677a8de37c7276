//! Why a call failed.

use std::time::Duration;

use bellwether_core::words::time::Span;

use crate::problem::Problem;

/// Why a call got no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// What was given cannot be used to make a client.
    #[error("use {what}: {reason}")]
    Setup {
        /// Which part: server address, CA, certificate.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answered.
    #[error("reach the server at {server}: {reason}")]
    Unreachable {
        /// The server.
        server: String,
        /// What happened.
        reason: String,
    },
    /// The deadline passed.
    #[error("get an answer from the server at {server} within {}", Span::from_millis(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)).brief())]
    Timeout {
        /// The server.
        server: String,
        /// How long was waited.
        after: Duration,
    },
    /// The server answered with a problem.
    #[error("{0}")]
    Problem(Problem),
    /// The server answered with something that is not the contract.
    #[error("read the answer of the server at {server}: {reason}")]
    Garbled {
        /// The server.
        server: String,
        /// What is wrong.
        reason: String,
    },
}
