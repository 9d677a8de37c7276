//! Every field a person may write, with its meaning, default and an example: from the API's description of its shapes, and
//! from the guide's tables of the keys of configuration files.

mod field;
mod files;

use std::collections::BTreeMap;

use bellwether_api::v1::apply::{
    ClusterDocument, EnsembleDocument, EntityDocument, FilterDocument, FreezeDocument, NodeDocument,
    ParamDocument, PauseDocument, ProfileDocument, ReactionDocument, ScheduleDocument, SinkDocument,
    SlotDocument, StageDocument, TaskDocument, WorkflowDocument,
};
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::status::Status;
use serde_json::Value;
use utoipa::{PartialSchema, ToSchema};

pub(crate) use self::field::Field;
use crate::exit::{Exit, Failure};
use crate::near::nearest;

/// Longest path, in fields.
const DEEPEST: usize = 4;

/// Prefixes that may be left out of a path, in the order in which they are tried.
const PLACES: [&str; 7] =
    ["", "policy.", "entity.", "server.toml.", "agent.toml.", "agent.toml.agent.", "agent.toml.entity.NAME."];

/// What has fields.
const EXPLAINED: &str = "cluster, ensemble, entity, policy, filter, freeze, node, param, pause, profile, reaction, schedule, sink, slot, stage, task, workflow, status, server.toml, agent.toml";

/// Objects that no file contains.
const WITHOUT_FIELDS: [&str; 6] = ["rollout", "target", "service", "lock", "token", "event"];

/// The paths of all fields; none if the API's description cannot be read.
pub(crate) fn paths() -> Vec<String> {
    all().unwrap_or_default().into_iter().map(|field| field.field).collect()
}

/// The field with this path, and the fields inside it.
///
/// # Errors
/// Not found, with the nearest path as its hint.
pub(crate) fn find(table: &[Field], asked: &str) -> Result<Vec<Field>, Failure> {
    let asked = asked.replace('-', "_");
    let whole = asked.contains(".toml.") || asked.ends_with(".toml");
    let in_file = |name: &str| asked.strip_prefix(name).map(|key| format!("{name}toml.{key}"));
    let in_file = in_file("server.").or_else(|| in_file("agent.")).filter(|_| !whole);
    let asked = in_file.unwrap_or(asked);
    let full = PLACES.map(|place| format!("{place}{asked}"));
    for path in &full {
        let within = format!("{path}.");
        let part = |field: &&Field| field.field == *path || field.field.starts_with(&within);
        let found: Vec<Field> = table.iter().filter(part).cloned().collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let failure = Failure::new(Exit::No, format!("explain {asked}: the field does not exist"));
    if WITHOUT_FIELDS.contains(&asked.as_str()) {
        return Err(
            failure.hint(format!("a {asked} is not written in a file; what can be explained: {EXPLAINED}"))
        );
    }
    // The part that was written is compared: with a long prefix any field would be near.
    let near = PLACES.iter().find_map(|place| {
        let known = table.iter().filter_map(|field| field.field.strip_prefix(place));
        nearest(&asked, known).map(|near| format!("{place}{near}"))
    });
    Err(match near {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure
            .hint(format!("what can be explained: {EXPLAINED}; all fields: bellwether explain -o name")),
    })
}

/// Every field of documents, policies and configuration files.
///
/// # Errors
/// A fault of this program if the API's description cannot be read.
pub(crate) fn all() -> Result<Vec<Field>, Failure> {
    let mut shapes = Vec::new();
    ClusterDocument::schemas(&mut shapes);
    EnsembleDocument::schemas(&mut shapes);
    EntityDocument::schemas(&mut shapes);
    FreezeDocument::schemas(&mut shapes);
    ScheduleDocument::schemas(&mut shapes);
    ReactionDocument::schemas(&mut shapes);
    SinkDocument::schemas(&mut shapes);
    TaskDocument::schemas(&mut shapes);
    let unreadable = |error: serde_json::Error| Failure::ours(format!("read the API's description: {error}"));
    let mut known = BTreeMap::new();
    for (name, shape) in shapes {
        known.insert(name, serde_json::to_value(shape).map_err(unreadable)?);
    }
    let mut fields = Vec::new();
    let roots = [
        ("cluster", ClusterDocument::schema()),
        ("ensemble", EnsembleDocument::schema()),
        ("entity", EntityDocument::schema()),
        ("policy", Policy::schema()),
        ("filter", FilterDocument::schema()),
        ("freeze", FreezeDocument::schema()),
        ("node", NodeDocument::schema()),
        ("param", ParamDocument::schema()),
        ("pause", PauseDocument::schema()),
        ("profile", ProfileDocument::schema()),
        ("schedule", ScheduleDocument::schema()),
        ("reaction", ReactionDocument::schema()),
        ("sink", SinkDocument::schema()),
        ("slot", SlotDocument::schema()),
        ("stage", StageDocument::schema()),
        ("task", TaskDocument::schema()),
        ("workflow", WorkflowDocument::schema()),
    ];
    for (name, shape) in roots {
        let shape = serde_json::to_value(shape).map_err(unreadable)?;
        fields.push(explained(name, &shape, None));
        walk(name, &shape, &known, &mut fields);
    }
    let status = serde_json::to_value(Status::schema()).map_err(unreadable)?;
    let example = Some("bellwether update-status backup success".into());
    fields.push(Field { example, ..explained("status", &status, None) });
    fields.extend(files::fields());
    Ok(fields)
}

fn walk(path: &str, shape: &Value, known: &BTreeMap<String, Value>, fields: &mut Vec<Field>) {
    let Some(properties) = shape.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        let path = format!("{path}.{name}");
        let inner = referred(property).and_then(|name| known.get(name));
        fields.push(explained(&path, property, inner));
        // A policy is explained by itself.
        if let Some(inner) = inner.filter(|_| name != "policy" && path.split('.').count() < DEEPEST) {
            walk(&path, inner, known, fields);
        }
    }
}

