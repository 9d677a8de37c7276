//! The location of a value in the configuration: the file and the key that every error names.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use bellwether_core::words::time::Span;
use bellwether_rt::config_error::ConfigError;

/// The location of a value.
#[derive(Debug, Clone)]
pub(super) struct ConfigPath<'a> {
    path: &'a Path,
    key: String,
}

impl<'a> ConfigPath<'a> {
    pub(super) fn new(path: &'a Path, key: String) -> Self {
        Self { path, key }
    }

    pub(super) fn at(&self, key: &str) -> ConfigPath<'a> {
        ConfigPath { path: self.path, key: format!("{}.{key}", self.key) }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn refuse(&self, reason: impl Display) -> ConfigError {
        let (path, key) = (Some(self.path.to_owned()), self.key.clone());
        ConfigError::Value { path, key, reason: reason.to_string() }
    }

    pub(super) fn read<T: FromStr<Err: Display>>(&self, text: &str) -> Result<T, ConfigError> {
        text.parse().map_err(|error| self.refuse(error))
    }

    /// A length of time, longer than zero; `otherwise` if none is given.
    pub(super) fn span(&self, text: Option<&str>, otherwise: Span) -> Result<Span, ConfigError> {
        let span = text.map_or(Ok(otherwise), |text| self.read(text))?;
        if span == Span::ZERO { Err(self.refuse("must be longer than zero")) } else { Ok(span) }
    }
}
