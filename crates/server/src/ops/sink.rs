//! Sinks of events: setting, enabling and deleting them, and having events sent again.

use bellwether_api::shape::{ShapeError, reason};
use bellwether_api::v1::sink::{DesiredSink, EnableSink, ReplayEvents, SinkSpec};
use bellwether_core::access::{Claim, ObjectKind, Rights};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::secret::Secret;
use bellwether_core::records::sink::{MAX_SINKS, Sink, SinkFile, SinkTarget};
use bellwether_core::records::sink_state::SinkState;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::{Sequence, SinkRevision};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, Namespace, SinkName};
use bellwether_core::words::plural::{Plural, plural};
use bellwether_core::world::fleet::Fleet;

use super::at_revision::at_revision;
use super::params::secrets::{OpenedValue, open};
use super::{OpError, cause, event, grant};
use crate::sinks::signature::{is_reader, key_defect};
use crate::transactor::Transactor;

/// A sink, for a change.
#[derive(Debug, Clone, Copy)]
pub struct SinkScope<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// The sink.
    pub name: &'a SinkName,
    /// Who requested the change; events name them.
    pub actor: &'a Actor,
    /// The revision that it must have, 0 if it must not exist; `None` for any.
    pub only_at: Option<u64>,
}

impl<'a> SinkScope<'a> {
    /// A sink at any revision.
    #[must_use]
    pub const fn of(namespace: &'a Namespace, name: &'a SinkName, actor: &'a Actor) -> Self {
        Self { namespace, name, actor, only_at: None }
    }
}

/// Refuses a sink whose author could not read all events of the namespace: it sends them to whom they choose. Those of tokens, roles,
/// servers and freezes of all namespaces are in the namespace `default`.
///
/// # Errors
/// [`OpError::Ungrantable`] with the claim; [`OpError::Invalid`].
pub fn exportable(rights: &Rights, namespace: &Namespace) -> Result<(), OpError> {
    let access = grant::access_namespace()?;
    let is_told =
        |kind: &ObjectKind| *kind != ObjectKind::Audit && (!kind.is_global() || *namespace == access);
    let claims = ObjectKind::ALL.iter().copied().filter(is_told).map(|kind| match kind.is_global() {
        true => Claim::parse(&format!("get {}", kind.as_str())),
        false => Claim::parse(&format!("get {} in {namespace}", kind.as_str())),
    });
    let claims = claims.collect::<Result<Vec<Claim>, _>>();
    let claims = claims.map_err(|error| ShapeError::at("namespace", error))?;
    grant::grantable(rights, &claims, "set a sink, which sends all events of the namespace")
}

/// Creates a sink, or changes one; answers it, and whether it is new. The same again changes nothing. A new one sends the events from now
/// on; one that waited for its next attempt, or stopped, tries at once.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::NotFound`] for a secret that does not exist; [`OpError::Moved`] when it is not at the
/// revision that was named; [`OpError::Refused`] when there are too many, or a secret or a file is not for it.
pub async fn set(
    transactor: &Transactor,
    scope: SinkScope<'_>,
    spec: &SinkSpec,
) -> Result<(Sink, bool), OpError> {
    let SinkScope { namespace, name, actor, .. } = scope;
    let desired = spec.desired()?;
    transactor
        .compare(namespace, actor, &Key::Sink(name.clone()).into(), |_, fleet, now| {
            let before = found(fleet, scope)?;
            if before.is_none() && fleet.sinks.size() >= MAX_SINKS {
                let reason = format!("create sink {name}: the namespace has {MAX_SINKS}, which is the most");
                return Err(refused(reason, "delete those that nobody needs: bellwether sink list"));
            }
            is_possible(transactor, fleet, scope, &desired.target)?;
            let annotation = Annotation { by: actor.clone(), reason: desired.reason.clone(), at: now };
            let after = written(name, before, &desired, annotation);
            if let Some(before) = before.filter(|before| is_same(before, &after)) {
                return Ok((None, (before.clone(), false)));
            }
            let after = Sink { revision: after.revision.next_in(fleet.epoch), ..after };
            let what = if before.is_none() { "sink.created" } else { "sink.changed" };
            let said = told(what, name, &desired.reason, before, &after);
            let mut writes = vec![Write::put(Record::Sink(after.clone()))];
            match fleet.sink_states.get(name) {
                None => {
                    let state = SinkState::new(name.clone(), fleet.last_event());
                    writes.push(Write::put(Record::SinkState(state)));
                }
                Some(kept) => writes.extend(unhindered(&kept.value)),
            }
            Ok((Some(Changeset { writes, events: vec![said] }), (after, before.is_none())))
        })
        .await
}

