//! Operations on freezes of one namespace or of all: set, delete. Deciders apply them.

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::freeze::{FreezeSpec, FreezeView};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::freeze::{Freeze, FreezeKind, FreezeScope, lift_command};
use bellwether_core::records::key::global::{GlobalKey, GlobalRecord};
use bellwether_core::records::key::{AnyKey, AnyRecord, Key, Record};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, EntityName, FreezeName, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::{OpError, cause, event, reason};
use crate::transactor::Transactor;

/// The scope of a freeze.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FreezeNamespace {
    /// One namespace.
    In(Namespace),
    /// All namespaces.
    Everywhere,
}

impl FreezeNamespace {
    /// The namespace whose event log has its events.
    fn home(&self) -> Result<Namespace, ShapeError> {
        match self {
            Self::In(namespace) => Ok(namespace.clone()),
            Self::Everywhere => read("namespace", "default"),
        }
    }

    fn find<'a>(&self, world: &'a World, fleet: &'a Fleet, name: &FreezeName) -> Option<&'a Freeze> {
        let found = match self {
            Self::In(_) => fleet.freezes.get(name),
            Self::Everywhere => world.freezes.get(name),
        };
        found.map(|kept| &*kept.value)
    }

    const fn suffix(&self) -> &'static str {
        match self {
            Self::In(_) => "",
            Self::Everywhere => ", in all namespaces",
        }
    }
}

/// Sets a freeze, replacing any of its name. Returns it, and whether it is new. One without an end that is set again as it is stays
/// unchanged.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::Refused`] when it would end a stop, or a part of it.
pub async fn put(
    transactor: &Transactor,
    place: &FreezeNamespace,
    actor: &Actor,
    name: &FreezeName,
    spec: &FreezeSpec,
) -> Result<(FreezeView, bool), OpError> {
    let (scope, kind, lasts) = spec.read()?;
    let reason = reason(&spec.reason)?;
    transactor
        .change(&place.home()?, actor, |world, fleet, now| {
            let freeze = Freeze {
                name: name.clone(),
                scope: scope.clone(),
                kind,
                annotation: Annotation { by: actor.clone(), reason: reason.clone(), at: now },
                until: lasts.map(|lasts| now.plus(lasts)),
                labels: Labels::default(),
            };
            let old = place.find(world, fleet, name);
            if let Some(old) = old.filter(|old| old.is_in_force(now)) {
                refuse_weaker(place, old, &freeze)?;
            }
            let global = *place == FreezeNamespace::Everywhere;
            let hint = hint(&freeze, (!global).then_some(fleet));
            if let Some(old) = old.filter(|old| is_same(old, &freeze)) {
                return Ok((None, (FreezeView { hint, ..FreezeView::at(old, global, now) }, false)));
            }
            let view = FreezeView { hint, ..FreezeView::at(&freeze, global, now) };
            let event = EventDraft {
                before: old.map(|old| words(old, now)),
                after: Some(words(&freeze, now) + place.suffix()),
                ..event("freeze.on", format!("freeze/{name}"), cause(&reason))
            };
            let is_new = old.is_none();
            let record = match place {
                FreezeNamespace::In(_) => AnyRecord::from(Record::Freeze(freeze)),
                FreezeNamespace::Everywhere => GlobalRecord::Freeze(freeze).into(),
            };
            Ok((Some(Changeset { writes: vec![Write::put(record)], events: vec![event] }), (view, is_new)))
        })
        .await
}

/// Whether a freeze without an end is set again as it is.
fn is_same(old: &Freeze, new: &Freeze) -> bool {
    let endless = old.until.is_none() && new.until.is_none();
    endless
        && (&old.scope, old.kind, &old.annotation.reason) == (&new.scope, new.kind, &new.annotation.reason)
}

/// Refuses to replace a stop in force with a freeze, or with a stop of something else: what it stops would continue.
fn refuse_weaker(place: &FreezeNamespace, old: &Freeze, new: &Freeze) -> Result<(), OpError> {
    let weaker = match new.kind {
        FreezeKind::Freeze => true,
        FreezeKind::Stop => new.scope != old.scope && new.scope != FreezeScope::Everything,
    };
    if old.kind != FreezeKind::Stop || !weaker {
        return Ok(());
    }
    let (name, stopped) = (&old.name, covered(&old.scope));
    let by = match new.kind {
        FreezeKind::Freeze => "a freeze".to_owned(),
        FreezeKind::Stop => format!("a stop of {}", covered(&new.scope)),
    };
    let reason = format!("replace {name} with {by}: it stops {stopped}");
    let lift = lift_command(name, matches!(place, FreezeNamespace::Everywhere));
    Err(OpError::Refused { reason, hint: Some(format!("lift it: {lift}")) })
}

