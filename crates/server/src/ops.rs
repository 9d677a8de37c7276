//! Operations: what people, programs and agents may request, one file per noun. Each reads the world, lets core decide what
//! changes, and commits that with its events; the actor of the events is the caller.

pub mod accept_members;
mod admins;
pub mod apply;
mod at_revision;
pub mod authorities;
pub mod cluster;
pub mod definition;
pub mod drain;
pub mod ensemble;
pub mod ensemble_adoption;
pub mod ensemble_certificates;
pub mod ensemble_keys;
pub mod ensemble_osds;
pub mod ensemble_passwords;
pub mod ensemble_requests;
pub mod entity;
pub(crate) mod entity_warnings;
pub mod expect;
pub(crate) mod expectation;
pub mod external;
pub mod facts;
mod field_change;
pub mod filter;
pub mod freeze;
pub mod grant;
pub mod job;
pub mod job_log;
pub mod json_change;
pub mod log;
pub mod members;
pub mod namespace;
pub mod node;
pub mod node_params;
pub mod param;
pub mod params;
pub mod pause;
pub mod plan;
pub mod probes;
pub mod profile;
pub mod reaction;
pub mod registrations;
pub mod report;
pub mod role;
pub mod rollout;
pub mod run;
pub mod run_policy;
pub mod runnable;
pub mod schedule;
pub mod scope;
pub mod secret;
pub mod server;
pub mod server_join;
pub mod service;
pub mod sink;
pub mod slot;
pub mod store_view;
pub mod task_list;
pub mod token;

use bellwether_api::problem::ConflictingValue;
use bellwether_api::shape::{ShapeError, reason};
use bellwether_core::records::event::EventDraft;

use crate::records::commit::CommitError;

/// Most records of something that is gone that are deleted in one commit: there may be more of them than one has room for.
const AT_ONCE: usize = 64;

/// Why an operation was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum OpError {
    /// The object does not exist.
    #[error("cannot find {0}")]
    NotFound(String),
    /// The object exists already.
    #[error("cannot {what}: {reason}")]
    Exists {
        /// The operation and its object; fits after "cannot ".
        what: String,
        /// Why it is not replaced.
        reason: String,
    },
    /// The operation is not possible in the present state.
    #[error("cannot {reason}")]
    Refused {
        /// What was refused, and why: fits after "cannot ".
        reason: String,
        /// The next thing to try.
        hint: Option<String>,
    },
    /// The caller lacks a right on this object.
    #[error("cannot {what}: this needs the right {needed}")]
    Forbidden {
        /// The operation and its object; fits after "cannot ".
        what: String,
        /// The right it needs.
        needed: String,
    },
    /// The caller would grant what they lack.
    #[error("cannot {what}: your own rights do not cover the claim {claim:?}")]
    Ungrantable {
        /// The operation; fits after "cannot ".
        what: String,
        /// The claim that is not covered.
        claim: String,
    },
    /// The object is not at the expected revision.
    #[error("cannot {reason}")]
    Moved {
        /// What was refused, and the revision found: fits after "cannot ".
        reason: String,
        /// The next thing to try.
        hint: String,
    },
    /// A value is not the expected one.
    #[error("cannot {reason}")]
    Differs {
        /// What was refused, and the value found: fits after "cannot ".
        reason: String,
        /// Where it differs, and what is there.
        conflict: ConflictingValue,
        /// The next thing to try.
        hint: String,
    },
    /// A value is not valid.
    #[error("{0}")]
    Invalid(#[from] ShapeError),
    /// The join token is not valid.
    #[error("cannot join: {0}")]
    JoinToken(&'static str),
    /// Keys or certificates failed.
    #[error("cannot {0}")]
    Pki(#[from] crate::pki::PkiError),
    /// A secret cannot be encrypted or decrypted.
    #[error("cannot {0}")]
    Keyring(#[from] crate::secrets::keyring::KeyringError),
    /// The random source failed.
    #[error("cannot {0}")]
    Random(#[from] crate::secret::RandomError),
    /// Some of the transactions of an operation were committed, and the next one was not.
    #[error("{error}; {changed} objects were changed before")]
    Interrupted {
        /// Number of objects that were changed.
        changed: usize,
        /// Why the others were not.
        error: Box<OpError>,
    },
    /// The commit failed.
    #[error("{0}")]
    Commit(#[from] CommitError),
}

/// An event without values before and after.
fn event(kind: &'static str, subject: String, cause: impl Into<String>) -> EventDraft {
    EventDraft { kind, subject, before: None, after: None, cause: cause.into() }
}

/// The cause of an event, from the reason that a person gave.
fn cause(reason: &str) -> String {
    if reason.is_empty() { "no reason given".to_owned() } else { reason.to_owned() }
}