/// A field with its description; the example of one with a fixed set of values is the first of them.
fn explained(path: &str, shape: &Value, inner: Option<&Value>) -> Field {
    let said = said(shape).unwrap_or_default().replace('\n', " ");
    let (meaning, default) = match said.split_once("Default") {
        Some((meaning, default)) => {
            let default = default.trim_start_matches([':', ' ']).trim_end_matches('.').replace('`', "");
            (meaning.trim().to_owned(), Some(default))
        }
        None => (said.trim().to_owned(), None),
    };
    let values: Vec<&str> = inner
        .and_then(|inner| inner.get("enum")?.as_array())
        .map(|values| values.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let meaning = match values.as_slice() {
        [] | [_] => meaning,
        several if several.iter().all(|value| meaning.contains(&format!("`{value}`"))) => meaning,
        several => format!("{meaning} One of: {}.", several.join(", ")),
    };
    let first = |shape: &Value, list| shape.get(list)?.as_array()?.first().cloned();
    let of_many = || first(shape, "examples").or_else(|| first(inner?, "examples"));
    let of_enum = || first(inner?, "enum");
    let example = shape.get("example").cloned().or_else(of_many).or_else(of_enum);
    Field { field: path.to_owned(), meaning, default, example }
}

/// The description of a shape; an optional one has it a level further in.
fn said(shape: &Value) -> Option<&str> {
    let own = shape.get("description").and_then(Value::as_str);
    own.or_else(|| shape.get("oneOf").and_then(Value::as_array)?.iter().find_map(said))
}

/// The name of the shape that this one refers to.
fn referred(shape: &Value) -> Option<&str> {
    let own = shape.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    own.or_else(|| shape.get("oneOf").and_then(Value::as_array)?.iter().find_map(referred))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_meaning_and_every_plain_one_an_example() {
        let fields = all().unwrap();
        for field in &fields {
            assert!(field.meaning.len() > 5, "{} has no meaning", field.field);
            let whole = fields.iter().any(|other| other.field.starts_with(&format!("{}.", field.field)));
            let of_file = field.field.contains(".toml.");
            // A policy is explained by itself, params are what a template reads, and a schema and a default are any value.
            let whole = whole
                || of_file
                || [
                    "entity.policy",
                    "schedule.policy",
                    "reaction.policy",
                    "profile.params",
                    "node.params",
                    "param.schema",
                    "param.default",
                    "task.params",
                ]
                .contains(&field.field.as_str());
            assert!(whole || field.example.is_some(), "{}", field.field);
        }
        let limit = find(&fields, "status").unwrap().pop().unwrap().meaning;
        assert!(limit.contains("at most 64 categories") && limit.contains("59 others"), "{limit}");
        for path in [
            "server.toml.listen",
            "agent.toml.entity.NAME.check.interval",
            "policy.batch",
            "policy.monitor.url",
            "policy.hooks.approval.every",
            "freeze.lasts",
            "status",
        ] {
            assert!(fields.iter().any(|field| field.field == path), "{path} is not explained");
        }
    }

    #[test]
    fn a_default_is_separate_from_the_meaning() {
        let found = find(&all().unwrap(), "batch").unwrap();
        assert_eq!(found.first().unwrap().default.as_deref(), Some("5%"));
        let deadline = find(&all().unwrap(), "policy.deadline").unwrap();
        assert_eq!(deadline.first().unwrap().default.as_deref(), Some("120s + soak"));
        let found = find(&all().unwrap(), "policy.on_failure").unwrap();
        let reaction = found.first().unwrap();
        assert_eq!(reaction.default.as_deref(), Some("rollback"));
        assert!(reaction.meaning.ends_with("One of: rollback, pause, continue."), "{}", reaction.meaning);
        let hint = find(&all().unwrap(), "policy.batsh").unwrap_err().hint.unwrap();
        assert_eq!(hint, "did you mean policy.batch?");
    }

    #[test]
    fn a_file_is_explained_as_a_whole_and_a_name_without_fields_is_not_guessed() {
        let table = all().unwrap();
        for file in ["agent.toml", "server.toml"] {
            let found = find(&table, file).unwrap();
            assert!(found.len() > 5 && found.iter().all(|field| field.field.starts_with(file)), "{file}");
        }
        let hint = find(&table, "rollout").unwrap_err().hint.unwrap();
        assert!(!hint.contains("follows"), "{hint}");
        let named = |path: &str| table.iter().any(|field| field.field == path);
        assert!(named("agent.toml.entity.NAME.needs.count") && !named("agent.toml.count"));
        for field in &table {
            let dangling = field.meaning.contains("see below") || field.meaning.contains("as above");
            assert!(!dangling, "{}: {}", field.field, field.meaning);
        }
    }
}
