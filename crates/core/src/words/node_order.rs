//! An order of nodes by what is recorded of them, as lists are sorted: `fact.cores`, or `-param.weight` from the largest to the
//! smallest.

use alloc::format;
use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;

use super::filter::field::Field;
use super::filter::nodes::NODES;
use super::filter::{FilterError, FilterSubject, read_field};
use super::selector::Recorded;
use super::value::Value;

/// An order of nodes by one recorded field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOrder {
    text: String,
    field: Field,
    is_descending: bool,
}

impl NodeOrder {
    /// Reads an order.
    ///
    /// # Errors
    /// [`FilterError`] with the position: the field is unknown, or changes by itself.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let text = text.trim();
        let name = text.strip_prefix('-');
        let field = read_field(name.unwrap_or(text), &NODES)?;
        if !field.is_standing() {
            let reason = format!("{field} changes by itself: use name, labels, facts, params and profiles");
            return Err(FilterError { position: 0, reason });
        }
        Ok(Self { text: text.into(), field, is_descending: name.is_some() })
    }

    /// The text from which it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value by which a node is ordered; `None` if it has none.
    #[must_use]
    pub fn value(&self, node: &Recorded<'_>) -> Option<Value> {
        node.value(&self.field).map(super::filter::FieldValue::into_value)
    }

    /// Compares two nodes by their values: the first in order is less, and one without a value is last.
    #[must_use]
    pub fn compare(&self, one: Option<&Value>, other: Option<&Value>) -> Ordering {
        match (one, other) {
            (Some(one), Some(other)) if self.is_descending => other.cmp(one),
            (Some(one), Some(other)) => one.cmp(other),
            (one, other) => other.is_some().cmp(&one.is_some()),
        }
    }
}

impl core::str::FromStr for NodeOrder {
    type Err = FilterError;
    fn from_str(text: &str) -> Result<Self, FilterError> {
        Self::parse(text)
    }
}

impl fmt::Display for NodeOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
