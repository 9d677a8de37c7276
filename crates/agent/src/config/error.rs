//! Why a configuration cannot be used.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is not TOML, or has a key that does not exist.
    #[error("read {path}: {reason}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        reason: String,
    },
    /// A value is not allowed.
    #[error("use {key} in {path}: {reason}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Which key, like `entity.web.timeout`.
        key: String,
        /// Why not.
        reason: String,
    },
}

/// What is wrong with a definition: which field, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionError {
    /// The field, like `check.port.interval`.
    pub field: String,
    /// Why not.
    pub reason: String,
}

impl DefinitionError {
    /// The same error with its field below `table`.
    pub(super) fn within(self, table: &str) -> Self {
        let field = if self.field.is_empty() { table.to_owned() } else { format!("{table}.{}", self.field) };
        Self { field, ..self }
    }
}

pub(super) fn wrong(field: &str, reason: impl Display) -> DefinitionError {
    DefinitionError { field: field.to_owned(), reason: reason.to_string() }
}

pub(super) fn parse<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, DefinitionError> {
    text.parse().map_err(|error| wrong(field, error))
}
