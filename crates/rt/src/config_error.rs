//! Why a configuration file of a long-running program cannot be used.

use std::path::{Path, PathBuf};

use crate::config_file::read_trusted;

/// Why a configuration cannot be used. The message fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file is not of its format, or has an unknown key.
    #[error("read {path}: {reason}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// The parser's message, with line and column.
        reason: String,
    },
    /// A value is not allowed.
    #[error("use {key}{}: {reason}", within(.path.as_deref()))]
    Value {
        /// The file; `None` for a default.
        path: Option<PathBuf>,
        /// The key, like `entity.web.timeout`.
        key: String,
        /// What is wrong with the value.
        reason: String,
    },
}

fn within(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!(" in {}", path.display()))
}

/// An error in TOML in one line, without the line of the file itself, which may be long or secret.
#[must_use]
pub fn toml_reason(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let position = before.map_or_else(String::new, |before| {
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!(" at line {line} column {column}")
    });
    format!("{}{position}", error.message().replace('\n', ", "))
}

impl ConfigError {
    /// Reads a TOML file, which nobody but root and the user of this program may have written.
    ///
    /// # Errors
    /// [`ConfigError::Read`] and [`ConfigError::Parse`].
    pub fn read_toml<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Self> {
        let read = |source| Self::Read { path: path.to_owned(), source };
        let text = read_trusted(path).map_err(read)?;
        let parse = |error| Self::Parse { path: path.to_owned(), reason: toml_reason(&error, &text) };
        toml::from_str(&text).map_err(parse)
    }

    /// A value that is not allowed, in a file that the caller of [`Self::in_file`] knows.
    #[must_use]
    pub fn value(key: &str, reason: String) -> Self {
        Self::Value { path: None, key: key.to_owned(), reason }
    }

    /// The same error with the file of the value, if it has none yet.
    #[must_use]
    pub fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Value { path: None, key, reason } => {
                Self::Value { path: Some(file.to_owned()), key, reason }
            }
            Self::Value { path: Some(_), .. } | Self::Read { .. } | Self::Parse { .. } => self,
        }
    }
}