/// Enables a sink, or disables it; answers it. One that stopped because its receiver is gone sends again once it is enabled, and
/// one that waits for its next attempt makes it at once.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Invalid`].
pub async fn enable(
    transactor: &Transactor,
    scope: SinkScope<'_>,
    request: &EnableSink,
) -> Result<Sink, OpError> {
    let SinkScope { namespace, name, actor, .. } = scope;
    let why = reason(&request.reason)?;
    transactor
        .compare(namespace, actor, &Key::Sink(name.clone()).into(), |_, fleet, now| {
            let before = found(fleet, scope)?.ok_or_else(|| missing(name))?;
            let state = fleet.sink_states.get(name).map(|kept| &*kept.value);
            let is_stopped = state.is_some_and(|state| state.stop_at(before.revision).is_some());
            let is_so = before.disabled != request.enabled && !(request.enabled && is_stopped);
            if is_so {
                // It has nothing to wait for any more.
                let retries = state.filter(|_| request.enabled).and_then(unhindered).map(|write| Changeset {
                    writes: vec![write],
                    events: vec![event("sink.retried", format!("sink/{name}"), cause(&why))],
                });
                return Ok((retries, before.clone()));
            }
            let after = Sink {
                revision: before.revision.next_in(fleet.epoch),
                disabled: !request.enabled,
                annotation: Annotation { by: actor.clone(), reason: why.clone(), at: now },
                ..before.clone()
            };
            let what = if request.enabled { "sink.enabled" } else { "sink.disabled" };
            let said = event(what, format!("sink/{name}"), cause(&why));
            let mut writes = vec![Write::put(Record::Sink(after.clone()))];
            writes.extend(state.filter(|_| request.enabled).and_then(unhindered));
            Ok((Some(Changeset { writes, events: vec![said] }), after))
        })
        .await
}

/// Has a sink send events again: those from a number on, before the next ones, or its dead letters.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Invalid`]; [`OpError::Refused`] for events that are not kept any more, or that it did not send.
pub async fn replay(
    transactor: &Transactor,
    scope: SinkScope<'_>,
    request: &ReplayEvents,
) -> Result<Sink, OpError> {
    let SinkScope { namespace, name, actor, .. } = scope;
    let why = reason(&request.reason)?;
    if request.from.is_some() == request.dead_letters {
        return Err(ShapeError::at("from", "write from or dead_letters, and not both").into());
    }
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let sink = found(fleet, scope)?.ok_or_else(|| missing(name))?;
            let kept = fleet.sink_states.get(name).ok_or_else(|| missing(name))?;
            let mut state = (*kept.value).clone();
            let mut said = event("sink.replayed", format!("sink/{name}"), cause(&why));
            match request.from.map(Sequence::new) {
                Some(from) => {
                    may_rewind(fleet, &state, from)?;
                    state.rewind(from);
                    said.after = Some(format!("{from}..{}", kept.value.cursor));
                }
                None => {
                    let count = state.resend_dead_letters();
                    if count == 0 {
                        let reason = format!("send dead letters of sink {name} again: it has none");
                        return Err(refused(reason, &format!("bellwether sink get {name}")));
                    }
                    said.after = Some(plural(count, "dead letter").to_string());
                }
            }
            let writes = vec![Write::put(Record::SinkState(state))];
            Ok((Some(Changeset { writes, events: vec![said] }), sink.clone()))
        })
        .await
}

/// Deletes a sink, and what is known of how far it is.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Moved`] when it is not at the revision that was named.
pub async fn delete(transactor: &Transactor, scope: SinkScope<'_>) -> Result<(), OpError> {
    let SinkScope { namespace, name, actor, .. } = scope;
    transactor
        .compare(namespace, actor, &Key::Sink(name.clone()).into(), |_, fleet, _| {
            let before = found(fleet, scope)?.ok_or_else(|| missing(name))?;
            let mut deleted = event("sink.deleted", format!("sink/{name}"), "it sends nothing any more");
            deleted.before = Some(describe(before));
            let keys = [Key::Sink(name.clone()), Key::SinkState(name.clone())];
            let writes = keys.into_iter().map(Write::delete).collect();
            Ok((Some(Changeset { writes, events: vec![deleted] }), ()))
        })
        .await
}

/// The sink as it is, at the revision that it must have.
fn found<'a>(fleet: &'a Fleet, scope: SinkScope<'_>) -> Result<Option<&'a Sink>, OpError> {
    let before = fleet.sinks.get(scope.name).map(|kept| &*kept.value);
    let at = before.map(|before| (before.revision.get(), &before.annotation.by));
    at_revision("sink", scope.name.as_str(), at, scope.only_at)?;
    Ok(before)
}

fn missing(name: &SinkName) -> OpError {
    OpError::NotFound(format!("sink {name}"))
}

fn refused(reason: String, hint: &str) -> OpError {
    OpError::Refused { reason, hint: Some(hint.to_owned()) }
}

