//! Selectors: expressions that match nodes by name and labels, read from text. Length and depth are limited.

mod expression;
mod parse;

use alloc::string::String;
use core::fmt;

use super::label::Labels;
use expression::Expression;
pub use expression::{MAX_SELECTOR_BYTES, MAX_SELECTOR_DEPTH, SelectorError};

/// An expression that matches nodes: `role=web and zone in (a,b) and not name=web-17`, or `all`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    text: String,
    tree: Expression,
}

impl Selector {
    /// The selector that matches every node; it must be written out, an empty text is not valid.
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

    /// The text from which it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches a node with this name and these labels.
    #[must_use]
    pub fn picks(&self, name: &str, labels: &Labels) -> bool {
        self.tree.picks(name, labels)
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
