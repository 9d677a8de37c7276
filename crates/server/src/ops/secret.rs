//! Secrets of a namespace: setting and deleting, and what names them. Values are written encrypted; who reads them is decided by routes.

use std::collections::BTreeMap;

use bellwether_api::shape::{ShapeError, description, read, reason};
use bellwether_api::v1::access::patterns;
use bellwether_api::v1::secret::SecretSpec;
use bellwether_core::access::NamePattern;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::secret::{Secret, SecretSource, SecretValue, SecretValues};
use bellwether_core::records::sink::{Sink, SinkTarget};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::SecretRevision;
use bellwether_core::words::name::{Actor, EnsembleName, Namespace, ProviderName, SecretName, SinkName};
use bellwether_core::words::plural::plural;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use serde_json::Value;

use super::at_revision::at_revision;
use super::ensemble_passwords::{is_reader, password_defect, provided, using};
use super::params::secrets::{ParamsOwner, secret_place, within_limit};
use super::{OpError, cause, event};
use crate::secrets::provider::Providers;
use crate::sinks::signature::{self, key_defect};
use crate::transactor::Transactor;

/// Longest description or reference, in bytes.
const MAX_TEXT_BYTES: usize = 1_024;

/// Most sinks that an error names.
const NAMED: usize = 8;

/// A secret, for a change.
#[derive(Debug, Clone, Copy)]
pub struct SecretScope<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// The secret.
    pub name: &'a SecretName,
    /// Who requested the change; events name them.
    pub actor: &'a Actor,
    /// The revision that it must have, 0 if it must not exist; `None` for any.
    pub only_at: Option<u64>,
}

/// Creates a secret, or changes one; answers it, and whether it is new. The same again changes nothing.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::Moved`] when it is not at the revision that was named; [`OpError::Keyring`].
pub async fn set(
    transactor: &Transactor,
    scope: SecretScope<'_>,
    spec: &SecretSpec,
    providers: &Providers,
) -> Result<(Secret, bool), OpError> {
    let SecretScope { namespace, name, actor, only_at } = scope;
    let (why, provider) = (reason(&spec.reason)?, provider(spec, providers)?);
    let readers = spec.readers.as_ref().map(|readers| self::readers(readers)).transpose()?;
    description(spec.description.as_deref().unwrap_or_default(), MAX_TEXT_BYTES)?;
    if let Some(value) = &spec.value {
        within_limit(value).map_err(|reason| ShapeError::at("value", reason))?;
    }
    transactor
        .compare(namespace, actor, &Key::Secret(name.clone()).into(), |world, fleet, now| {
            let before = fleet.secrets.get(name).map(|kept| &*kept.value);
            at_revision(
                "secret",
                name.as_str(),
                before.map(|before| (before.revision.get(), &before.annotation.by)),
                only_at,
            )?;
            let source = source(transactor, world, (namespace, name), (before, spec, provider.clone()))?;
            let revision = before.map_or(SecretRevision::ZERO, |before| before.revision);
            let after = Secret {
                name: name.clone(),
                revision,
                source,
                readers: match (&readers, before) {
                    (Some(readers), _) => readers.clone(),
                    (None, Some(before)) => before.readers.clone(),
                    (None, None) => vec![NamePattern::Any],
                },
                description: match (&spec.description, before) {
                    (Some(description), _) => description.clone(),
                    (None, before) => before.map(|before| before.description.clone()).unwrap_or_default(),
                },
                annotation: before
                    .map_or_else(|| Annotation::of(actor.clone(), now), |it| it.annotation.clone()),
            };
            if before == Some(&after) {
                return Ok((None, (after, false)));
            }
            keeps_sinks(fleet, before, &after)?;
            keeps_ensembles(fleet, before, &after)?;
            if let Some(value) = &spec.value {
                is_key_of_sinks(fleet, name, value)?;
                is_password_of_ensembles(fleet, name, value)?;
            }
            let annotation = Annotation { by: actor.clone(), reason: why.clone(), at: now };
            let after = Secret { revision: revision.next_in(fleet.epoch), annotation, ..after };
            let mut event = event("secret.changed", format!("secret/{name}"), cause(&why));
            event.before = before.map(|before| before.revision.to_string());
            event.after = Some(after.revision.to_string());
            let writes = vec![Write::put(Record::Secret(after.clone()))];
            Ok((Some(Changeset { writes, events: vec![event] }), (after, before.is_none())))
        })
        .await
}

