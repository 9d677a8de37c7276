//! Schemas of declared params: JSON Schema 2020-12 without references, so that a check costs what schema and value are long.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::profile::Params;
use bellwether_api::v1::secret::SecretMark;
use bellwether_core::words::name::ParamKey;
use bellwether_core::world::fleet::Fleet;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use super::keywords;

/// Keywords that refer to another schema: by them a schema could recurse, or double its cost at each step.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Longest reason of an error, in characters: it names the value.
const MAX_REASON: usize = 300;

/// Why a secret value does not fit its schema, without the value.
const HIDDEN: &str = "the value does not fit the schema of this param, which is a secret";

/// A schema that values are checked by.
#[derive(Debug)]
pub struct ParamSchema(Validator);

impl ParamSchema {
    /// Reads a schema.
    ///
    /// # Errors
    /// [`ShapeError`] naming the place in the schema.
    pub fn read(text: &str) -> Result<Self, ShapeError> {
        let schema = json(text)?;
        if let Some(place) = reference(&schema, "schema") {
            let reason = "references are not supported; write the schema in place";
            return Err(ShapeError::at(&place, reason));
        }
        // Patterns of this engine take linear time.
        let options = jsonschema::options().with_draft(Draft::Draft202012);
        let options = options.with_pattern_options(PatternOptions::regex());
        let validator = options.build(&schema).map_err(|error| {
            ShapeError::at(&format!("schema{}", error.instance_path()), short(&error.to_string()))
        })?;
        Ok(Self(validator))
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Why it does not fit, with the place in the value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let Err(error) = self.0.validate(value) else { return Ok(()) };
        let place = error.instance_path().to_string();
        let reason = short(&error.to_string());
        Err(if place.is_empty() { reason } else { format!("{place}: {reason}") })
    }
}

/// Refuses a schema with unknown keywords. One that is declared already was checked then.
///
/// # Errors
/// [`ShapeError`] naming the place of the keyword.
pub(in crate::ops) fn known_keywords(schema: &Value) -> Result<(), ShapeError> {
    keywords::check(schema, "schema")
}

/// Refuses params of which one that changes does not fit its declaration.
pub(in crate::ops) fn check(fleet: &Fleet, before: &Params, after: &Params) -> Result<(), ShapeError> {
    if fleet.params.is_empty() {
        return Ok(());
    }
    let changed = after.iter().filter(|(key, value)| before.get(*key) != Some(*value));
    for (key, value) in changed.filter(|(_, value)| SecretMark::of(value).is_none()) {
        let declared = ParamKey::parse(key).ok().and_then(|key| fleet.params.get(&key));
        if let Some(declared) = declared {
            let schema = ParamSchema::read(&declared.value.schema)?;
            let shown = |reason: String| if declared.value.secret { HIDDEN.to_owned() } else { reason };
            schema.check(value).map_err(|reason| ShapeError::at(&format!("params/{key}"), shown(reason)))?;
        }
    }
    Ok(())
}

/// A schema as JSON.
pub(in crate::ops) fn json(text: &str) -> Result<Value, ShapeError> {
    serde_json::from_str(text).map_err(|error| ShapeError::at("schema", error))
}

/// The place of a reference in a schema.
fn reference(schema: &Value, place: &str) -> Option<String> {
    match schema {
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            let place = format!("{place}/{key}");
            if REFERENCES.contains(&key.as_str()) { Some(place) } else { reference(value, &place) }
        }),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| reference(item, &format!("{place}/{index}")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn short(text: &str) -> String {
    let cut: String = text.chars().take(MAX_REASON).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Value) -> ParamSchema {
        ParamSchema::read(&schema.to_string()).unwrap()
    }

    #[test]
    fn a_value_is_checked_and_the_place_is_named() {
        let schema =
            read(&json!({"type": "object", "properties": {"port": {"type": "integer", "maximum": 65535}}}));
        schema.check(&json!({"port": 80})).unwrap();
        let wrong = schema.check(&json!({"port": 70_000})).unwrap_err();
        assert!(wrong.starts_with("/port: 70000 is greater than"), "{wrong}");
        read(&json!({})).check(&json!(null)).unwrap();
        let long = read(&json!({"type": "integer"})).check(&json!("x".repeat(1_000))).unwrap_err();
        assert!(long.chars().count() <= MAX_REASON + 1, "{long}");
    }

    #[test]
    fn wrong_schemas_are_refused_with_their_place() {
        let why = |schema: Value| ParamSchema::read(&schema.to_string()).unwrap_err().to_string();
        let wrong = why(json!({"type": "integr"}));
        assert!(wrong.starts_with("schema/type"), "{wrong}");
        let wrong = why(json!({"items": [{"$ref": "#"}]}));
        assert!(wrong.starts_with("schema/items/0/$ref: references"), "{wrong}");
        let wrong = why(json!({"allOf": [{"$dynamicRef": "other.json"}]}));
        assert!(wrong.starts_with("schema/allOf/0/$dynamicRef"), "{wrong}");
        assert!(why(json!({"pattern": "("})).starts_with("schema/pattern"));
        assert!(why(json!({"pattern": "(?=a)b"})).contains("schema"), "what this engine lacks is refused");
    }

    #[test]
    fn a_pattern_that_makes_others_backtrack_takes_linear_time() {
        let schema = read(&json!({"pattern": "^(a+)+$"}));
        assert!(schema.check(&json!(format!("{}b", "a".repeat(50_000)))).is_err());
    }
}
