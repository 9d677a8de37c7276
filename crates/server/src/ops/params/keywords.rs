//! The keywords of JSON Schema 2020-12. The standard ignores one that it does not know, so that a mistyped one would check nothing.

use bellwether_api::shape::ShapeError;
use bellwether_core::words::near::nearest;
use serde_json::Value;

/// Keywords with a schema, or with a list of schemas.
const OF_SCHEMAS: [&str; 17] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    // References are refused with a reason of their own.
    "$ref",
    "$dynamicRef",
];

/// Keywords with schemas by names of any kind.
const OF_NAMED_SCHEMAS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Keywords whose values are no schemas.
const OF_VALUES: [&str; 36] = [
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$id",
    "$schema",
    "$vocabulary",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
];

/// Refuses a schema with a keyword that is neither of the standard nor begins with `x-`.
///
/// # Errors
/// [`ShapeError`] with the place of the keyword and the nearest one that there is.
pub(super) fn check(schema: &Value, place: &str) -> Result<(), ShapeError> {
    let Value::Object(members) = schema else { return Ok(()) };
    for (keyword, value) in members {
        let place = format!("{place}/{keyword}");
        let keyword = keyword.as_str();
        if OF_SCHEMAS.contains(&keyword) {
            check(value, &place)?;
            let mut items = value.as_array().into_iter().flatten().enumerate();
            items.try_for_each(|(index, item)| check(item, &format!("{place}/{index}")))?;
        } else if OF_NAMED_SCHEMAS.contains(&keyword) {
            let mut named = value.as_object().into_iter().flatten();
            named.try_for_each(|(name, schema)| check(schema, &format!("{place}/{name}")))?;
        } else if !OF_VALUES.contains(&keyword) && !keyword.starts_with("x-") {
            return Err(unknown(keyword, &place));
        }
    }
    Ok(())
}

fn unknown(keyword: &str, place: &str) -> ShapeError {
    let known = OF_SCHEMAS.iter().chain(&OF_NAMED_SCHEMAS).chain(&OF_VALUES).copied();
    let meant = nearest(keyword, known).map_or_else(String::new, |near| format!("did you mean {near}? "));
    let reason = format!("not a keyword of JSON Schema 2020-12; {meant}keywords of your own begin with x-");
    ShapeError::at(place, reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_keyword_is_refused_with_its_place_and_the_nearest_one() {
        let why = |schema: Value| check(&schema, "schema").unwrap_err().to_string();
        for (schema, says) in [
            (
                json!({"typ": "integer"}),
                "schema/typ: not a keyword of JSON Schema 2020-12; did you mean type?",
            ),
            (json!({"properties": {"a": {"requierd": ["b"]}}}), "schema/properties/a/requierd: "),
            (json!({"allOf": [{}, {"maxLenght": 2}]}), "schema/allOf/1/maxLenght: "),
            (json!({"items": {"not": {"enumm": []}}}), "schema/items/not/enumm: "),
            (json!({"dependencies": {}}), "schema/dependencies: "),
        ] {
            let said = why(schema);
            assert!(said.starts_with(says), "{said}");
        }
    }

    #[test]
    fn names_values_comments_and_keywords_of_ones_own_are_no_keywords() {
        let schema = json!({
            "$comment": "ports", "x-form": {"widget": "slider"}, "properties": {"typ": {"type": "integer"}},
            "patternProperties": {"^requierd": true}, "const": {"typ": 1}, "default": {"typ": 1}, "enum": [{"typ": 1}],
        });
        check(&schema, "schema").unwrap();
        check(&Value::Bool(true), "schema").unwrap();
    }
}