/// Deletes a secret. Params that have its value keep it.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] while sinks sign with it, clients of ensembles use it, or params name it whose provider has the value.
pub async fn delete(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &SecretName,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let before = fleet.secrets.get(name).map(|kept| &*kept.value);
            let before = before.ok_or_else(|| OpError::NotFound(format!("secret {name}")))?;
            let uses = uses(fleet, name);
            let sinks: Vec<&SinkName> = signing(fleet, name).collect();
            let ensembles: Vec<&EnsembleName> = using(fleet, name).collect();
            let used = match (sinks.is_empty(), ensembles.is_empty()) {
                (true, true) => None,
                (false, _) => Some(format!("{} with it", sign(&sinks))),
                (true, false) => Some(format!("it is a password of clients of {}", named(&ensembles))),
            };
            if let Some(used) = used {
                let reason = format!("delete secret {name}: {used}");
                let hint = Some(format!("bellwether secret get {name} lists what names it"));
                return Err(OpError::Refused { reason, hint });
            }
            // Who may delete it may not be one who reads what uses it.
            if let (SecretSource::Provided { .. }, false) = (&before.source, uses.is_empty()) {
                let users = plural(uses.len(), "param");
                let reason = format!("delete secret {name}: {users} have it, and a provider has its value");
                let hint = Some(format!("bellwether secret get {name} lists what names it"));
                return Err(OpError::Refused { reason, hint });
            }
            let kept = if uses.is_empty() { "" } else { "params that have its value keep it" };
            let writes = vec![Write::delete(Key::Secret(name.clone()))];
            let mut event = event("secret.deleted", format!("secret/{name}"), kept);
            event.before = Some(before.revision.to_string());
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

/// What has the value of a secret, with its revision: the newest params as `profile/NAME/KEY` and `node/NAME/KEY`, sinks as `sink/NAME`, and
/// ensembles as `ensemble/NAME`.
#[must_use]
pub fn uses(fleet: &Fleet, name: &SecretName) -> BTreeMap<String, u64> {
    let mut uses = BTreeMap::new();
    let mut add = |owner: ParamsOwner<'_>, values: &SecretValues| {
        for (key, value) in values {
            if let SecretValue::Copy { secret, revision, .. } = value
                && secret == name
            {
                uses.insert(format!("{owner}/{key}"), revision.get());
            }
        }
    };
    for kept in fleet.node_params.values() {
        add(ParamsOwner::Node(&kept.value.node), &kept.value.secrets);
    }
    for (profile, head) in fleet.profiles.iter().filter(|(_, head)| !head.value.deleted) {
        let newest = fleet.profile_revisions.get(&(profile.clone(), head.value.newest));
        if let Some(newest) = newest {
            add(ParamsOwner::Profile(profile), &newest.value.secrets);
        }
    }
    let sinks = signing(fleet, name).map(|sink| format!("sink/{sink}"));
    let ensembles = using(fleet, name).map(|ensemble| format!("ensemble/{ensemble}"));
    if let Some(secret) = fleet.secrets.get(name) {
        uses.extend(sinks.chain(ensembles).map(|user| (user, secret.value.revision.get())));
    }
    uses
}

/// The sinks that sign with a secret.
fn signing<'a>(fleet: &'a Fleet, name: &'a SecretName) -> impl Iterator<Item = &'a SinkName> {
    let signs =
        |sink: &Sink| matches!(&sink.target, SinkTarget::Webhook(webhook) if webhook.secrets.contains(name));
    fleet.sinks.iter().filter(move |(_, kept)| signs(&kept.value)).map(|(sink, _)| sink)
}

/// That these sinks sign, with the first of their names.
fn sign(sinks: &[&SinkName]) -> String {
    let named: Vec<String> = sinks.iter().take(NAMED).map(|sink| format!("sink/{sink}")).collect();
    let more = sinks.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let verb = if sinks.len() == 1 { "signs" } else { "sign" };
    format!("{}{more} {verb}", named.join(", "))
}

/// Refuses to take a secret from sinks that sign with it: they could not send any more.
fn keeps_sinks(fleet: &Fleet, before: Option<&Secret>, after: &Secret) -> Result<(), OpError> {
    let Some(before) = before else { return Ok(()) };
    let name = &after.name;
    let is_lost = |sink: &&SinkName| {
        let may = |secret: &Secret| signature::is_reader(secret, sink.as_str());
        may(before) && !may(after)
    };
    let lost: Vec<&SinkName> = signing(fleet, name).filter(is_lost).collect();
    let Some(first) = lost.first() else { return Ok(()) };
    let reason = format!("set the readers of secret {name}: {} with it, and could not any more", sign(&lost));
    let readers = after.readers.iter().map(ToString::to_string);
    let kept = readers.chain(lost.iter().map(|sink| format!("sink/{sink}")));
    let kept: Vec<String> = kept.map(|reader| format!("--reader '{reader}'")).collect();
    let hint = format!(
        "bellwether secret set {name} {}, or have them sign with another one first: bellwether sink set {first} --secret SECRET",
        kept.join(" ")
    );
    Err(OpError::Refused { reason, hint: Some(hint) })
}

/// Refuses a value with which the sinks that sign with the secret could not sign.
fn is_key_of_sinks(fleet: &Fleet, name: &SecretName, value: &Value) -> Result<(), OpError> {
    let sinks: Vec<&SinkName> = signing(fleet, name).collect();
    match key_defect(value).filter(|_| !sinks.is_empty()) {
        None => Ok(()),
        Some(defect) => {
            Err(ShapeError::at("value", format!("{} with it, and {defect}", sign(&sinks))).into())
        }
    }
}

