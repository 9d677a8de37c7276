//! Entities: setting and deleting. What their versions are is the rollouts' business.

use std::time::Duration;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::OnFailure;
use bellwether_core::records::entity::{Entity, EntityKind, TargetSource};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::policy::Policy;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::RequestNumber;
use bellwether_core::words::name::{Actor, EntityName, Namespace, ProfileName};
use bellwether_core::words::selector::Selector;
use bellwether_core::world::fleet::Fleet;

use super::{OpError, event};
use crate::transactor::Transactor;

/// How long making an entity waits for the removal of a deleted one of its name.
const FORGET_WITHIN: Duration = Duration::from_secs(5);

/// Makes an entity, or changes the selector and policy of one. Answers whether it is new.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::Refused`] for another kind, or without its profile.
pub async fn set(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
    spec: &EntitySpec,
) -> Result<bool, OpError> {
    let source = spec.source()?;
    let asked = spec.kind()?;
    forgotten(transactor, namespace, name).await;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            if fleet.orphans.contains(name) {
                let reason = format!(
                    "make entity {name}: what is left of the one that was deleted is still being removed"
                );
                return Err(OpError::Refused { reason, hint: Some("try again in a moment".to_owned()) });
            }
            let old = fleet.entities.get(name).map(|kept| Entity::clone(&kept.value));
            let kind = kind_of(name, old.as_ref(), asked.as_ref())?;
            same_source(name, old.as_ref(), &source)?;
            let policy = policy(&kind, &spec.policy)?;
            let new = match &old {
                Some(old) => Entity { source: source.clone(), policy, ..old.clone() },
                None => Entity {
                    kind,
                    source: source.clone(),
                    ..Entity::new(name.clone(), Selector::all(), policy)
                },
            };
            if old.as_ref() == Some(&new) {
                return Ok((None, false));
            }
            let word = if old.is_some() { "entity.changed" } else { "entity.created" };
            let event = event(word, format!("entity/{name}"), format!("its targets are {source}"));
            let mut writes = vec![Write::put(Record::Entity(new.clone()))];
            if let (EntityKind::Profile(profile), None) = (&new.kind, &old) {
                writes.push(held(fleet, profile)?);
            }
            Ok((Some(Changeset { writes, events: vec![event] }), old.is_none()))
        })
        .await
}

/// Refuses to turn an entity of nodes into one of external targets, or back: what was told the ones is not for the others.
fn same_source(name: &EntityName, old: Option<&Entity>, source: &TargetSource) -> Result<(), OpError> {
    match (old.map(|old| &old.source), source) {
        (None, _)
        | (Some(TargetSource::Nodes(_)), TargetSource::Nodes(_))
        | (Some(TargetSource::External(_)), TargetSource::External(_)) => Ok(()),
        (Some(old @ (TargetSource::Nodes(_) | TargetSource::External(_))), _) => {
            let reason = format!("make the targets of entity {name} {source}: they are {old}, and stay that");
            let hint = format!("give the other one another name, or first: bellwether entity delete {name}");
            Err(OpError::Refused { reason, hint: Some(hint) })
        }
    }
}

/// What an entity is: for ever what it was made as.
fn kind_of(
    name: &EntityName,
    old: Option<&Entity>,
    asked: Option<&EntityKind>,
) -> Result<EntityKind, OpError> {
    match (old.map(|old| &old.kind), asked) {
        (None, asked) => Ok(asked.cloned().unwrap_or_default()),
        (Some(is), None) => Ok(is.clone()),
        (Some(is), Some(asked)) if is == asked => Ok(is.clone()),
        (Some(is), Some(asked)) => {
            let reason = format!("make entity {name} one of {asked}: it is one of {is}, and stays that");
            let hint = format!("give the other one another name, or first: bellwether entity delete {name}");
            Err(OpError::Refused { reason, hint: Some(hint) })
        }
    }
}

/// The policy that is meant. An action that was run cannot be taken back, so a failure pauses, unless it is to go on.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn policy(kind: &EntityKind, asked: &v1::policy::Policy) -> Result<Policy, ShapeError> {
    let mut asked = asked.clone();
    if let EntityKind::Action(action) = kind {
        let at = |field: &str, reason: String| Err(ShapeError::at(&format!("policy.{field}"), reason));
        match asked.on_failure {
            None => asked.on_failure = Some(OnFailure::Pause),
            Some(OnFailure::Rollback) => {
                let reason = format!("action {action} cannot be taken back; write pause or continue");
                return at("on_failure", reason);
            }
            Some(OnFailure::Pause | OnFailure::Continue) => {}
        }
        if asked.retries.is_some_and(|retries| retries > 0) {
            let reason = format!("action {action} runs once; start it again for another run");
            return at("retries", reason);
        }
    }
    Policy::try_from(&asked).map_err(|error: ShapeError| error.within("policy"))
}

/// Writes the profile as it is, in one piece with what begins to use it: it cannot be deleted at the same moment.
fn held(fleet: &Fleet, profile: &ProfileName) -> Result<Write, OpError> {
    let found = fleet.profile(profile).ok_or_else(|| OpError::Refused {
        reason: format!("use profile {profile}: there is none"),
        hint: Some(format!("bellwether profile set {profile} KEY=VALUE")),
    })?;
    Ok(Write::put(Record::Profile(found.clone())))
}

/// Waits, within reason, until nothing is left of a deleted entity of this name: a new one must not inherit its memory.
async fn forgotten(transactor: &Transactor, namespace: &Namespace, name: &EntityName) {
    let mut worlds = transactor.follow();
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
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, _| {
            if !fleet.entities.contains_key(name) {
                return Err(OpError::NotFound(format!("entity {name}")));
            }
            let progress = fleet.progresses.get(name).map(|kept| &kept.value);
            let asked = fleet.entities.get(name).map(|kept| kept.value.last_request());
            let active = progress.is_some_and(|progress| progress.active().is_some());
            if active
                || asked > progress.map(|progress| progress.handled).or(asked.map(|_| RequestNumber::ZERO))
            {
                let reason = format!("delete entity {name}: a rollout of it is under way");
                let hint = format!("end it first: bellwether rollout abort {name}");
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            let event = event("entity.deleted", format!("entity/{name}"), "its targets stay as they are");
            let writes = vec![Write::Delete(Key::Entity(name.clone()))];
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}
