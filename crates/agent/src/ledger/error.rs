//! Why the ledger cannot be used, and reading its files.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk;

/// Why the ledger cannot be used. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A file cannot be read or written.
    #[error("{action} {path}: {source}")]
    File {
        /// What failed: "read", "write", "create" or "remove".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The content of a file is not valid.
    #[error(
        "read the ledger {path}: {reason}; restore the file, or, to apply everything again, stop the services that it \
         names and remove it"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

pub(super) fn read(path: &Path) -> Result<Option<String>, LedgerError> {
    disk::read(path).map_err(|source| file("read", path, source))
}

pub(super) fn file(action: &'static str, path: &Path, source: io::Error) -> LedgerError {
    LedgerError::File { action, path: path.to_owned(), source }
}

pub(super) fn damaged(path: &Path, reason: String) -> LedgerError {
    LedgerError::Damaged { path: path.to_owned(), reason }
}