/// The first of these ensembles.
fn named(ensembles: &[&EnsembleName]) -> String {
    let named: Vec<String> = ensembles.iter().take(NAMED).map(|name| format!("ensemble/{name}")).collect();
    let more = ensembles.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// Refuses to take a secret from ensembles whose clients use it, and to have a provider keep it: new members could not have it.
fn keeps_ensembles(fleet: &Fleet, before: Option<&Secret>, after: &Secret) -> Result<(), OpError> {
    let Some(before) = before else { return Ok(()) };
    let name = &after.name;
    let all: Vec<&EnsembleName> = using(fleet, name).collect();
    let lost = all.iter().filter(|ensemble| is_reader(before, ensemble) && !is_reader(after, ensemble));
    let lost: Vec<&EnsembleName> = lost.copied().collect();
    if let SecretSource::Provided { .. } = &after.source
        && !all.is_empty()
    {
        let reason = format!(
            "have a provider keep secret {name}: it is a password of clients of {}, and {}",
            named(&all),
            provided()
        );
        return Err(OpError::Refused { reason, hint: None });
    }
    if lost.is_empty() {
        return Ok(());
    }
    let reason = format!("set the readers of secret {name}: it is a password of clients of {}", named(&lost));
    let readers = after.readers.iter().map(ToString::to_string);
    let kept = readers.chain(lost.iter().map(|ensemble| format!("ensemble/{ensemble}")));
    let kept: Vec<String> = kept.map(|reader| format!("--reader '{reader}'")).collect();
    let hint = format!("bellwether secret set {name} {}", kept.join(" "));
    Err(OpError::Refused { reason, hint: Some(hint) })
}

/// Refuses a value that is no password for the ensembles whose clients use the secret.
fn is_password_of_ensembles(fleet: &Fleet, name: &SecretName, value: &Value) -> Result<(), OpError> {
    let all: Vec<&EnsembleName> = using(fleet, name).collect();
    match password_defect(value).filter(|_| !all.is_empty()) {
        None => Ok(()),
        Some(defect) => {
            let reason = format!("it is a password of clients of {}, and {defect}", named(&all));
            Err(ShapeError::at("value", reason).into())
        }
    }
}

/// Where the value is after a change: the same record if that says the same.
fn source(
    transactor: &Transactor,
    world: &World,
    (namespace, name): (&Namespace, &SecretName),
    (before, spec, provided): (Option<&Secret>, &SecretSpec, Option<SecretSource>),
) -> Result<SecretSource, OpError> {
    let (keyring, place) = (transactor.keyring(), secret_place(namespace, name));
    match (provided, &spec.value, before.map(|before| &before.source)) {
        (Some(provided), _, _) => Ok(provided),
        (None, Some(value), before) => {
            if let Some(SecretSource::Stored(text)) = before
                && keyring.is_of(&place, text, value)
            {
                return Ok(SecretSource::Stored(text.clone()));
            }
            Ok(SecretSource::Stored(keyring.seal(&keyring.active(world)?, &place, value)?))
        }
        (None, None, Some(before)) => Ok(before.clone()),
        (None, None, None) => {
            let reason = "a new secret needs a value, or a provider and a reference";
            Err(ShapeError::at("value", reason).into())
        }
    }
}

/// The source of a secret that a provider has; `None` if the spec names none.
fn provider(spec: &SecretSpec, providers: &Providers) -> Result<Option<SecretSource>, OpError> {
    let (name, reference) = match (&spec.provider, &spec.reference) {
        (None, None) => return Ok(None),
        (Some(name), Some(reference)) => (name, reference),
        (Some(_), None) => {
            return Err(ShapeError::at("reference", "missing; what is the provider asked for?").into());
        }
        (None, Some(_)) => {
            return Err(ShapeError::at("provider", "missing; a reference is for a provider").into());
        }
    };
    if spec.value.is_some() {
        return Err(ShapeError::at("value", "a secret has a value or a provider, not both").into());
    }
    if reference.is_empty() || reference.len() > MAX_TEXT_BYTES || reference.starts_with('-') {
        let reason = format!("write 1 to {MAX_TEXT_BYTES} bytes that do not begin with '-'");
        return Err(ShapeError::at("reference", reason).into());
    }
    let name: ProviderName = read("provider", name)?;
    if !providers.names().any(|known| *known == name) {
        let known: Vec<&str> = providers.names().map(ProviderName::as_str).collect();
        let known =
            if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        let reason = format!("{name} is not in secret_providers of this server's configuration; {known}");
        return Err(ShapeError::at("provider", reason).into());
    }
    Ok(Some(SecretSource::Provided { provider: name, reference: reference.clone() }))
}

fn readers(texts: &[String]) -> Result<Vec<NamePattern>, ShapeError> {
    for text in texts {
        let known = ["profile/", "node/", "sink/", "ensemble/"].iter().any(|kind| text.starts_with(kind));
        if !known && text != "*" {
            let reason = format!("{text:?} is not profile/NAME, node/NAME, sink/NAME, ensemble/NAME or *");
            return Err(ShapeError::at("readers", reason));
        }
    }
    patterns("readers", texts)
}