/// Deletes a freeze.
///
/// # Errors
/// [`OpError::NotFound`], also for a freeze of all namespaces when the scope is one namespace.
pub async fn delete(
    transactor: &Transactor,
    place: &FreezeNamespace,
    actor: &Actor,
    name: &FreezeName,
) -> Result<(), OpError> {
    transactor
        .change(&place.home()?, actor, |world, fleet, now| {
            let Some(old) = place.find(world, fleet, name) else {
                return Err(OpError::NotFound(missing(world, place, name)));
            };
            let key = match place {
                FreezeNamespace::In(_) => AnyKey::from(Key::Freeze(name.clone())),
                FreezeNamespace::Everywhere => GlobalKey::Freeze(name.clone()).into(),
            };
            let before = Some(words(old, now) + place.suffix());
            let ended =
                format!("ended; it was set by {}: {}", old.annotation.by, cause(&old.annotation.reason));
            let event = EventDraft { before, ..event("freeze.off", format!("freeze/{name}"), ended) };
            Ok((Some(Changeset { writes: vec![Write::Delete(key)], events: vec![event] }), ()))
        })
        .await
}

/// The object of a "not found" error.
pub(crate) fn missing(world: &World, place: &FreezeNamespace, name: &FreezeName) -> String {
    match place {
        FreezeNamespace::In(namespace) if world.freezes.contains_key(name) => {
            format!("freeze {name} of namespace {namespace}: the freeze of that name is of all namespaces")
        }
        FreezeNamespace::In(_) => format!("freeze {name}"),
        FreezeNamespace::Everywhere => format!("freeze {name} of all namespaces"),
    }
}

/// Refuses to resume while a freeze stops running rollouts.
///
/// # Errors
/// [`OpError::Refused`] naming the freeze and how to end it.
pub(super) fn refuse_if_stopped(
    world: &World,
    fleet: &Fleet,
    name: &EntityName,
    now: Timestamp,
) -> Result<(), OpError> {
    let own = fleet.freezes.values().map(|kept| (&*kept.value, false));
    let global = world.freezes.values().map(|kept| (&*kept.value, true));
    let stop = own.chain(global).find(|(freeze, _)| {
        freeze.kind == FreezeKind::Stop && freeze.is_in_force(now) && freeze.covers(name)
    });
    let Some((stop, is_global)) = stop else { return Ok(()) };
    let reason = format!(
        "resume the rollout: it is stopped by {} ({}: {})",
        stop.name,
        stop.annotation.by,
        cause(&stop.annotation.reason)
    );
    let hint = format!("lift it, and the rollout continues: {}", lift_command(&stop.name, is_global));
    Err(OpError::Refused { reason, hint: Some(hint) })
}

/// A hint at likely mistakes in a freeze.
fn hint(freeze: &Freeze, fleet: Option<&Fleet>) -> Option<String> {
    match (&freeze.scope, fleet) {
        (FreezeScope::Entity(entity), Some(fleet)) if !fleet.entities.contains_key(entity) => {
            Some(format!("entity {entity} does not exist, so the freeze has no effect yet"))
        }
        _ if freeze.kind == FreezeKind::Stop && freeze.annotation.reason.is_empty() => {
            Some("add a reason for others: --reason".to_owned())
        }
        (FreezeScope::Everything | FreezeScope::Entity(_) | FreezeScope::Targets(_), _) => None,
    }
}

/// What a freeze covers.
fn covered(scope: &FreezeScope) -> String {
    match scope {
        FreezeScope::Everything => "everything".to_owned(),
        FreezeScope::Entity(entity) => format!("entity {entity}"),
        FreezeScope::Targets(selector) => format!("targets {selector}"),
    }
}

/// A summary of a freeze.
fn words(freeze: &Freeze, now: Timestamp) -> String {
    let kind = match freeze.kind {
        FreezeKind::Freeze => "freeze",
        FreezeKind::Stop => "stop",
    };
    let scope = covered(&freeze.scope);
    match freeze.until {
        None => format!("{kind} of {scope}"),
        Some(until) if freeze.is_in_force(now) => format!("{kind} of {scope} for {}", until.since(now)),
        Some(_) => format!("{kind} of {scope}, ended"),
    }
}
