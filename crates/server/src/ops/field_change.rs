//! What changes between an object as it is and as it is to be, field by field: for the answers of `apply` and for events.

use std::collections::BTreeMap;

use bellwether_api::v1::apply::{Document, FieldChange};
use bellwether_api::v1::entity::Entity;
use serde_json::Value;

type Fields = BTreeMap<String, String>;

/// Longest value in the line of an event, in characters.
const LONGEST: usize = 80;

/// The fields in which two documents of an object differ, by name.
pub(super) fn between(old: Option<&Document>, new: Option<&Document>) -> Vec<FieldChange> {
    differences(&old.map(fields).unwrap_or_default(), &new.map(fields).unwrap_or_default())
}

/// The fields of an entity that a person sets and that differ, in one line: `policy.batch 10% → 20%, owner - → kim`.
pub(super) fn of_entity(old: &Entity, new: &Entity) -> String {
    let text = |value: &Option<String>| match value {
        None => "-".to_owned(),
        Some(text) if text.chars().count() > LONGEST => {
            format!("{}…", text.chars().take(LONGEST).collect::<String>())
        }
        Some(text) => text.clone(),
    };
    let changes = differences(&entity_fields(old), &entity_fields(new)).into_iter();
    let changes =
        changes.map(|change| format!("{} {} → {}", change.field, text(&change.old), text(&change.new)));
    changes.collect::<Vec<_>>().join(", ")
}

fn entity_fields(entity: &Entity) -> Fields {
    let mut fields = Fields::new();
    if let Ok(Value::Object(object)) = serde_json::to_value(entity) {
        for key in ["selector", "external", "policy", "owner", "description", "labels"] {
            if let Some(value) = object.get(key) {
                spread(key, value, &mut fields);
            }
        }
    }
    fields
}

fn differences(old: &Fields, new: &Fields) -> Vec<FieldChange> {
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
