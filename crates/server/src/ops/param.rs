//! Declarations of params: schema, default and description. A declared param has valid values wherever it is written from then on.

use bellwether_api::shape::{ShapeError, description};
use bellwether_api::v1::param::{Param, ParamSpec};
use bellwether_api::v1::profile::{Params, params};
use bellwether_api::v1::secret::SecretMark;
use bellwether_core::access::{Identity, ObjectKind, Right};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::param::{MAX_SCHEMA_BYTES, ParamDeclaration};
use bellwether_core::verdict::Write;
use bellwether_core::words::name::{Namespace, ParamKey};
use bellwether_core::world::fleet::Fleet;
use serde_json::Value;

use super::params::schema::{self, ParamSchema};
use super::profile::{defaults, defaults_profile, set_default};
use super::{OpError, event};
use crate::transactor::Transactor;

/// Longest description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 1_024;

/// Declares a param, or changes its declaration; answers it, and whether it is new.
///
/// # Errors
/// [`OpError::Invalid`] naming the place in the schema or the default; [`OpError::Refused`] naming a value that does not fit.
pub async fn declare(
    transactor: &Transactor,
    (namespace, who): (&Namespace, &Identity),
    key: &ParamKey,
    spec: &ParamSpec,
) -> Result<(Param, bool), OpError> {
    let actor = &who.actor();
    description(&spec.description, MAX_DESCRIPTION_BYTES)?;
    let wanted = Value::Object(spec.schema.clone());
    let text = wanted.to_string();
    if text.len() > MAX_SCHEMA_BYTES {
        let reason = format!("{} bytes as JSON; at most {MAX_SCHEMA_BYTES} are allowed", text.len());
        return Err(ShapeError::at("schema", reason).into());
    }
    let schema = ParamSchema::read(&text)?;
    schema::known_keywords(&wanted)?;
    if spec.secret && spec.default.is_some() {
        let reason = "a secret param has no default; set it in the profile global, which every node reads";
        return Err(ShapeError::at("default", reason).into());
    }
    if let Some(default) = &spec.default {
        schema.check(default).map_err(|reason| ShapeError::at("default", reason))?;
    }
    transactor
        .compare(namespace, actor, &Key::Profile(defaults_profile()).into(), |world, fleet, now| {
            // Values that are changed together with the schema are checked when all are: `still_fits`.
            if !transactor.is_draft() {
                fits((namespace, fleet), who, key, &schema)?;
            }
            if spec.secret {
                has_no_plain_value((namespace, fleet), who, key)?;
            }
            let before = fleet.params.get(key).map(|kept| &*kept.value);
            stays_secret(before, spec)?;
            let annotation = Annotation::of(actor.clone(), now);
            let after = ParamDeclaration {
                key: key.clone(),
                schema: text.clone(),
                description: spec.description.clone(),
                secret: spec.secret,
                annotation,
            };
            let said =
                |param: &ParamDeclaration| (param.schema.clone(), param.description.clone(), param.secret);
            let same = before.filter(|before| said(before) == said(&after));
            let (keyring, default) = (transactor.keyring(), spec.default.as_ref());
            let mut changeset = set_default((world, fleet), keyring, (namespace, who), (key, default), now)?;
            if same.is_none() {
                changeset.writes.push(Write::put(Record::Param(after.clone())));
                changeset.events.push(event("param.declared", format!("param/{key}"), &*spec.description));
            }
            let changes = (!changeset.writes.is_empty()).then_some(changeset);
            let shown = same.cloned().unwrap_or(after);
            Ok((changes, (shape(&shown, spec.default.clone())?, before.is_none())))
        })
        .await
}

/// Deletes the declaration of a param, and its default. Values stay.
///
/// # Errors
/// [`OpError::NotFound`].
pub async fn undeclare(
    transactor: &Transactor,
    (namespace, who): (&Namespace, &Identity),
    key: &ParamKey,
) -> Result<(), OpError> {
    transactor
        .compare(namespace, &who.actor(), &Key::Profile(defaults_profile()).into(), |world, fleet, now| {
            if fleet.params.get(key).is_none() {
                return Err(OpError::NotFound(format!("declared param {key}")));
            }
            let mut changeset =
                set_default((world, fleet), transactor.keyring(), (namespace, who), (key, None), now)?;
            changeset.writes.push(Write::delete(Key::Param(key.clone())));
            changeset.events.push(event(
                "param.undeclared",
                format!("param/{key}"),
                "values stay as they are",
            ));
            Ok((Some(changeset), ()))
        })
        .await
}

/// The declared params, by key.
///
/// # Errors
/// [`ShapeError`] if a record cannot be read.
pub fn list(fleet: &Fleet) -> Result<Vec<Param>, ShapeError> {
    let defaults = defaults(fleet)?;
    let all = fleet.params.values().map(|kept| &*kept.value);
    all.map(|param| shape(param, defaults.get(param.key.as_str()).cloned())).collect()
}

/// One declared param; `None` if there is none of this key.
///
/// # Errors
/// [`ShapeError`] if a record cannot be read.
pub fn get(fleet: &Fleet, key: &ParamKey) -> Result<Option<Param>, ShapeError> {
    let Some(kept) = fleet.params.get(key) else { return Ok(None) };
    shape(&kept.value, defaults(fleet)?.get(key.as_str()).cloned()).map(Some)
}

