//! Filters: expressions over the fields of nodes and other listed things, read from text. Length and depth are limited, and matching
//! takes time in proportion to the filter and the values.

pub mod conditions;
mod error;
mod expression;
pub mod field;
pub mod nodes;
mod parse;
pub mod saved;
mod subject;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use self::error::{FilterError, MAX_FILTER_BYTES, MAX_FILTER_DEPTH, MAX_FILTER_PATTERNS};
use self::expression::{Expression, SavedTerm};
use self::field::{Field, FieldTable};
pub use self::subject::{FieldValue, FilterSubject, KnownValue};

/// An expression that matches some of the listed things: `role=web and zone in (a,b) and not cordoned`, or `all`.
#[derive(Debug, Clone)]
pub struct Filter {
    text: String,
    tree: Expression,
}

/// Filters are equal if their texts are. The trees of equal texts differ in the positions of their terms only, which count from
/// the beginning of what was written, blanks included.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Filter {}

impl Filter {
    /// The filter that matches everything.
    #[must_use]
    pub fn all() -> Self {
        Self { text: "all".into(), tree: Expression::All }
    }

    /// Reads a filter over the fields of a table, which names no saved filter. One that may name some is a
    /// [`FilterDraft`](saved::FilterDraft) first.
    ///
    /// # Errors
    /// [`FilterError`] with the position and what was expected there.
    pub fn parse(text: &str, table: &'static FieldTable) -> Result<Self, FilterError> {
        match parse::read(text, table)?.written_out() {
            Ok(tree) => Ok(Self { text: text.trim().into(), tree }),
            Err(SavedTerm { name, position }) => {
                let reason =
                    format!("@{name} is a saved filter, and none can be named here: write the filter out");
                Err(FilterError { position, reason })
            }
        }
    }

    /// The text from which it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches.
    #[must_use]
    pub fn matches(&self, subject: &impl FilterSubject) -> bool {
        self.tree.matches(subject)
    }

    /// Whether it may match something of which only this is known. What it says may not match never does.
    #[must_use]
    pub fn may_match<'a>(&self, known: impl Fn(&Field) -> KnownValue<'a>) -> bool {
        self.tree.may_be(true, &known)
    }

    /// The first field that changes by itself, and its position: with one, the filter cannot be kept to decide which nodes are meant.
    #[must_use]
    pub fn unsteady_field(&self) -> Option<(&Field, usize)> {
        self.tree.field(&|field| !field.is_standing())
    }

    /// The first field for which `is` holds.
    pub(super) fn field(&self, is: &impl Fn(&Field) -> bool) -> Option<&Field> {
        self.tree.field(is).map(|(field, _)| field)
    }

    /// Whether it has regular expressions, of which each may take a while on each text.
    #[must_use]
    pub fn has_patterns(&self) -> bool {
        self.tree.patterns() > 0
    }

    /// Whether it tests a field of this name.
    #[must_use]
    pub fn tests(&self, name: &str) -> bool {
        self.tree.field(&|field| field.name() == name).is_some()
    }

    /// The texts of which a field must have one for the filter to match; `None` if it may match with others. The key is empty for a
    /// field without one. With these values an index finds all that can match.
    #[must_use]
    pub fn required_values(&self, name: &str, key: &str) -> Option<Vec<&str>> {
        self.tree.required_values(name, key)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads one field, as a list of fields to show or to sort by names it.
///
/// # Errors
/// [`FilterError`] with the position and the nearest name.
pub fn read_field(text: &str, table: &'static FieldTable) -> Result<Field, FilterError> {
    parse::read_field(text, table)
}

#[cfg(test)]
mod tests;
