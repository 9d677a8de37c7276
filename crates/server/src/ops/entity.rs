//! Operations on entities: set, delete. Their versions are changed by rollouts.

use std::time::Duration;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::entity::patch::{EntityPatch, PatchedEntity};
use bellwether_core::records::entity::{Entity, EntityInfo, EntityKind, TargetSource};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::{RequestNumber, Revision};
use bellwether_core::words::name::{Actor, EntityName, Namespace, ProfileName};
use bellwether_core::words::selector::Selector;
use bellwether_core::world::fleet::Fleet;

use super::scope::EntityScope;
use super::{OpError, entity_warnings, event, field_change, run_policy};
use crate::transactor::Transactor;

/// Longest wait for the removal of a deleted entity, before another with its name is created.
const FORGET_WITHIN: Duration = Duration::from_secs(5);

/// Creates an entity, or changes the selector, policy and information of an existing one. Returns what to know of it, if
/// there is anything.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::Refused`] for another kind, without its profile, or of a live one.
pub async fn set(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &EntityName,
    spec: &EntitySpec,
) -> Result<Option<String>, OpError> {
    wait_until_removed(transactor, namespace, name).await;
    transactor
        .change(namespace, actor, |_, fleet, _| {
            let old = known(fleet, name)?;
            let (new, changeset) = changed_to(fleet, name, old.as_ref(), spec)?;
            Ok((changeset, entity_warnings::warning(fleet, &new)))
        })
        .await
}

/// Changes single fields of an entity, or creates it if its targets are named; returns it before and after.
///
/// # Errors
/// As [`set`], [`OpError::NotFound`] for an entity that does not exist, if no targets are named, and [`OpError::Moved`] for
/// one that is not at the revision `only_at`, if that is given.
pub async fn patch(
    transactor: &Transactor,
    scope: EntityScope<'_>,
    patch: &EntityPatch,
    only_at: Option<Revision>,
) -> Result<PatchedEntity, OpError> {
    let EntityScope { namespace, entity: name, actor } = scope;
    wait_until_removed(transactor, namespace, name).await;
    transactor
        .compare(namespace, actor, &Key::Entity(name.clone()).into(), |_, fleet, _| {
            is_at(fleet, name, only_at)?;
            let old = known(fleet, name)?;
            let kept = fleet.entities.get(name);
            let before = kept.map(|kept| v1::entity::Entity::at(&kept.value, kept.revision));
            let spec = patch.applied_to(before.as_ref())?;
            let spec = spec.ok_or_else(|| OpError::NotFound(format!("entity {name}")))?;
            let (new, changeset) = changed_to(fleet, name, old.as_ref(), &spec)?;
            let warning = entity_warnings::warning(fleet, &new);
            Ok((changeset, PatchedEntity { before, after: (&new).into(), warning }))
        })
        .await
}

/// Refuses an entity that is not at the revision that a change is based on.
pub(crate) fn is_at(fleet: &Fleet, name: &EntityName, only_at: Option<Revision>) -> Result<(), OpError> {
    let found = fleet.entities.get(name).map(|kept| kept.revision);
    match only_at {
        None => Ok(()),
        Some(expected) if found == Some(expected) => Ok(()),
        Some(expected) => {
            let is =
                found.map_or_else(|| "it does not exist".to_owned(), |at| format!("it is at revision {at}"));
            Err(OpError::Moved {
                reason: format!("change entity {name} at revision {expected}: {is}"),
                hint: format!(
                    "read it again, then repeat the change if it still applies: bellwether entity get {name}"
                ),
            })
        }
    }
}

/// The entity as it is. Refuses a name that is still being removed.
fn known(fleet: &Fleet, name: &EntityName) -> Result<Option<Entity>, OpError> {
    if fleet.orphans.contains(name) {
        let reason = format!("create entity {name}: the deleted entity of this name is still being removed");
        return Err(OpError::Refused { reason, hint: Some("try again in a moment".to_owned()) });
    }
    Ok(fleet.entities.get(name).map(|kept| Entity::clone(&kept.value)))
}

/// The entity that a specification describes, and what must be written for it; nothing if it is so already.
fn changed_to(
    fleet: &Fleet,
    name: &EntityName,
    old: Option<&Entity>,
    spec: &EntitySpec,
) -> Result<(Entity, Option<Changeset>), OpError> {
    let (source, info) = (spec.source()?, spec.info()?);
    let kind = kind_of(name, old, spec.kind()?.as_ref())?;
    same_source(name, old, &source)?;
    let policy = policy(&kind, &source, &spec.policy)?;
    if let Some(run) = fleet.runs.get(name) {
        run_policy::may_roll_back(&run.value, &policy)?;
    }
    let cause = format!("its targets are {source}");
    let new = match old {
        Some(old) => changed(old, source, policy, info),
        None => Entity { kind, source, info, ..Entity::new(name.clone(), Selector::all(), policy) },
    };
    if old == Some(&new) {
        return Ok((new, None));
    }
    let subject = format!("entity/{name}");
    let event = match old {
        Some(old) => event("entity.changed", subject, field_change::of_entity(&old.into(), &(&new).into())),
        None => event("entity.created", subject, cause),
    };
    let mut writes = vec![Write::put(Record::Entity(new.clone()))];
    if let (EntityKind::Profile(profile), None) = (&new.kind, old) {
        writes.push(profile_in_use(fleet, profile)?);
    }
    Ok((new, Some(Changeset { writes, events: vec![event] })))
}