fn shape(from: &ParamDeclaration, default: Option<Value>) -> Result<Param, ShapeError> {
    Ok(Param {
        key: from.key.to_string(),
        schema: schema::json(&from.schema)?,
        default,
        description: from.description.clone(),
        secret: from.secret,
        by: from.annotation.by.to_string(),
        at_ms: from.annotation.at.as_millis(),
    })
}

/// Refuses to end the secrecy of a param by a declaration that only does not mention it.
fn stays_secret(before: Option<&ParamDeclaration>, spec: &ParamSpec) -> Result<(), OpError> {
    let Some(before) = before.filter(|before| before.secret && !spec.secret) else { return Ok(()) };
    let key = &before.key;
    let reason = format!("declare param {key}: it is secret, and the new declaration would make it plain");
    let hint = format!(
        "declare it with secret: true (--secret), or, if its next values are to be readable, delete the declaration first: \
         bellwether param delete {key}"
    );
    Err(OpError::Refused { reason, hint: Some(hint) })
}

/// Refuses to make a secret of a param that has a value in plain text: it would stay where it is stored, in old revisions and in backups.
fn has_no_plain_value(
    (namespace, fleet): (&Namespace, &Fleet),
    who: &Identity,
    key: &ParamKey,
) -> Result<(), OpError> {
    let is_plain = |text: &str| -> Result<bool, ShapeError> {
        if !text.contains(key.as_str()) {
            return Ok(false);
        }
        Ok(params(text)?.get(key.as_str()).is_some_and(|value| SecretMark::of(value).is_none()))
    };
    let refused = |whose: String| {
        let reason = format!("make a secret of param {key}: {whose} has a value of it in plain text");
        let hint =
            "declare a new key for the secret, set it, and remove the old one where it is used".to_owned();
        OpError::Refused { reason, hint: Some(hint) }
    };
    for (name, kept) in fleet.node_params.iter() {
        if is_plain(&kept.value.params)? {
            return Err(refused(whose(who, namespace, Right::get(ObjectKind::Node), name.as_str())));
        }
    }
    for ((name, number), kept) in fleet.profile_revisions.iter() {
        if is_plain(&kept.value.params)? {
            let profile = whose(who, namespace, Right::get(ObjectKind::Profile), name.as_str());
            return Err(refused(format!("revision {number} of {profile}")));
        }
    }
    Ok(())
}

/// Refuses a declaration on a draft that a value does not fit once the draft has all its changes.
///
/// # Errors
/// [`OpError::Refused`] naming whose value it is.
pub(super) fn still_fits(
    (namespace, fleet): (&Namespace, &Fleet),
    who: &Identity,
    key: &ParamKey,
) -> Result<(), OpError> {
    match fleet.params.get(key) {
        Some(kept) => fits((namespace, fleet), who, key, &ParamSchema::read(&kept.value.schema)?),
        None => Ok(()),
    }
}

/// A node or a profile in a sentence, for a caller who may not know it.
fn whose(who: &Identity, namespace: &Namespace, reading: Right, name: &str) -> String {
    match who.require(&reading.on(Some(name), Some(namespace.as_str()))) {
        Ok(()) => format!("{} {name}", reading.kind.as_str()),
        Err(_) => format!("a {} that you may not read", reading.kind.as_str()),
    }
}

/// Refuses a schema that a value does not fit: of a node, or of the newest revision of a profile.
fn fits(
    (namespace, fleet): (&Namespace, &Fleet),
    who: &Identity,
    key: &ParamKey,
    schema: &ParamSchema,
) -> Result<(), OpError> {
    // The caller may not read whose value it is, so the value is not named.
    let refused = |whose: String| {
        let reason = format!("declare param {key}: {whose} has a value that does not fit the schema");
        OpError::Refused { reason, hint: Some("change the value first, or widen the schema".to_owned()) }
    };
    let check = |text: &str, whose: &dyn Fn() -> String| {
        let found: Params = params(text)?;
        let plain = found.get(key.as_str()).filter(|value| SecretMark::of(value).is_none());
        match plain.map(|value| schema.check(value)) {
            Some(Err(_)) => Err(refused(whose())),
            Some(Ok(())) | None => Ok(()),
        }
    };
    // Most nodes have no params, and most that do lack this one: text that does not name it is not read.
    let names = |text: &str| text.contains(key.as_str());
    for (name, kept) in fleet.node_params.iter().filter(|(_, kept)| names(&kept.value.params)) {
        check(&kept.value.params, &|| whose(who, namespace, Right::get(ObjectKind::Node), name.as_str()))?;
    }
    for (name, head) in fleet.profiles.iter().filter(|(name, _)| **name != defaults_profile()) {
        let newest = fleet.profile_revisions.get(&(name.clone(), head.value.newest));
        if let Some(newest) = newest.filter(|newest| names(&newest.value.params)) {
            check(&newest.value.params, &|| {
                whose(who, namespace, Right::get(ObjectKind::Profile), name.as_str())
            })?;
        }
    }
    Ok(())
}
