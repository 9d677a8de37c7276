//! What filters are tried on, and the values of its fields.

use super::field::Field;
use crate::words::value::Value;

/// What a filter is tried on.
pub trait FilterSubject {
    /// The value of a field; `None` if the subject has none. A set of names is a list, a duration a number of milliseconds.
    fn value(&self, field: &Field) -> Option<FieldValue<'_>>;
}

/// The value of a field. Texts are not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A text.
    Text(&'a str),
    /// Any value.
    Value(Value),
}

/// What is known of the value of a field before there is something to try the filter on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownValue<'a> {
    /// There is none.
    Absent,
    /// It is this text.
    Is(&'a str),
    /// There is one, which may be any.
    Present,
    /// It may be any, or none.
    Unknown,
}

impl FieldValue<'_> {
    /// The value itself.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::Text(text.into()),
            Self::Value(value) => value,
        }
    }
}
