//! Why an agent does not start.

use std::path::PathBuf;

use crate::identity::IdentityError;
use crate::ledger::LedgerError;
use crate::lock::LockError;

/// Why an agent does not start. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The node has never joined.
    #[error("find an identity in {dir}: this node has not joined; run `bellwether agent join` first")]
    NotJoined {
        /// The data directory.
        dir: PathBuf,
    },
    /// The node joined under another name than the configured one.
    #[error("run as {configured}: this node joined as {joined}; set agent.name and agent.namespace to that")]
    Another {
        /// The configured namespace and name.
        configured: String,
        /// The namespace and name it joined under.
        joined: String,
    },
    /// The node was decommissioned while the agent ran.
    #[error("go on: {reason}; join this machine again with `bellwether agent join --force`")]
    Decommissioned {
        /// What the server said.
        reason: String,
    },
    /// A directory cannot be created.
    #[error("create {dir}: {source}")]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Others than the user of the agent could use what is its own.
    #[error("{0}")]
    NotPrivate(#[from] bellwether_rt::own_files::NotPrivate),
    /// Another agent uses the data directory.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// The key or certificate cannot be used.
    #[error("{0}")]
    Identity(#[from] IdentityError),
    /// The ledger cannot be used.
    #[error("{0}")]
    Ledger(#[from] LedgerError),
}
