//! What changes between an object that is there and what a file says, field by field, both in the form the server keeps.

use std::collections::BTreeMap;
use std::fmt;

use bellwether_api::shape::{ShapeError, read, reason};
use bellwether_api::v1::entity::{Entity, EntitySpec};
use bellwether_api::v1::external::ExternalSettings;
use bellwether_api::v1::freeze::{FreezeKind, FreezeSpec, FreezeView};
use bellwether_api::v1::pause::{PauseSpec, PauseView};
use bellwether_api::v1::policy::Policy;
use bellwether_core::records::entity::{EntityKind, TargetSource};
use bellwether_core::records::freeze::FreezeScope;
use bellwether_core::words::selector::Selector;
use bellwether_core::words::time::Span;
use serde::Serialize;
use serde_json::Value;

/// One field that changes.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Field {
    field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<String>,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        write!(f, "{}: {} → {}", self.field, dash(&self.old), dash(&self.new))
    }
}

type Fields = BTreeMap<String, String>;

/// What changes of an entity.
pub(super) fn entity(old: Option<&Entity>, spec: &EntitySpec) -> Result<Vec<Field>, ShapeError> {
    let source = spec.source()?;
    let was = old.map(|old| kind(old.profile.as_deref(), old.action.as_deref())).transpose()?;
    let asked = spec.kind()?;
    if let (Some(was), Some(asked)) = (&was, &asked)
        && was != asked
    {
        return Err(ShapeError::at(
            "kind",
            format!("it is one of {was}, and stays that, not one of {asked}"),
        ));
    }
    if let Some(old) = old
        && old.external.is_some() != spec.external.is_some()
    {
        let reason = "its targets are nodes or external, and stay that; give the other one another name";
        return Err(ShapeError::at("external", reason));
    }
    let kind = asked.or(was).unwrap_or_default();
    let policy = bellwether_server::ops::entity::policy(&kind, &spec.policy)?;
    let new = of_entity(&source, &kind, &Policy::from(&policy));
    let old = match old {
        None => Fields::new(),
        Some(old) => {
            let kind = self::kind(old.profile.as_deref(), old.action.as_deref())?;
            of_entity(&self::source(old)?, &kind, &old.policy)
        }
    };
    Ok(changes(&old, &new))
}

fn source(old: &Entity) -> Result<TargetSource, ShapeError> {
    let (selector, external) = (old.selector.clone(), old.external.clone());
    EntitySpec { selector, external, ..EntitySpec::default() }.source()
}

fn kind(profile: Option<&str>, action: Option<&str>) -> Result<EntityKind, ShapeError> {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let spec = EntitySpec { profile: text(profile), action: text(action), ..EntitySpec::default() };
    Ok(spec.kind()?.unwrap_or_default())
}

fn of_entity(source: &TargetSource, kind: &EntityKind, policy: &Policy) -> Fields {
    let mut fields = Fields::new();
    match source {
        TargetSource::Nodes(selector) => drop(fields.insert("selector".to_owned(), selector.to_string())),
        TargetSource::External(patience) => {
            let external = serde_json::to_value(ExternalSettings::from(*patience)).unwrap_or_default();
            spread("external", &external, &mut fields);
        }
    }
    match kind {
        EntityKind::Version => {}
        EntityKind::Profile(profile) => drop(fields.insert("profile".to_owned(), profile.to_string())),
        EntityKind::Action(action) => drop(fields.insert("action".to_owned(), action.to_string())),
    }
    spread("policy", &serde_json::to_value(policy).unwrap_or_default(), &mut fields);
    fields
}

/// What changes of a freeze. One that ended is set again.
pub(super) fn freeze(old: Option<&FreezeView>, spec: &FreezeSpec) -> Result<Vec<Field>, ShapeError> {
    let (scope, _, lasts) = spec.read()?;
    let why = reason(&spec.why)?;
    let strength = spec.kind.unwrap_or(FreezeKind::Freeze).to_string();
    let (entity, targets) = match scope {
        FreezeScope::Everything => (None, None),
        FreezeScope::Entity(entity) => (Some(entity.to_string()), None),
        FreezeScope::Targets(selector) => (None, Some(selector.to_string())),
    };
    let new = said([
        ("entity", entity),
        ("targets", targets),
        ("strength", Some(strength)),
        ("why", Some(why)),
        ("lasts", lasts.map(|lasts| lasts.to_string())),
        ("in force", Some("yes".to_owned())),
    ]);
    let old = old.map_or_else(Fields::new, |view| {
        let old = &view.freeze;
        let lasts = old.until_ms.map(|until| Span::from_millis(until.saturating_sub(old.at_ms)).to_string());
        let in_force = if view.expired { "no, it ended" } else { "yes" };
        said([
            ("entity", old.entity.clone()),
            ("targets", old.targets.clone()),
            ("strength", Some(old.kind.to_string())),
            ("why", Some(old.why.clone())),
            ("lasts", lasts),
            ("in force", Some(in_force.to_owned())),
        ])
    });
    Ok(changes(&old, &new))
}

/// What changes of a pause. Whose it is and since when is not what a file says: it is whoever sets it.
pub(super) fn pause(old: Option<&PauseView>, spec: &PauseSpec) -> Result<Vec<Field>, ShapeError> {
    let (nodes, why) = spec.read()?;
    let fields = |nodes: &Selector, why: &str| {
        said([("nodes", Some(nodes.to_string())), ("why", Some(why.to_owned()))])
    };
    let old =
        old.map(|view| Ok::<_, ShapeError>(fields(&read("nodes", &view.pause.nodes)?, &view.pause.mark.why)));
    Ok(changes(&old.transpose()?.unwrap_or_default(), &fields(&nodes, &why)))
}

/// Those fields that say anything.
fn said<const N: usize>(values: [(&str, Option<String>); N]) -> Fields {
    values.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))).collect()
}

/// A value as fields: what is part of it by its path.
fn spread(path: &str, value: &Value, fields: &mut Fields) {
    match value {
        Value::Null => {}
        Value::Object(object) => {
            for (key, value) in object {
                spread(&format!("{path}.{key}"), value, fields);
            }
        }
        Value::String(text) => drop(fields.insert(path.to_owned(), text.clone())),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            fields.insert(path.to_owned(), value.to_string());
        }
    }
}

fn changes(old: &Fields, new: &Fields) -> Vec<Field> {
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let differ = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    let field = |name: &String| Field {
        field: name.clone(),
        old: old.get(name).cloned(),
        new: new.get(name).cloned(),
    };
    differ.map(field).collect()
}