/// The entity with another source, policy and information. A policy that differs applies to the rollout under way too, in place of flags
/// that were for that rollout alone.
fn changed(old: &Entity, source: TargetSource, policy: Policy, info: EntityInfo) -> Entity {
    let mut new = Entity { source, info, ..old.clone() };
    if policy != old.policy
        && let Some(wanted) = &mut new.wanted
    {
        wanted.policy = None;
    }
    Entity { policy, ..new }
}

/// Refuses to change an entity of nodes into one of external targets, or back: the assignments would not apply.
fn same_source(name: &EntityName, old: Option<&Entity>, source: &TargetSource) -> Result<(), OpError> {
    match (old.map(|old| &old.source), source) {
        (None, _)
        | (Some(TargetSource::Nodes(_)), TargetSource::Nodes(_))
        | (Some(TargetSource::Listed(_)), TargetSource::Listed(_))
        | (Some(TargetSource::External(_)), TargetSource::External(_)) => Ok(()),
        (Some(old @ (TargetSource::Nodes(_) | TargetSource::Listed(_) | TargetSource::External(_))), _) => {
            let reason = format!("change the targets of entity {name} to {source}: they are {old}");
            let hint = format!("use another name, or first: bellwether entity delete {name}");
            Err(OpError::Refused { reason, hint: Some(hint) })
        }
    }
}

/// The kind of an entity, which never changes.
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
            let reason = format!("change entity {name} to one of {asked}: it is one of {is}");
            let hint = format!("use another name, or first: bellwether entity delete {name}");
            Err(OpError::Refused { reason, hint: Some(hint) })
        }
    }
}

/// The policy that a person asks for an entity of this kind with these targets.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn policy(
    kind: &EntityKind,
    source: &TargetSource,
    asked: &v1::policy::Policy,
) -> Result<Policy, ShapeError> {
    let policy =
        PolicyDraft::try_from(asked).and_then(|draft| kind.policy(source, draft).map_err(v1::policy::misfit));
    policy.map_err(|error| error.within("policy"))
}

/// Writes the profile unchanged, in the transaction that begins to use it, so that it cannot be deleted concurrently.
fn profile_in_use(fleet: &Fleet, profile: &ProfileName) -> Result<Write, OpError> {
    let found = fleet.profile(profile).ok_or_else(|| OpError::Refused {
        reason: format!("use profile {profile}: it does not exist"),
        hint: Some(format!("bellwether profile set {profile} KEY=VALUE")),
    })?;
    if found.live {
        let reason = format!("use profile {profile}: it is live, and its changes would not be rolled out");
        return Err(OpError::Refused {
            reason,
            hint: Some(format!("bellwether profile live {profile} --off")),
        });
    }
    Ok(Write::put(Record::Profile(found.clone())))
}

/// Waits until a deleted entity of this name is removed completely: a new one must not inherit its state.
async fn wait_until_removed(transactor: &Transactor, namespace: &Namespace, name: &EntityName) {
    let mut worlds = transactor.follow();
    let gone = worlds
        .wait_for(|world| world.fleets.get(namespace).is_none_or(|fleet| !fleet.orphans.contains(name)));
    if tokio::time::timeout(FORGET_WITHIN, gone).await.is_err() {
        tracing::warn!(%namespace, %name, "a deleted entity is not removed completely yet");
    }
}

/// Deletes an entity with its history. Its targets keep what they run.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] during a rollout.
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
            if fleet.runs.contains_key(name) {
                let reason = format!("delete entity {name}: it is a run of a workflow");
                return Err(OpError::Refused { reason, hint: Some(format!("bellwether run delete {name}")) });
            }
            let progress = fleet.progresses.get(name).map(|kept| &kept.value);
            let asked = fleet.entities.get(name).map(|kept| kept.value.last_request());
            let active = progress.is_some_and(|progress| progress.active().is_some());
            if active
                || asked > progress.map(|progress| progress.handled).or(asked.map(|_| RequestNumber::ZERO))
            {
                let reason = format!("delete entity {name}: its rollout is active");
                let hint = format!("abort it first: bellwether rollout abort {name}");
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            let event = event("entity.deleted", format!("entity/{name}"), "its targets are unchanged");
            let writes = vec![Write::delete(Key::Entity(name.clone()))];
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}
