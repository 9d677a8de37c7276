//! What people, programs and agents may ask to be changed: one file per noun. Each looks at the world, asks core what
//! follows, and commits it with its events; the actor of every event is whoever asked.

pub mod apply;
pub mod entity;
pub mod expect;
pub mod external;
pub mod freeze;
pub mod log;
pub mod node;
pub mod pause;
pub mod plan;
pub mod profile;
pub mod registrations;
pub mod report;
pub mod rollout;
pub mod slot;
pub mod token;

use bellwether_api::shape::{ShapeError, reason};
use bellwether_core::records::event::EventDraft;

use crate::records::commit::CommitError;

/// Why an operation was not done. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpError {
    /// There is no such thing.
    #[error("find {0}")]
    NotFound(String),
    /// There is already such a thing.
    #[error("make {what}: {reason}")]
    Exists {
        /// What.
        what: String,
        /// Why the one that is there stays.
        reason: String,
    },
    /// It makes no sense in the present state.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
        /// What to do instead.
        hint: Option<String>,
    },
    /// Whoever asks may not do this to this object.
    #[error("{what}: it needs {needed}")]
    Forbidden {
        /// What was to be done, with the object.
        what: String,
        /// What would be needed.
        needed: &'static str,
    },
    /// It is not at the revision that was named.
    #[error("{reason}")]
    Moved {
        /// What was to be done, and what is there instead.
        reason: String,
        /// What to do next.
        hint: String,
    },
    /// A value is not allowed.
    #[error("{0}")]
    Invalid(#[from] ShapeError),
    /// A join token does not open the door.
    #[error("join: {0}")]
    JoinToken(&'static str),
    /// Keys or certificates.
    #[error("{0}")]
    Pki(#[from] crate::pki::PkiError),
    /// No randomness.
    #[error("{0}")]
    Random(#[from] crate::secret::RandomError),
    /// It could not be committed.
    #[error("{0}")]
    Commit(#[from] CommitError),
}

/// An event without before and after.
fn event(kind: &'static str, subject: String, cause: impl Into<String>) -> EventDraft {
    EventDraft { kind, subject, before: None, after: None, cause: cause.into() }
}

/// A reason as an event's cause.
fn cause(reason: &str) -> String {
    if reason.is_empty() { "no reason was given".to_owned() } else { reason.to_owned() }
}
