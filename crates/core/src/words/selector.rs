//! Selectors: text ↔ a tree that picks nodes by name and labels. Length and depth are capped.

mod parse;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::label::Labels;

/// Longest selector, in bytes.
pub const MAX_SELECTOR_BYTES: usize = 4_096;

/// Deepest nesting of parentheses and `not`: keeps reading one within a small stack.
pub const MAX_SELECTOR_DEPTH: usize = 32;

/// An expression that picks nodes: `role=web and zone in (a,b) and not name=web-17`, or `all`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    text: String,
    tree: Expression,
}

/// What a selector means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expression {
    All,
    Test { field: Field, test: Predicate },
    Not(Box<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Name,
    Label(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Predicate {
    Exists,
    Is(String),
    IsNot(String),
    In(Vec<String>),
    NotIn(Vec<String>),
}

/// Why a text is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the selector at position {position}: {reason}")]
pub struct SelectorError {
    /// Byte position in the text, from 0.
    pub position: usize,
    /// What was wrong there, and what was expected.
    pub reason: &'static str,
}

impl Selector {
    /// The selector that picks every node; it must be said, never meant by an empty text.
    #[must_use]
    pub fn all() -> Self {
        Self { text: "all".into(), tree: Expression::All }
    }

    /// Reads a selector.
    ///
    /// # Errors
    /// [`SelectorError`] with the position and what was expected there.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let tree = parse::read(text)?;
        Ok(Self { text: text.trim().into(), tree })
    }

    /// The text it was read from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it picks a node of this name with these labels.
    #[must_use]
    pub fn picks(&self, name: &str, labels: &Labels) -> bool {
        self.tree.picks(name, labels)
    }
}

impl Expression {
    fn picks(&self, name: &str, labels: &Labels) -> bool {
        match self {
            Self::All => true,
            Self::Not(inner) => !inner.picks(name, labels),
            Self::And(parts) => parts.iter().all(|part| part.picks(name, labels)),
            Self::Or(parts) => parts.iter().any(|part| part.picks(name, labels)),
            Self::Test { field, test } => {
                let value = match field {
                    Field::Name => Some(name),
                    Field::Label(key) => labels.get(key),
                };
                test.holds(value)
            }
        }
    }
}

impl Predicate {
    /// A label that is not there is no value: it satisfies `!=` and `not in`, and nothing else.
    fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::Exists => value.is_some(),
            Self::Is(wanted) => value == Some(wanted),
            Self::IsNot(unwanted) => value != Some(unwanted),
            Self::In(wanted) => value.is_some_and(|value| wanted.iter().any(|w| w == value)),
            Self::NotIn(unwanted) => !value.is_some_and(|value| unwanted.iter().any(|w| w == value)),
        }
    }
}

impl core::str::FromStr for Selector {
    type Err = SelectorError;
    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
