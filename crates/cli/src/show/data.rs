//! Answers as programs read them: JSON and YAML with points in time as ISO 8601 text.

use serde::Serialize;
use serde_json::{Map, Value};

use super::time::iso;

/// Milliseconds from here on are a point in time rather than a duration: the year 2001.
const FIRST_TIME_MS: u64 = 1_000_000_000_000;

/// The answer as a JSON value: `since_ms`, if it is a point in time, becomes `since`, in ISO 8601 and UTC.
///
/// # Errors
/// What serde reports.
pub(crate) fn readable<T: Serialize>(data: &T) -> Result<Value, serde_json::Error> {
    serde_json::to_value(data).map(with_times)
}

fn with_times(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>()),
        Value::Array(items) => Value::Array(items.into_iter().map(with_times).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn field((key, value): (String, Value)) -> (String, Value) {
    let at = value.as_u64().filter(|millis| *millis >= FIRST_TIME_MS).and_then(iso);
    match (key.strip_suffix("_ms"), at) {
        (Some(name), Some(at)) => (name.to_owned(), Value::String(at)),
        (_, None) | (None, _) => (key, with_times(value)),
    }
}

/// Whether milliseconds are a point in time rather than a duration.
pub(crate) const fn is_time(millis: u64) -> bool {
    millis >= FIRST_TIME_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_text_and_durations_are_numbers() {
        let data = serde_json::json!({"a": [{"since_ms": 1_700_000_000_000_u64, "soak_ms": 60_000}]});
        let expected = serde_json::json!({"a": [{"since": "2023-11-14T22:13:20.000Z", "soak_ms": 60_000}]});
        assert_eq!(readable(&data).unwrap(), expected);
    }
}
