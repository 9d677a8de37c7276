//! Any object as a sheet: names on the left, values on the right.

use serde_json::Value;

use super::data::is_time;
use super::time::{date, length};

/// Fields as lines: names on the left, inner fields indented, empty fields left out.
pub(crate) fn lines(value: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    add(value, 0, &mut lines);
    lines
}

fn add(value: &Value, depth: usize, lines: &mut Vec<String>) {
    let Some(object) = value.as_object() else { return };
    let indent = "  ".repeat(depth);
    let wide = object.keys().map(|key| plain(key).len()).max().unwrap_or_default();
    // The name comes first, the rest in the order of their names.
    let called = object.iter().filter(|(key, _)| *key == "name");
    for (key, value) in called.chain(object.iter().filter(|(key, _)| *key != "name")) {
        let name = plain(key);
        if let Some(text) = leaf(key, value) {
            if !text.is_empty() {
                // Below its first line, so that no line of an output is taken for a field.
                let below = format!("\n{indent}{:wide$}  ", "");
                lines.push(format!("{indent}{name:<wide$}  {}", text.trim_end().replace('\n', &below)));
            }
            continue;
        }
        let mut inner = Vec::new();
        match value {
            Value::Array(items) => {
                for item in items {
                    let first = inner.len();
                    add(item, depth + 2, &mut inner);
                    if let Some(line) = inner.get_mut(first) {
                        let at = 2 * depth + 2;
                        line.replace_range(at..at + 1, "-");
                    }
                }
            }
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                add(value, depth + 1, &mut inner);
            }
        }
        if !inner.is_empty() {
            lines.push(format!("{indent}{name}"));
            lines.append(&mut inner);
        }
    }
}

/// A field's name without the unit, which the value shows.
fn plain(key: &str) -> String {
    key.strip_suffix("_ms").unwrap_or(key).replace('_', " ")
}

/// The text of a value that fits behind a name.
fn leaf(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(match (number.as_u64(), key.ends_with("_ms")) {
            (Some(millis), true) if is_time(millis) => date(millis),
            (Some(millis), true) => length(millis),
            (Some(_) | None, _) => number.to_string(),
        }),
        Value::Array(items) => {
            let leaves: Option<Vec<String>> = items.iter().map(|item| leaf(key, item)).collect();
            leaves.map(|leaves| leaves.join(", "))
        }
        Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_output_are_below_its_first_one_and_are_no_fields() {
        let text = lines(&serde_json::json!({ "tail": "one\nverdict  good\n", "verdict": "bad" })).join("\n");
        assert_eq!(text, "tail     one\n         verdict  good\nverdict  bad");
    }

    #[test]
    fn fields_read_as_a_sheet() {
        let value = serde_json::json!({
            "name": "web", "labels": {}, "soak_ms": 90_000, "stages": ["1", "100%"],
            "policy": { "fail_fast": true, "none": null },
            "failures": [ { "target": "web-1", "evidence": { "summary": "no" } } ],
        });
        let lines = lines(&value);
        let text = lines.join("\n");
        for line in ["name      web", "soak      1m 30s", "stages    1, 100%", "policy", "  fail fast  true"]
        {
            assert!(lines.iter().any(|found| found == line), "{line:?} is not in\n{text}");
        }
        assert!(text.contains("  - target") || text.contains("  - evidence"), "{text}");
        assert!(!text.contains("labels") && !text.contains("none"), "{text}");
    }
}
