//! Why keys or certificates cannot be used.

use std::path::PathBuf;

/// What went wrong with keys or certificates.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file cannot be read or written.
    #[error("{action} {path}: {source}")]
    File {
        /// What was tried: "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A certificate or key cannot be made or understood.
    #[error("use {what}: {reason}")]
    Certificate {
        /// Which one.
        what: String,
        /// Why not.
        reason: String,
    },
}
