//! The expression tree of a filter, and what it matches.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::convert::Infallible;

use regex::Regex;

use super::field::{Field, FieldType};
use super::subject::{FieldValue, FilterSubject, KnownValue};
use crate::words::name::FilterName;
use crate::words::value::{Number, Value};

/// An expression of a filter. `S` stands for a saved filter: [`SavedTerm`] as it was read, and nothing once all are written out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression<S = Infallible> {
    All,
    /// A test of a field, which stands at this position in the text.
    Test {
        field: Field,
        test: Predicate,
        position: usize,
    },
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
    Saved(S),
}

/// A saved filter where an expression names it, `@NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SavedTerm {
    pub(super) name: FilterName,
    /// Where its `@` stands in the text.
    pub(super) position: usize,
}

impl SavedTerm {
    /// Number of bytes that it has in the text.
    pub(super) fn len(&self) -> usize {
        1 + self.name.as_str().len()
    }
}

impl<S> Expression<S> {
    /// Number of its regular expressions.
    pub(super) fn patterns(&self) -> usize {
        match self {
            Self::All | Self::Saved(_) => 0,
            Self::Not(inner) => inner.patterns(),
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::patterns).sum(),
            Self::Test { test, .. } => usize::from(matches!(test, Predicate::Like(_))),
        }
    }
}

impl Expression<SavedTerm> {
    /// The saved filters that it names, in the order of the text.
    pub(super) fn saved(&self) -> Vec<&SavedTerm> {
        match self {
            Self::All | Self::Test { .. } => Vec::new(),
            Self::Not(inner) => inner.saved(),
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::saved).collect(),
            Self::Saved(term) => vec![term],
        }
    }

    /// The same expression without saved filters; the first one if it names any.
    pub(super) fn written_out(self) -> Result<Expression, SavedTerm> {
        let each = |parts: Vec<Self>| parts.into_iter().map(Self::written_out).collect::<Result<_, _>>();
        Ok(match self {
            Self::All => Expression::All,
            Self::Test { field, test, position } => Expression::Test { field, test, position },
            Self::Not(inner) => Expression::Not(Box::new(inner.written_out()?)),
            Self::And(parts) => Expression::And(each(parts)?),
            Self::Or(parts) => Expression::Or(each(parts)?),
            Self::Saved(term) => return Err(term),
        })
    }
}

/// What the value of a field must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Predicate {
    /// There is one; a flag is true.
    Exists,
    Is(Value),
    In(Vec<Value>),
    /// In this order to the value.
    Ordered(Comparison, Value),
    /// At least the first, at most the second.
    Between(Value, Value),
    Like(Pattern),
}

/// An order of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
}

/// A regular expression, which takes time in proportion to the text.
#[derive(Debug, Clone)]
pub(super) struct Pattern(pub(super) Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl Expression {
    pub(super) fn matches(&self, subject: &impl FilterSubject) -> bool {
        match self {
            Self::All => true,
            Self::Not(inner) => !inner.matches(subject),
            Self::And(parts) => parts.iter().all(|part| part.matches(subject)),
            Self::Or(parts) => parts.iter().any(|part| part.matches(subject)),
            Self::Test { field, test, .. } => {
                subject.value(field).is_some_and(|value| test.holds(field.kind(), value))
            }
            Self::Saved(never) => match *never {},
        }
    }

    /// Whether something of which only this is known may match, or with `wanted` false may not match. It may be too generous where the
    /// same unknown value is tested twice, and is never too strict.
    pub(super) fn may_be<'a>(&self, wanted: bool, known: &impl Fn(&Field) -> KnownValue<'a>) -> bool {
        match self {
            Self::All => wanted,
            Self::Not(inner) => inner.may_be(!wanted, known),
            Self::And(parts) if wanted => parts.iter().all(|part| part.may_be(true, known)),
            Self::Or(parts) if !wanted => parts.iter().all(|part| part.may_be(false, known)),
            Self::And(parts) | Self::Or(parts) => parts.iter().any(|part| part.may_be(wanted, known)),
            Self::Test { field, test, .. } => match known(field) {
                KnownValue::Unknown => true,
                KnownValue::Present if *test == Predicate::Exists => wanted,
                KnownValue::Present => true,
                KnownValue::Absent => !wanted,
                KnownValue::Is(text) => test.holds(field.kind(), FieldValue::Text(text)) == wanted,
            },
            Self::Saved(never) => match *never {},
        }
    }

    /// The first field, in the order of the text, for which `is` holds, and its position.
    pub(super) fn field(&self, is: &impl Fn(&Field) -> bool) -> Option<(&Field, usize)> {
        match self {
            Self::All => None,
            Self::Not(inner) => inner.field(is),
            Self::And(parts) | Self::Or(parts) => parts.iter().find_map(|part| part.field(is)),
            Self::Test { field, position, .. } => Some((field, *position)).filter(|(field, _)| is(field)),
            Self::Saved(never) => match *never {},
        }
    }

    /// The texts of which this field must have one; `None` if it may match with others.
    pub(super) fn required_values(&self, name: &str, key: &str) -> Option<Vec<&str>> {
        match self {
            Self::All | Self::Not(_) => None,
            Self::And(parts) => {
                parts.iter().filter_map(|part| part.required_values(name, key)).min_by_key(Vec::len)
            }
            Self::Or(parts) => {
                let parts = parts.iter().map(|part| part.required_values(name, key));
                parts.collect::<Option<Vec<_>>>().map(|parts| parts.concat())
            }
            Self::Test { field, test, .. } if field.name() == name && field.key() == key => test.texts(),
            Self::Test { .. } => None,
            Self::Saved(never) => match *never {},
        }
    }
}

