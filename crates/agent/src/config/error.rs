//! Why a definition cannot be used.

use std::fmt::Display;
use std::str::FromStr;

/// An error in a definition: the field and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionError {
    /// The field, like `check.port.interval`.
    pub field: String,
    /// The reason.
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
