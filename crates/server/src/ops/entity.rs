//! Entities: setting and deleting. What their versions are is the rollouts' business.

use std::time::Duration;

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::entity::EntitySpec;
use bellwether_core::records::entity::Entity;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::policy::Policy;
use bellwether_core::verdict::{Atom, Write};
use bellwether_core::words::counter::RequestNumber;
use bellwether_core::words::name::{Actor, EntityName, Namespace};
use bellwether_core::words::selector::Selector;

use super::{OpError, event};
use crate::desk::Desk;

/// How long making an entity waits for the removal of a deleted one of its name.
const FORGET_WITHIN: Duration = Duration::from_secs(5);

/// Makes an entity, or changes the selector and policy of one. Answers whether it is new.
///
/// # Errors
/// [`OpError::Invalid`] naming the field.
pub async fn set(
    desk: &Desk,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
    spec: &EntitySpec,
) -> Result<bool, OpError> {
    let selector: Selector = read("selector", &spec.selector)?;
    let policy = Policy::try_from(&spec.policy).map_err(|error: ShapeError| error.within("policy"))?;
    forgotten(desk, namespace, name).await;
    desk.change(namespace, actor, |_, fleet, _| {
        if fleet.orphans.contains(name) {
            let reason = format!(
                "make entity {name}: what is left of the one that was deleted is still being removed"
            );
            return Err(OpError::Refused { reason, hint: Some("try again in a moment".to_owned()) });
        }
        let old = fleet.entities.get(name).map(|kept| Entity::clone(&kept.value));
        let new = match &old {
            Some(old) => Entity { selector: selector.clone(), policy, ..old.clone() },
            None => Entity::new(name.clone(), selector.clone(), policy),
        };
        if old.as_ref() == Some(&new) {
            return Ok((None, false));
        }
        let kind = if old.is_some() { "entity.changed" } else { "entity.created" };
        let event = event(kind, format!("entity/{name}"), format!("it picks {selector}"));
        let atom = Atom { writes: vec![Write::put(Record::Entity(new))], events: vec![event] };
        Ok((Some(atom), old.is_none()))
    })
    .await
}

/// Waits, within reason, until nothing is left of a deleted entity of this name: a new one must not inherit its memory.
async fn forgotten(desk: &Desk, namespace: &Namespace, name: &EntityName) {
    let mut worlds = desk.follow();
    let gone = worlds
        .wait_for(|world| world.fleets.get(namespace).is_none_or(|fleet| !fleet.orphans.contains(name)));
    if tokio::time::timeout(FORGET_WITHIN, gone).await.is_err() {
        tracing::warn!(%namespace, %name, "a deleted entity is not forgotten yet");
    }
}

/// Removes an entity. Its targets stay at what they run; its history goes.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] while a rollout of it is under way.
pub async fn delete(
    desk: &Desk,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
) -> Result<(), OpError> {
    desk.change(namespace, actor, |_, fleet, _| {
        if !fleet.entities.contains_key(name) {
            return Err(OpError::NotFound(format!("entity {name}")));
        }
        let progress = fleet.progresses.get(name).map(|kept| &kept.value);
        let asked = fleet.entities.get(name).map(|kept| kept.value.last_request());
        let active = progress.is_some_and(|progress| progress.active().is_some());
        if active || asked > progress.map(|progress| progress.handled).or(asked.map(|_| RequestNumber::ZERO))
        {
            let reason = format!("delete entity {name}: a rollout of it is under way");
            let hint = format!("end it first: bellwether rollout abort {name}");
            return Err(OpError::Refused { reason, hint: Some(hint) });
        }
        let event = event("entity.deleted", format!("entity/{name}"), "its targets stay as they are");
        let writes = vec![Write::Delete(Key::Entity(name.clone()))];
        Ok((Some(Atom { writes, events: vec![event] }), ()))
    })
    .await
}