/// Refuses secrets that it may not use, and a file that another sink writes.
fn is_possible(
    transactor: &Transactor,
    fleet: &Fleet,
    SinkScope { namespace, name, .. }: SinkScope<'_>,
    target: &SinkTarget,
) -> Result<(), OpError> {
    match target {
        SinkTarget::Webhook(webhook) => {
            for secret in &webhook.secrets {
                let kept = fleet.secrets.get(secret);
                let kept = kept.ok_or_else(|| OpError::NotFound(format!("secret {secret}")))?;
                if !is_reader(&kept.value, name.as_str()) {
                    let reason = format!(
                        "sign with secret {secret} in sink/{name}: it is not among the readers of the secret"
                    );
                    let known = kept.value.readers.iter().map(|known| format!("--reader {known}"));
                    let known: Vec<String> = known.collect();
                    let hint =
                        format!("bellwether secret set {secret} {} --reader sink/{name}", known.join(" "));
                    return Err(refused(reason, &hint));
                }
                is_key(transactor, namespace, &kept.value)?;
            }
            Ok(())
        }
        SinkTarget::File(file) => {
            let other = fleet.sinks.values().map(|kept| &kept.value).find(|other| {
                let shares = |own: &SinkFile| own.writes(&file.path) || file.writes(&own.path);
                other.name != *name && matches!(&other.target, SinkTarget::File(own) if shares(own))
            });
            match other {
                None => Ok(()),
                Some(other) => Err(refused(
                    format!(
                        "set sink {name}: sink {} writes the file {}, or an older one of that name",
                        other.name, file.path
                    ),
                    "write another path",
                )),
            }
        }
    }
}

/// Refuses a secret whose value is stored here and is not a valid key. That of a provider is read when an event is sent.
fn is_key(transactor: &Transactor, namespace: &Namespace, secret: &Secret) -> Result<(), OpError> {
    // What cannot be decrypted now is told of the sink once it is to send.
    let Ok(OpenedValue::Here(value)) = open(transactor.keyring(), namespace, secret) else { return Ok(()) };
    let Some(defect) = key_defect(&value) else { return Ok(()) };
    let name = &secret.name;
    let reason = format!("sign with secret {name}: {defect}");
    Err(refused(reason, &format!("write another value: bellwether secret set {name}")))
}

/// Refuses events that are not kept any more, and those that it did not come to.
fn may_rewind(fleet: &Fleet, state: &SinkState, from: Sequence) -> Result<(), OpError> {
    let name = &state.name;
    if from < fleet.oldest_event || from == Sequence::ZERO {
        let reason = format!(
            "send events of sink {name} again from {from} on: events before {} are not kept",
            fleet.oldest_event
        );
        return Err(refused(reason, &format!("bellwether sink replay {name} --from {}", fleet.oldest_event)));
    }
    if from > state.cursor {
        let newest = fleet.last_event();
        let now = match from > newest {
            true => format!("the newest event is {newest}"),
            false => format!("it is at event {}, and sends the later ones in any case", state.cursor),
        };
        let reason = format!("send events of sink {name} again from {from} on: {now}");
        let hint = match &state.retry {
            Some(retry) => format!("have event {} tried now: bellwether sink enable {name}", retry.event),
            None => format!("bellwether sink get {name}"),
        };
        return Err(refused(reason, &hint));
    }
    Ok(())
}

/// The state without what keeps it from sending, if something does.
fn unhindered(state: &SinkState) -> Option<Write> {
    if state.retry.is_none() && state.stopped.is_none() {
        return None;
    }
    let mut state = SinkState { stopped: None, ..state.clone() };
    state.retry_anew();
    Some(Write::put(Record::SinkState(state)))
}

/// The sink with what it is to be, at its present revision.
fn written(name: &SinkName, before: Option<&Sink>, desired: &DesiredSink, annotation: Annotation) -> Sink {
    let DesiredSink { target, filter, disabled, .. } = desired.clone();
    Sink {
        name: name.clone(),
        revision: before.map_or(SinkRevision::ZERO, |before| before.revision),
        target,
        filter,
        disabled,
        labels: before.map_or_else(Labels::default, |before| before.labels.clone()),
        annotation,
    }
}

fn is_same(before: &Sink, after: &Sink) -> bool {
    Sink { annotation: before.annotation.clone(), ..after.clone() } == *before
}

fn told(what: &'static str, name: &SinkName, why: &str, before: Option<&Sink>, after: &Sink) -> EventDraft {
    let mut said = event(what, format!("sink/{name}"), cause(why));
    said.before = before.map(describe);
    said.after = Some(describe(after));
    said
}

fn describe(sink: &Sink) -> String {
    let disabled = if sink.disabled { ", disabled" } else { "" };
    let how = match &sink.target {
        SinkTarget::Webhook(webhook) => {
            let names: Vec<&str> = webhook.secrets.iter().map(|name| name.as_str()).collect();
            let signed = if names.is_empty() {
                "unsigned".to_owned()
            } else {
                format!("signed by {}", names.join(", "))
            };
            let headers: Vec<&str> = webhook.headers.keys().map(String::as_str).collect();
            let headers =
                if headers.is_empty() { String::new() } else { format!(", headers {}", headers.join(", ")) };
            format!(
                "{signed}{headers}, timeout {}, at most {} and {}",
                webhook.timeout,
                Plural(u64::from(webhook.attempts), "attempt"),
                webhook.max_age
            )
        }
        SinkTarget::File(file) => format!("at most {} bytes, {} older files", file.max_bytes, file.keep),
    };
    format!("{} {} of {}: {how}{disabled}", sink.target.kind(), sink.target.place(), sink.filter)
}
