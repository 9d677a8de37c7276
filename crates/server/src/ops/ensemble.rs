//! Ensembles: creating, changing, scaling and deleting them, and what a change would do. What becomes of their members is decided by core.

mod adoption;
mod creation;
mod describe;
pub mod failover;
pub(crate) mod restore;
mod warnings;

use bellwether_api::shape::{ShapeError, reason};
use bellwether_api::v1::ensemble::status::EnsembleStatus;
use bellwether_api::v1::ensemble::{
    DesiredEnsemble, Ensemble as Shape, EnsembleSpec, PlanEnsemble, ScaleEnsemble,
};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::ensemble::{Ensemble, EnsembleService, EnsembleSize};
use bellwether_core::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, RemovalReason};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::osd::OsdPhase;
use bellwether_core::verdict::{Changeset, GuardedChangeset, Write};
use bellwether_core::words::counter::EnsembleRevision;
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, EnsembleName, Namespace};
use bellwether_core::words::plural::plural;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use self::adoption::{may_adopt, may_delete};
use self::describe::describe;
pub(crate) use self::describe::on_nodes;
pub(crate) use self::warnings::warning;
use super::at_revision::at_revision;
use super::{OpError, cause, ensemble_passwords, event};
use crate::transactor::Transactor;

/// An ensemble, for a change.
#[derive(Debug, Clone, Copy)]
pub struct EnsembleScope<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// The ensemble.
    pub name: &'a EnsembleName,
    /// Who requested the change; events name them.
    pub actor: &'a Actor,
    /// The revision that it must have, 0 if it must not exist; `None` for any.
    pub only_at: Option<u64>,
}

/// What a change of an ensemble comes to: what is written, the ensemble after it, and whether it is new.
pub(super) type Changed = (Option<GuardedChangeset>, (Ensemble, bool));

/// The ensembles of a namespace by name, with their members, and without what is to happen to them.
pub fn list(fleet: &Fleet) -> impl Iterator<Item = Shape> {
    fleet.ensembles.values().map(|kept| {
        let ensemble = &*kept.value;
        let members = fleet.ensemble_members.get(&ensemble.name).map(|kept| &*kept.value);
        let matching = match ensemble.size {
            EnsembleSize::Number(_) => 0,
            EnsembleSize::Quorum => warnings::matching(fleet, ensemble).len(),
        };
        let all = members.into_iter().flat_map(|members| members.members.values());
        let left = all.filter(|member| !matches!(member.phase, MemberPhase::Removed(_))).count();
        let status = EnsembleStatus::of(ensemble.size.wanted(matching, left).max(1), members, fleet);
        Shape { status: Some(status), ..Shape::from(ensemble) }
    })
}

/// Creates an ensemble, or changes one; answers it, and whether it is new. The same again changes nothing.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::NotFound`] for a secret that does not exist; [`OpError::Moved`] when it is not at the revision
/// that was named; [`OpError::Refused`] when there are too many, members of a former one of its name are left, or a secret is not for it.
pub async fn set(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    spec: &EnsembleSpec,
) -> Result<(Ensemble, bool), OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let desired = spec.desired()?;
    transactor
        .compare(namespace, actor, &Key::Ensemble(name.clone()).into(), |world, fleet, now| {
            at(fleet, scope)?;
            let annotation = Annotation { by: actor.clone(), reason: desired.reason.clone(), at: now };
            let after = written(fleet, name, &desired, annotation)?;
            ensemble_passwords::are_usable(transactor, (namespace, fleet), &after)?;
            may_adopt(world, (namespace, fleet), &after)?;
            Ok(change(fleet, after))
        })
        .await
}

/// Changes the number of members of an ensemble, and nothing else.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Invalid`] naming the field; [`OpError::Moved`] when it is not at the revision that was named.
pub async fn scale(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    request: &ScaleEnsemble,
) -> Result<Ensemble, OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let reason = reason(&request.reason)?;
    let key = Key::Ensemble(name.clone()).into();
    let scaled = transactor.compare(namespace, actor, &key, |_, fleet, now| {
        at(fleet, scope)?;
        let annotation = Annotation { by: actor.clone(), reason: reason.clone(), at: now };
        let before = found(fleet, name)?;
        let size = request.size.read(&before.service)?;
        Ok::<_, OpError>(change(fleet, Ensemble { size, annotation, ..before.clone() }))
    });
    Ok(scaled.await?.0)
}

