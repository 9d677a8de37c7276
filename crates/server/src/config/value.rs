//! Values of the configuration, and why one cannot be used.

use std::path::PathBuf;

use bellwether_core::words::time::{Span, SpanError};

/// Why a configuration cannot be used. The message fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not valid TOML, or has an unknown key.
    #[error("read {path}: {reason}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// The parser's message, with line and column.
        reason: String,
    },
    /// A value is not valid.
    #[error("use {key}: {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// A duration such as `30s`.
pub(super) fn span(key: &'static str, text: Option<String>) -> Result<Option<Span>, ConfigError> {
    let read = |text: String| text.parse();
    text.map(read)
        .transpose()
        .map_err(|error: SpanError| ConfigError::Value { key, reason: error.to_string() })
}
