//! Freezes: setting and ending, of one namespace or of all of them. What they keep from happening is the deciders' business.

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::freeze::{FreezeSpec, FreezeView};
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::freeze::{Freeze, FreezeKind, FreezeScope};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, EntityName, FreezeName, Namespace};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::{OpError, cause, event, reason};
use crate::transactor::Transactor;

/// Where a freeze holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FreezeNamespace {
    /// In one namespace.
    In(Namespace),
    /// In every namespace.
    Everywhere,
}

impl FreezeNamespace {
    /// The namespace whose event log tells of it.
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
            Self::Everywhere => ", in every namespace",
        }
    }
}

/// Sets a freeze, in place of any of its name. Answers it, and whether it is new.
///
/// # Errors
/// [`OpError::Invalid`] naming the field.
pub async fn put(
    transactor: &Transactor,
    place: &FreezeNamespace,
    actor: &Actor,
    name: &FreezeName,
    spec: &FreezeSpec,
) -> Result<(FreezeView, bool), OpError> {
    let (scope, strength, lasts) = spec.read()?;
    let why = reason(&spec.why)?;
    transactor
        .change(&place.home()?, actor, |world, fleet, now| {
            let freeze = Freeze {
                name: name.clone(),
                scope: scope.clone(),
                strength,
                by: actor.clone(),
                why: why.clone(),
                at: now,
                until: lasts.map(|lasts| now.plus(lasts)),
                labels: Labels::default(),
            };
            let old = place.find(world, fleet, name);
            let global = *place == FreezeNamespace::Everywhere;
            let hint = hint(&freeze, (!global).then_some(fleet));
            let view = FreezeView { hint, ..FreezeView::at(&freeze, global, now) };
            let event = EventDraft {
                before: old.map(|old| words(old, now)),
                after: Some(words(&freeze, now) + place.suffix()),
                ..event("freeze.on", format!("freeze/{name}"), cause(&why))
            };
            let is_new = old.is_none();
            let record = match place {
                FreezeNamespace::In(_) => Record::Freeze(freeze),
                FreezeNamespace::Everywhere => Record::GlobalFreeze(freeze),
            };
            Ok((Some(Changeset { writes: vec![Write::put(record)], events: vec![event] }), (view, is_new)))
        })
        .await
}

/// Ends a freeze.
///
/// # Errors
/// [`OpError::NotFound`], also for one that holds in every namespace when one of a single namespace is meant.
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
                FreezeNamespace::In(_) => Key::Freeze(name.clone()),
                FreezeNamespace::Everywhere => Key::GlobalFreeze(name.clone()),
            };
            let before = Some(words(old, now) + place.suffix());
            let ended = format!("it was ended; it was set by {}: {}", old.by, cause(&old.why));
            let event = EventDraft { before, ..event("freeze.off", format!("freeze/{name}"), ended) };
            Ok((Some(Changeset { writes: vec![Write::Delete(key)], events: vec![event] }), ()))
        })
        .await
}

/// What cannot be found.
pub(crate) fn missing(world: &World, place: &FreezeNamespace, name: &FreezeName) -> String {
    match place {
        FreezeNamespace::In(namespace) if world.freezes.contains_key(name) => {
            format!("freeze {name} of namespace {namespace}: the one of that name holds in every namespace")
        }
        FreezeNamespace::In(_) => format!("freeze {name}"),
        FreezeNamespace::Everywhere => format!("freeze {name} of every namespace"),
    }
}

/// Refuses to go on while a stop is in force.
///
/// # Errors
/// [`OpError::Refused`] naming the stop and how to end it.
pub(super) fn no_stop(
    world: &World,
    fleet: &Fleet,
    name: &EntityName,
    now: Timestamp,
) -> Result<(), OpError> {
    let own = fleet.freezes.values().map(|kept| (&*kept.value, ""));
    let global = world.freezes.values().map(|kept| (&*kept.value, " --all-namespaces"));
    let stop = own.chain(global).find(|(freeze, _)| {
        freeze.strength == FreezeKind::Stop && freeze.is_in_force(now) && freeze.covers(name)
    });
    let Some((stop, flag)) = stop else { return Ok(()) };
    let reason = format!("resume: stop {} by {} is in force: {}", stop.name, stop.by, cause(&stop.why));
    let hint = format!("end it, and what it stopped goes on: bellwether freeze off {}{flag}", stop.name);
    Err(OpError::Refused { reason, hint: Some(hint) })
}

/// What may have been forgotten.
fn hint(freeze: &Freeze, fleet: Option<&Fleet>) -> Option<String> {
    match (&freeze.scope, fleet) {
        (FreezeScope::Entity(entity), Some(fleet)) if !fleet.entities.contains_key(entity) => {
            Some(format!("there is no entity {entity} yet, so nothing is covered"))
        }
        _ if freeze.strength == FreezeKind::Stop && freeze.why.is_empty() => {
            Some("say why, for whoever waits: --why".to_owned())
        }
        (FreezeScope::Everything | FreezeScope::Entity(_) | FreezeScope::Targets(_), _) => None,
    }
}

/// A freeze in a few words.
fn words(freeze: &Freeze, now: Timestamp) -> String {
    let strength = match freeze.strength {
        FreezeKind::Freeze => "freeze",
        FreezeKind::Stop => "stop",
    };
    let scope = match &freeze.scope {
        FreezeScope::Everything => "everything".to_owned(),
        FreezeScope::Entity(entity) => format!("entity {entity}"),
        FreezeScope::Targets(selector) => format!("targets {selector}"),
    };
    match freeze.until {
        None => format!("{strength} of {scope}"),
        Some(until) if freeze.is_in_force(now) => format!("{strength} of {scope} for {}", until.since(now)),
        Some(_) => format!("{strength} of {scope}, ended"),
    }
}