/// The ensemble that a request asks about, as it would be. Nothing is written.
///
/// # Errors
/// [`OpError::NotFound`] for one that does not exist, without a spec; otherwise as for [`set`], [`scale`] and [`delete`].
pub fn asked(
    fleet: &Fleet,
    (name, actor): (&EnsembleName, &Actor),
    asked: &PlanEnsemble,
    now: Timestamp,
) -> Result<Ensemble, OpError> {
    if asked.delete {
        if asked.spec.is_some() || asked.size.is_some() {
            return Err(ShapeError::at("delete", "excludes spec and size").into());
        }
        let before = found(fleet, name)?;
        may_delete(fleet, fleet.ensemble_members.get(name).map(|kept| &*kept.value))?;
        return Ok(before.clone());
    }
    let annotation = |reason: String| Annotation { by: actor.clone(), reason, at: now };
    let after = match (&asked.spec, asked.size) {
        (Some(_), Some(_)) => {
            let reason = "spec and size exclude each other: write the size into the spec";
            return Err(ShapeError::at("size", reason).into());
        }
        (Some(spec), None) => {
            let desired = spec.desired()?;
            written(fleet, name, &desired, annotation(desired.reason.clone()))?
        }
        (None, Some(size)) => {
            let before = found(fleet, name)?;
            let size = size.read(&before.service)?;
            Ensemble { size, annotation: annotation(String::new()), ..before.clone() }
        }
        (None, None) => found(fleet, name)?.clone(),
    };
    let (_, (after, _)) = change(fleet, after);
    Ok(after)
}

/// Deletes an ensemble. Its members are recorded as removed: their nodes stop them and set their directories aside, and the record of the
/// members goes with the last of them.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Moved`] when it is not at the revision that was named; [`OpError::Refused`] while its members work in a
/// store that has others.
pub async fn delete(transactor: &Transactor, scope: EnsembleScope<'_>) -> Result<(), OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    transactor
        .compare(namespace, actor, &Key::Ensemble(name.clone()).into(), |_, fleet, now| {
            at(fleet, scope)?;
            let before = found(fleet, name)?;
            let members = fleet.ensemble_members.get(name).map(|kept| &*kept.value);
            let number = members.map_or(0, |members| members.members.len());
            let said = match number {
                0 => "it has no members".to_owned(),
                _ => {
                    let osds = members.map_or(0, |members| members.osds.present().count());
                    let osds = match osds {
                        0 => String::new(),
                        osds => {
                            format!("; its {} stop, and their devices stay as they are", plural(osds, "OSD"))
                        }
                    };
                    format!(
                        "its {} stop; their data are set aside on their nodes{osds}",
                        plural(number, "member")
                    )
                }
            };
            may_delete(fleet, members)?;
            let said = said + &restore::left_behind(members);
            let mut deleted = event("ensemble.deleted", format!("ensemble/{name}"), said);
            deleted.before = Some(describe(before));
            let has_osds = members.is_some_and(|members| !members.osds.osds.is_empty());
            let removed = members.map(|members| match number {
                0 if !has_osds => Write::delete(Key::EnsembleMembers(name.clone())),
                _ => Write::put(Record::EnsembleMembers(all_removed(members, now))),
            });
            let writes: Vec<Write> =
                [Some(Write::delete(Key::Ensemble(name.clone()))), removed].into_iter().flatten().collect();
            let changeset = Changeset { writes, events: vec![deleted] };
            // Members that are recorded meanwhile would stay.
            let guards = members.is_none().then(|| Key::EnsembleMembers(name.clone()));
            Ok((Some(changeset.guarded_by(guards)), ()))
        })
        .await
}

/// The members of an ensemble that is deleted.
fn all_removed(members: &EnsembleMembers, now: Timestamp) -> EnsembleMembers {
    let removed = |member: &Member| {
        let since = if matches!(member.phase, MemberPhase::Removed(_)) { member.since } else { now };
        Member { phase: MemberPhase::Removed(RemovalReason::Deleted), since, ..member.clone() }
    };
    let removed = members.members.iter().map(|(number, member)| (*number, removed(member)));
    let mut osds = members.osds.clone();
    (osds.change, osds.reader) = (None, None);
    for osd in osds.osds.values_mut().filter(|osd| osd.phase != OsdPhase::Removed) {
        (osd.phase, osd.since) = (OsdPhase::Removed, now);
    }
    EnsembleMembers { members: removed.collect(), change: None, osds, ..members.clone() }
}

fn found<'a>(fleet: &'a Fleet, name: &EnsembleName) -> Result<&'a Ensemble, OpError> {
    let kept = fleet.ensembles.get(name).ok_or_else(|| OpError::NotFound(format!("ensemble {name}")))?;
    Ok(&kept.value)
}

fn at(fleet: &Fleet, scope: EnsembleScope<'_>) -> Result<(), OpError> {
    let before = fleet.ensembles.get(scope.name).map(|kept| &*kept.value);
    let before = before.map(|before| (before.revision.get(), &before.annotation.by));
    at_revision("ensemble", scope.name.as_str(), before, scope.only_at)
}