impl Predicate {
    /// The texts to which it compares for equality.
    fn texts(&self) -> Option<Vec<&str>> {
        match self {
            Self::Is(value) => Some(vec![text(value)?]),
            Self::In(values) => values.iter().map(text).collect(),
            Self::Exists | Self::Ordered(..) | Self::Between(..) | Self::Like(_) => None,
        }
    }

    fn holds(&self, kind: FieldType, value: FieldValue<'_>) -> bool {
        match value {
            FieldValue::Text(text) => self.holds_of_text(kind, text),
            FieldValue::Value(value) => self.holds_of_value(kind, &value),
        }
    }

    /// As for the value of this text, without copying it.
    fn holds_of_text(&self, kind: FieldType, text: &str) -> bool {
        let is = |wanted: &Value| matches!(wanted, Value::Text(wanted) if **wanted == *text);
        match self {
            Self::Is(wanted) => is(wanted),
            Self::In(wanted) => wanted.iter().any(is),
            Self::Like(Pattern(pattern)) => pattern.is_match(text),
            Self::Exists | Self::Ordered(..) | Self::Between(..) => {
                self.holds_of_value(kind, &Value::Text(text.into()))
            }
        }
    }

    fn holds_of_value(&self, kind: FieldType, value: &Value) -> bool {
        match kind {
            FieldType::Names => match value {
                Value::List(names) => match self {
                    Self::Exists => !names.is_empty(),
                    Self::Is(_) | Self::In(_) | Self::Ordered(..) | Self::Between(..) | Self::Like(_) => {
                        names.iter().any(|name| self.holds_of(name))
                    }
                },
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Object(_) => false,
            },
            FieldType::Flag => match self {
                Self::Exists => *value == Value::Bool(true),
                Self::Is(_) | Self::In(_) | Self::Ordered(..) | Self::Between(..) | Self::Like(_) => {
                    self.holds_of(value)
                }
            },
            FieldType::Label => match (self, number_of(value)) {
                (Self::Ordered(..) | Self::Between(..), Some(number)) => self.holds_of(&number),
                (Self::Ordered(..) | Self::Between(..), None) => false,
                (Self::Exists | Self::Is(_) | Self::In(_) | Self::Like(_), _) => self.holds_of(value),
            },
            FieldType::Any => match value {
                Value::List(items) => self.holds_of(value) || items.iter().any(|item| self.holds_of(item)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Object(_) => {
                    self.holds_of(value)
                }
            },
            FieldType::Text | FieldType::Number | FieldType::Duration => self.holds_of(value),
        }
    }

    fn holds_of(&self, value: &Value) -> bool {
        match self {
            Self::Exists => true,
            Self::Is(wanted) => value == wanted,
            Self::In(wanted) => wanted.contains(value),
            Self::Ordered(comparison, limit) => comparison.holds(value, limit),
            Self::Between(least, most) => {
                Comparison::AtLeast.holds(value, least) && Comparison::AtMost.holds(value, most)
            }
            Self::Like(Pattern(pattern)) => match value {
                Value::Text(text) => pattern.is_match(text),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_) => false,
            },
        }
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_) => None,
    }
}

impl Comparison {
    /// Whether it holds; false for values of different kinds, which have no order that a person would expect.
    fn holds(self, value: &Value, limit: &Value) -> bool {
        let comparable =
            matches!((value, limit), (Value::Number(_), Value::Number(_)) | (Value::Text(_), Value::Text(_)));
        comparable
            && match (self, value.cmp(limit)) {
                (Self::Less | Self::AtMost, Ordering::Less)
                | (Self::More | Self::AtLeast, Ordering::Greater)
                | (Self::AtMost | Self::AtLeast, Ordering::Equal) => true,
                (Self::Less | Self::AtMost, Ordering::Greater)
                | (Self::More | Self::AtLeast, Ordering::Less)
                | (Self::Less | Self::More, Ordering::Equal) => false,
            }
    }
}

/// The number that a text is; `None` if it is none.
pub(super) fn number_of(value: &Value) -> Option<Value> {
    match value {
        Value::Text(text) => number(text).map(Value::Number),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_) => None,
    }
}

/// The number of a text, such as `64`, `-1.5` or `1e3`.
pub(super) fn number(text: &str) -> Option<Number> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
        && text.bytes().any(|byte| byte.is_ascii_digit());
    let integer = text.parse::<i64>().ok().map(Number::integer);
    integer.or_else(|| Number::float(text.parse().ok().filter(|_| is_number)?))
}
