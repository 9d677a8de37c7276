//! The expression tree of a selector, and the error for a text that is not a valid one.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::words::label::Labels;

/// Longest selector, in bytes.
pub const MAX_SELECTOR_BYTES: usize = 4_096;

/// Deepest nesting of parentheses and `not`: bounds the stack that parsing uses.
pub const MAX_SELECTOR_DEPTH: usize = 32;

/// An expression of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    All,
    Test { field: Field, test: Predicate },
    Not(Box<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
}

impl Expression {
    pub(super) fn picks(&self, name: &str, labels: &Labels) -> bool {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Label(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Predicate {
    Exists,
    Is(String),
    IsNot(String),
    In(Vec<String>),
    NotIn(Vec<String>),
}

impl Predicate {
    /// A missing label has no value: it satisfies `!=` and `not in`, and nothing else.
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

/// Why a text is not a valid selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector at position {position}: {reason}")]
pub struct SelectorError {
    /// Byte position in the text, from 0.
    pub position: usize,
    /// What is wrong there, and what was expected.
    pub reason: &'static str,
}