/// The ensemble with what it is to be, at its present revision.
fn written(
    fleet: &Fleet,
    name: &EnsembleName,
    desired: &DesiredEnsemble,
    annotation: Annotation,
) -> Result<Ensemble, OpError> {
    let before = fleet.ensembles.get(name).map(|kept| &*kept.value);
    let DesiredEnsemble {
        service,
        size,
        filter,
        spread,
        failover_after,
        join_within,
        mode,
        snapshots,
        restore,
        adopt,
        ..
    } = desired.clone();
    let after = Ensemble {
        name: name.clone(),
        revision: before.map_or(EnsembleRevision::ZERO, |before| before.revision),
        service,
        size,
        filter,
        spread,
        failover_after,
        join_within,
        mode,
        snapshots,
        restore: restore.or_else(|| before?.restore.clone()),
        adopt: adopt.or_else(|| before?.adopt.clone()),
        labels: before.map_or_else(Labels::default, |before| before.labels.clone()),
        annotation,
    };
    match before {
        None => {
            restore::has_node(fleet, &after)?;
            creation::is_possible(fleet, &after)?;
        }
        Some(before) => {
            restore::keeps_source(fleet, before, &after)?;
            keeps_service(fleet, before, &after)?;
        }
    }
    Ok(after)
}

/// Refuses other settings for an ensemble that has members: these run with them, and the others know them by these.
fn keeps_service(fleet: &Fleet, before: &Ensemble, after: &Ensemble) -> Result<(), OpError> {
    let (kind, former) = (after.service.as_str(), before.service.as_str());
    let settings = settings(&after.service).into_iter().zip(settings(&before.service));
    let changed =
        settings.map(|((field, new), (_, old))| (format!("service.{kind}.{field}"), field, new, old));
    let changed = match kind == former {
        true => changed.into_iter().find(|(_, _, new, old)| new != old),
        false => Some(("service".to_owned(), "service agent", kind.to_owned(), former.to_owned())),
    };
    let Some((place, field, new, old)) = changed else { return Ok(()) };
    let name = &before.name;
    let members = fleet.ensemble_members.get(name).map(|kept| &*kept.value);
    let Some(members) = members.filter(|members| !members.members.is_empty()) else { return Ok(()) };
    let reason = format!(
        "{new}; ensemble {name} has members with {field} {old} ({}): keep it, or create another ensemble",
        on_nodes(members)
    );
    Err(ShapeError::at(&place, reason).into())
}

/// The settings of a service agent that stay as they are, each with its field.
fn settings(service: &EnsembleService) -> Vec<(&'static str, String)> {
    if let EnsembleService::Independent(independent) = service {
        let port = independent.port.map_or_else(|| "none".to_owned(), |port| port.to_string());
        let workload = &independent.workload;
        return vec![(workload.field(), workload.name().to_owned()), ("port", port)];
    }
    let ports = service.ports().into_iter().map(|(field, port)| (field, port.to_string()));
    let replicas = match service {
        EnsembleService::Ceph(ceph) => Some(("replicas", ceph.replicas.to_string())),
        EnsembleService::Etcd(_) | EnsembleService::Redis(_) | EnsembleService::Independent(_) => None,
    };
    ports.chain([("tls", service.has_tls().to_string())]).chain(replicas).collect()
}

/// What is written for an ensemble to be like this.
pub(super) fn change(fleet: &Fleet, after: Ensemble) -> Changed {
    let name = after.name.clone();
    let before = fleet.ensembles.get(&name).map(|kept| &*kept.value);
    if let Some(before) = before.filter(|before| is_same(before, &after)) {
        return (None, (before.clone(), false));
    }
    let after = Ensemble { revision: after.revision.next_in(fleet.epoch), ..after };
    let what = if before.is_none() { "ensemble.created" } else { "ensemble.changed" };
    let mut said = event(what, format!("ensemble/{name}"), cause(&after.annotation.reason));
    said.before = before.map(describe);
    said.after = Some(describe(&after));
    let mut writes = vec![Write::put(Record::Ensemble(after.clone()))];
    let members = || Key::EnsembleMembers(name.clone());
    // It is another ensemble than the former one of its name, whose last member has left.
    let former = before.is_none() && fleet.ensemble_members.contains_key(&name);
    writes.extend(former.then(|| Write::delete(members())));
    // Whether it has members was read.
    let is_read = before.is_none_or(|before| before.service != after.service);
    let of_members = (is_read && !former).then(members);
    // Whether the secrets are there was read.
    let secrets = after.service.password_secrets().iter().map(|secret| Key::Secret(secret.clone()));
    let guards: Vec<Key> = of_members.into_iter().chain(secrets).collect();
    let changeset = Changeset { writes, events: vec![said] }.guarded_by(guards);
    (Some(changeset), (after, before.is_none()))
}

fn is_same(before: &Ensemble, after: &Ensemble) -> bool {
    Ensemble { annotation: before.annotation.clone(), ..after.clone() } == *before
}
