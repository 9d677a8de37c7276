//! JSON values at the edge: as core compares them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::words::value::{Number, Value};

/// The value that core compares.
#[must_use]
pub fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => Value::Number(self::number(number)),
        serde_json::Value::String(text) => Value::Text(text.as_str().into()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(value).collect()),
        serde_json::Value::Object(members) => Value::Object(
            members.iter().map(|(name, member)| (Arc::from(name.as_str()), value(member))).collect(),
        ),
    }
}

/// The JSON of a value. A number that JSON cannot hold exactly is the nearest one.
#[must_use]
pub fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => {
            let integer = number.as_integer().and_then(|value| {
                let signed = i64::try_from(value).ok().map(serde_json::Number::from);
                signed.or_else(|| u64::try_from(value).ok().map(serde_json::Number::from))
            });
            integer.map_or_else(|| number.as_f64().into(), serde_json::Value::Number)
        }
        Value::Text(text) => (**text).into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Object(members) => serde_json::Value::Object(
            members.iter().map(|(name, member)| (name.as_ref().to_owned(), json(member))).collect(),
        ),
    }
}

/// The members of a JSON object as core compares them.
#[must_use]
pub fn values<'a>(
    members: impl IntoIterator<Item = (&'a String, &'a serde_json::Value)>,
) -> Arc<BTreeMap<Arc<str>, Value>> {
    Arc::new(members.into_iter().map(|(name, member)| (Arc::from(name.as_str()), value(member))).collect())
}

/// Whether two values are equal as JSON: numbers by value, objects without order.
#[must_use]
pub fn is_same(one: &serde_json::Value, two: &serde_json::Value) -> bool {
    value(one) == value(two)
}

fn number(number: &serde_json::Number) -> Number {
    let integer = number.as_i64().map(Number::integer).or_else(|| number.as_u64().map(Number::integer));
    // A number of JSON text is finite.
    integer.or_else(|| Number::float(number.as_f64()?)).unwrap_or_else(|| Number::integer(0))
}

/// A value that may be absent, where `null` is a value: for `#[serde(with = "…")]` beside `default` and `skip_serializing_if`.
pub(crate) mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(crate) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_they_were_read() {
        for json in [json!(null), json!({"a": [1, -2, 1.5, u64::MAX, "x", true]})] {
            assert_eq!(super::json(&value(&json)), json);
        }
    }

    #[test]
    fn numbers_are_the_same_by_value_and_objects_in_any_order() {
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert!(is_same(&json!(1), &json!(1.0)) && is_same(&read("1e2"), &json!(100)));
        assert!(is_same(&read(r#"{"a":1,"b":[null]}"#), &read(r#"{"b":[null],"a":1.0}"#)));
        assert!(!is_same(&json!(u64::MAX), &json!(1.8446744073709552e19)));
        for different in [json!("1"), json!(null), json!(true), json!([1]), json!({"a": 1})] {
            assert!(!is_same(&json!(1), &different), "{different}");
        }
    }
}
