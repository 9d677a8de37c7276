//! JSON values: compared by what they mean, in a total order. Numbers are equal if their values are, objects if they have the
//! same members in any order.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// A JSON value. The order is: null, booleans, numbers, texts, lists, objects; each kind in its natural order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// `null`, which is a value.
    Null,
    /// `false` or `true`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text, in the order of its bytes.
    Text(Arc<str>),
    /// A list, compared item by item.
    List(Vec<Self>),
    /// An object, compared member by member in the order of the names.
    Object(BTreeMap<Arc<str>, Self>),
}

/// A finite number.
#[derive(Debug, Clone, Copy)]
pub struct Number(Form);

/// An integer if the number is one and is not too large for it, so that each value has one form.
#[derive(Debug, Clone, Copy)]
enum Form {
    Integer(i128),
    Other(f64),
}

/// Floating-point numbers up to this are integers that [`Form::Integer`] can hold.
const LARGEST: f64 = 1e38;

impl Number {
    /// The number of an integer.
    #[must_use]
    pub fn integer(value: impl Into<i128>) -> Self {
        Self(Form::Integer(value.into()))
    }

    /// The number of a floating-point value; `None` if it is not finite.
    #[must_use]
    pub fn float(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let whole = truncated(value);
        Some(Self(if value.abs() < LARGEST && widened(whole) == value {
            Form::Integer(whole)
        } else {
            Form::Other(value)
        }))
    }

    /// Its value, rounded to the nearest floating-point number.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self.0 {
            Form::Integer(value) => widened(value),
            Form::Other(value) => value,
        }
    }

    /// Its value, if it is an integer.
    #[must_use]
    pub const fn as_integer(self) -> Option<i128> {
        match self.0 {
            Form::Integer(value) => Some(value),
            Form::Other(_) => None,
        }
    }
}

/// The integer part; the nearest integer that there is for larger values.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
const fn truncated(value: f64) -> i128 {
    value as i128
}

/// The nearest floating-point number.
#[expect(clippy::cast_precision_loss, reason = "it rounds to the nearest")]
const fn widened(value: i128) -> f64 {
    value as f64
}

/// Compares an integer with a number that is not an integer, or is larger than every integer here.
fn compare(integer: i128, other: f64) -> Ordering {
    let whole = truncated(other);
    integer.cmp(&whole).then_with(|| widened(whole).total_cmp(&other))
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Form::Integer(one), Form::Integer(two)) => one.cmp(&two),
            (Form::Other(one), Form::Other(two)) => one.total_cmp(&two),
            (Form::Integer(one), Form::Other(two)) => compare(one, two),
            (Form::Other(one), Form::Integer(two)) => compare(two, one).reverse(),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;

    fn number() -> impl Strategy<Value = Number> {
        let near = prop_oneof![Just(0_i64), Just(1 << 53), Just(i64::MAX), Just(i64::MIN), any::<i64>()];
        prop_oneof![
            near.clone().prop_map(Number::integer),
            any::<u64>().prop_map(Number::integer),
            #[expect(clippy::cast_precision_loss, reason = "numbers near integers")]
            (near, -2_i8..3)
                .prop_map(|(near, off)| Number::float(near as f64 + f64::from(off) / 2.0).unwrap()),
            any::<f64>().prop_filter_map("finite", Number::float),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            number().prop_map(Value::Number),
            "[a-c]{0,3}".prop_map(|text: String| Value::Text(text.as_str().into())),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            let name = "[a-c]{0,2}".prop_map(|text: String| Arc::from(text.as_str()));
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
                prop::collection::btree_map(name, inner, 0..4).prop_map(Value::Object),
            ]
        })
    }

    #[test]
    fn numbers_are_equal_by_value_and_exact_where_a_float_is_not() {
        let float = |value| Number::float(value).unwrap();
        assert_eq!(Number::integer(1), float(1.0));
        assert_eq!(float(-0.0), Number::integer(0));
        assert!(Number::integer((1_i64 << 53) + 1) > float(9_007_199_254_740_992.0));
        assert!(Number::integer(u64::MAX) < float(18_446_744_073_709_551_616.0));
        assert!(Number::integer(i64::MAX) < float(1e300) && Number::integer(i64::MIN) > float(-1e300));
        assert!(Number::integer(1) < float(1.5) && float(-1.5) < Number::integer(-1));
        assert!(float(0.1) > Number::integer(0) && float(-0.1) < Number::integer(0));
        assert_eq!((Number::float(f64::NAN), Number::float(f64::INFINITY)), (None, None));
    }

    #[test]
    fn kinds_are_ordered_and_null_is_a_value() {
        let text = |text: &str| Value::Text(text.into());
        let all = [
            Value::Null,
            Value::Bool(false),
            Value::Bool(true),
            Value::Number(Number::integer(7)),
            text("1"),
            text("10"),
            text("2"),
            Value::List(Vec::new()),
            Value::Object(BTreeMap::new()),
        ];
        assert!(all.is_sorted() && all.windows(2).all(|pair| pair[0] != pair[1]));
    }

    proptest! {
        #[test]
        fn the_order_is_total(one in value(), two in value(), three in value()) {
            prop_assert_eq!(one.cmp(&two), two.cmp(&one).reverse());
            prop_assert_eq!(one == two, one.cmp(&two) == Ordering::Equal);
            if one <= two && two <= three {
                prop_assert!(one <= three);
            }
        }

        #[test]
        fn numbers_are_in_the_order_of_their_values(one in number(), two in number()) {
            if one.as_f64() < two.as_f64() {
                prop_assert!(one < two);
            }
            if one == two {
                prop_assert_eq!(one.as_f64(), two.as_f64());
            }
        }
    }
}
