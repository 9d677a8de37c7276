//! What changes between an object as it is and as it is to be, field by field.

use std::collections::BTreeMap;

use bellwether_api::v1::apply::{Document, FieldChange};
use serde_json::Value;

type Fields = BTreeMap<String, String>;

/// The fields in which two documents of an object differ, by name.
pub(super) fn between(old: Option<&Document>, new: Option<&Document>) -> Vec<FieldChange> {
    let (old, new) = (old.map(fields).unwrap_or_default(), new.map(fields).unwrap_or_default());
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let differ = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    let field = |name: &String| FieldChange {
        field: name.clone(),
        old: old.get(name).cloned(),
        new: new.get(name).cloned(),
    };
    differ.map(field).collect()
}

/// A document's fields by path, without those that say which object it is.
fn fields(document: &Document) -> Fields {
    let mut fields = Fields::new();
    if let Ok(Value::Object(object)) = serde_json::to_value(document) {
        for (key, value) in object {
            if !matches!(key.as_str(), "kind" | "name" | "all_namespaces") {
                spread(&key, &value, &mut fields);
            }
        }
    }
    fields
}

/// A value as fields: what is part of an object by its path. An empty object is a field, so that it is not lost.
fn spread(path: &str, value: &Value, fields: &mut Fields) {
    match value {
        Value::Null => {}
        Value::Object(object) if !object.is_empty() => {
            for (key, value) in object {
                spread(&format!("{path}.{key}"), value, fields);
            }
        }
        Value::String(text) => drop(fields.insert(path.to_owned(), text.clone())),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            fields.insert(path.to_owned(), value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_api::v1::apply::ProfileDocument;
    use serde_json::json;

    use super::*;

    fn profile(params: Value) -> Document {
        let params = serde_json::from_value(params).unwrap();
        Document::Profile(ProfileDocument { name: "web".to_owned(), params, ..ProfileDocument::default() })
    }

    #[test]
    fn fields_are_told_apart_by_their_paths_and_values() {
        let old = profile(json!({"a": {"b": 1, "c": []}, "d": "x"}));
        let new = profile(json!({"a": {"b": 2, "c": []}, "e": {}}));
        let lines: Vec<String> = between(Some(&old), Some(&new))
            .into_iter()
            .map(|FieldChange { field, old, new }| format!("{field} {old:?} {new:?}"))
            .collect();
        assert_eq!(
            lines,
            ["params.a.b Some(\"1\") Some(\"2\")", "params.d Some(\"x\") None", "params.e None Some(\"{}\")"]
        );
        assert!(between(Some(&old), Some(&old)).is_empty());
        assert_eq!(between(None, Some(&new)).len(), 3);
    }
}
