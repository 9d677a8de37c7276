//! What a change changed, field by field, in one line.

use std::collections::BTreeMap;

use serde_json::Value;

/// The fields that differ, like `batch 5% → 20%`, joined by commas; none if nothing differs.
pub(crate) fn differences(before: &Value, after: &Value) -> Option<String> {
    let (before, after) = (leaves(before), leaves(after));
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let text = |value: Option<&String>| value.map_or("-", String::as_str).to_owned();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let changed =
        changed.map(|name| format!("{name} {} → {}", text(before.get(name)), text(after.get(name))));
    let changed: Vec<String> = changed.collect();
    (!changed.is_empty()).then(|| changed.join(", "))
}

/// Every plain value with the name of its field; of a policy the field alone, for it is what people write.
fn leaves(value: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect("", value, &mut found);
    found
}

fn collect(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path =
                    if path.is_empty() || path == "policy" { key.clone() } else { format!("{path}.{key}") };
                collect(&path, value, found);
            }
        }
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            if !items.is_empty() {
                found.insert(path.to_owned(), items.join(","));
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            found.insert(path.to_owned(), plain(value));
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_the_fields_that_differ() {
        let before = serde_json::json!({"selector": "all", "policy": {"batch": "10%", "windows": []}});
        let after = serde_json::json!({"selector": "all", "policy": {"batch": "20%", "windows": ["Mon"]}});
        assert_eq!(differences(&before, &after).unwrap(), "batch 10% → 20%, windows - → Mon");
        assert_eq!(differences(&after, &after), None);
    }
}
