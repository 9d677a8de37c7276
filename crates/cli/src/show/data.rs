//! Answers as programs read them: JSON and YAML with points in time as ISO 8601 text.

use serde::Serialize;
use serde_json::{Map, Value};

use super::time::iso;
use super::visible;

/// Milliseconds from here on are a point in time rather than a duration: the year 2001.
const FIRST_TIME_MS: u64 = 1_000_000_000_000;

/// The answer as a JSON value: `since_ms`, if it is a point in time, becomes `since`, in ISO 8601 and UTC.
///
/// # Errors
/// What serde reports.
pub(crate) fn readable<T: Serialize>(data: &T) -> Result<Value, serde_json::Error> {
    serde_json::to_value(data).map(with_times)
}

/// A value as JSON in one line. What a terminal would obey is escaped.
///
/// # Errors
/// What serde reports, as text.
pub(crate) fn json_line<T: Serialize>(data: &T) -> Result<String, String> {
    serde_json::to_string(data).map(|text| escaped(&text)).map_err(|error| error.to_string())
}

/// The answer as JSON over several lines, escaped like that of [`json_line`].
///
/// # Errors
/// What serde reports, as text.
pub(crate) fn json<T: Serialize>(data: &T) -> Result<String, String> {
    let text = readable(data).and_then(|value| serde_json::to_string_pretty(&value));
    text.map(|text| escaped(&text)).map_err(|error| error.to_string())
}

/// The answer as YAML. Where it holds what a terminal would obey, which YAML has plain words for, it is written as JSON: that is YAML, too.
///
/// # Errors
/// What serde reports, as text.
pub(crate) fn yaml<T: Serialize>(data: &T) -> Result<String, String> {
    let value = readable(data).map_err(|error| error.to_string())?;
    let text = serde_norway::to_string(&value).map_err(|error| error.to_string())?;
    let is_plain = !text.chars().any(is_escaped);
    if is_plain { Ok(text) } else { json(data) }
}

fn is_escaped(c: char) -> bool {
    c != '\n' && visible::is_obeyed(c)
}

/// JSON has such characters only within texts, where each may be written as its number.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_escaped(c) {
            // None of them needs more than one unit.
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
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
    fn what_a_terminal_would_obey_is_escaped_and_means_the_same() {
        let data = serde_json::json!({"reason": "C1\u{9b}31m\u{7f}\u{202e}\u{2028} \u{1b}[1m\nü\t"});
        let is_harmless = |text: &str| text.chars().all(|c| c == '\n' || !visible::is_obeyed(c));
        let (line, lines, yaml) = (json_line(&data).unwrap(), json(&data).unwrap(), yaml(&data).unwrap());
        for text in [&line, &lines, &yaml] {
            assert!(is_harmless(text) && text.contains('ü'), "{text}");
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), data);
            assert_eq!(serde_norway::from_str::<Value>(text).unwrap(), data);
        }
        assert!(line.contains("\\u009b31m\\u007f\\u202e\\u2028 \\u001b"), "{line}");
        assert_eq!(self::yaml(&serde_json::json!({"a": ["ü\nb"]})).unwrap(), "a:\n- |-\n  ü\n  b\n");
    }

    #[test]
    fn points_in_time_are_text_and_durations_are_numbers() {
        let data = serde_json::json!({"a": [{"since_ms": 1_700_000_000_000_u64, "soak_ms": 60_000}]});
        let expected = serde_json::json!({"a": [{"since": "2023-11-14T22:13:20.000Z", "soak_ms": 60_000}]});
        assert_eq!(readable(&data).unwrap(), expected);
    }
}
