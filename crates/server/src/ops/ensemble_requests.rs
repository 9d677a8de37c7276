//! What people ask to be done with the members of an ensemble. It is recorded with the members, before anybody acts on it.

use std::sync::Arc;

use bellwether_api::shape::reason;
use bellwether_api::v1::ensemble::requests::{ReplaceMember, ResumeEnsemble, RollMembers};
use bellwether_api::v1::ensemble::snapshots::TakeSnapshot;
use bellwether_core::decide::ensembles::accepted;
use bellwether_core::decide::ensembles::requests::{replace_refusal, rolling_refusal, snapshot_refusal};
use bellwether_core::decide::ensembles::restored::{self, Evidence};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::ensemble::{Ensemble, EnsembleService};
use bellwether_core::records::ensemble_members::{EnsembleMembers, Member};
use bellwether_core::records::ensemble_requests::{RollingAction, RollingRequest};
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::versioned::Versioned;
use bellwether_core::verdict::{Changeset, GuardedChangeset, Write};
use bellwether_core::words::counter::{MemberNumber, Revision};
use bellwether_core::words::name::{Actor, EnsembleName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use super::ensemble::EnsembleScope;
use super::{OpError, cause, event};
use crate::transactor::Transactor;

/// Asks that another member takes the place of one, or withdraws that. The same again changes nothing.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble or a member that does not exist; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when it would
/// take the quorum, when no node may have another one, or when the member is leaving already.
pub async fn replace(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    request: &ReplaceMember,
) -> Result<Ensemble, OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let (number, reason) = (MemberNumber::new(request.member), reason(&request.reason)?);
    let key = Key::EnsembleMembers(name.clone()).into();
    transactor
        .compare(namespace, actor, &key, |_, fleet, now| {
            let (ensemble, members) = replaceable(fleet, name)?;
            let member = members.members.get(&number).ok_or_else(|| missing(name, number))?;
            let annotation = Annotation { by: actor.clone(), reason: reason.clone(), at: now };
            let asked = match request.withdraw {
                true => withdrawn(members, (number, member), &annotation)?,
                false => replaced(fleet, (ensemble, members), (number, member), annotation)?,
            };
            Ok((asked, ensemble.clone()))
        })
        .await
}

/// Asks for a snapshot of the data of an ensemble. While one is asked for or taken, it changes nothing.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble without members; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when nobody could take one.
pub async fn snapshot(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    request: &TakeSnapshot,
) -> Result<Ensemble, OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let reason = reason(&request.reason)?;
    let key = Key::EnsembleMembers(name.clone()).into();
    transactor
        .compare(namespace, actor, &key, |_, fleet, now| {
            let (ensemble, before) = any(fleet, name)?;
            if !ensemble.service.is_etcd() {
                return Err(no_snapshots(ensemble));
            }
            if before.snapshots.requested.is_some() || before.snapshots.ordered.is_some() {
                return Ok((None, ensemble.clone()));
            }
            if let Some(refusal) = snapshot_refusal(fleet, ensemble, before, now) {
                return Err(OpError::Refused {
                    reason: format!("take a snapshot of ensemble {name}: {refusal}"),
                    hint: Some(format!("see its members: bellwether why ensemble/{name}")),
                });
            }
            let said = event("ensemble.snapshot_requested", format!("ensemble/{name}"), cause(&reason));
            let mut members = before.clone();
            members.snapshots.requested =
                Some(Annotation { by: actor.clone(), reason: reason.clone(), at: now });
            let writes = vec![Write::put(Record::EnsembleMembers(members))];
            // Whether it is managed was read.
            let guard = Some(Key::Ensemble(name.clone()));
            let changeset = Changeset { writes, events: vec![said] }.guarded_by(guard);
            Ok((Some(changeset), ensemble.clone()))
        })
        .await
}

/// Asks that the members of an ensemble are restarted or defragmented one after the other, or withdraws that. Asked again, it is done with all of
/// them again.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble without members; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when it is not managed, or
/// the other one is under way.
pub async fn roll(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    (action, request): (RollingAction, &RollMembers),
) -> Result<Ensemble, OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let reason = reason(&request.reason)?;
    let key = Key::EnsembleMembers(name.clone()).into();
    transactor
        .compare(namespace, actor, &key, |_, fleet, now| {
            let (ensemble, before) = any(fleet, name)?;
            let asked = before.requests.rolling.as_ref();
            if request.withdraw && asked.is_none_or(|asked| asked.action != action) {
                return Ok((None, ensemble.clone()));
            }
            let (verb, kinds) = words(action);
            if let Some(refusal) = rolling_refusal(ensemble, before, action).filter(|_| !request.withdraw) {
                let other = asked.filter(|asked| asked.action != action);
                let hint = other.map(|other| {
                    let (other, _) = words(other.action);
                    format!("to end that first: bellwether ensemble {other} {name} --withdraw")
                });
                return Err(OpError::Refused { reason: format!("{verb} ensemble {name}: {refusal}"), hint });
            }
            let annotation = Annotation { by: actor.clone(), reason: reason.clone(), at: now };
            let left = before.members.keys().copied().collect();
            let osds_left = || before.osds.present().map(|(number, _)| number).collect();
            let asked = match action {
                RollingAction::Restart => RollingRequest::restart(annotation, left, osds_left()),
                RollingAction::Defragment => RollingRequest::defragmentation(annotation, left),
            };
            let mut members = before.clone();
            members.requests.rolling = (!request.withdraw).then_some(asked);
            let [requested, withdrawn] = kinds;
            let kind = if request.withdraw { withdrawn } else { requested };
            let said = event(kind, format!("ensemble/{name}"), cause(&reason));
            let writes = vec![Write::put(Record::EnsembleMembers(members))];
            // Whether it is managed was read.
            let guard = Some(Key::Ensemble(name.clone()));
            let changeset = Changeset { writes, events: vec![said] }.guarded_by(guard);
            Ok((Some(changeset), ensemble.clone()))
        })
        .await
}

/// Goes on with an ensemble as it is recorded, after a restore. One that is not held stays as it is.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble without members; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when its members are known to
/// be others, unless that is accepted, when nobody can say who its primary is, or when others run and none of those works.
pub async fn resume(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    request: &ResumeEnsemble,
) -> Result<Ensemble, OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let reason = reason(&request.reason)?;
    let key = Key::EnsembleMembers(name.clone()).into();
    transactor
        .compare(namespace, actor, &key, |_, fleet, now| {
            let (ensemble, before) = any(fleet, name)?;
            let is_as_recorded = !before.is_held(fleet.epoch) && accepted::found(fleet, before).is_empty();
            if is_as_recorded {
                return Ok((None, ensemble.clone()));
            }
            if let Evidence::Other(what) = restored::evidence(fleet, before)
                && !request.accept_data_loss
            {
                let hint = "restore a newer backup, or see the guide on ensembles, \"After a restore of the control plane\"";
                return Err(OpError::Refused {
                    reason: format!("resume ensemble {name}: {}", what.join(", ")),
                    hint: Some(hint.to_owned()),
                });
            }
            let choice = accepted::choice_of_primary(fleet, before);
            let unnamed = (!choice.is_empty()).then(|| restored::named_first(name, &choice));
            if let Some(why) = unnamed.or_else(|| accepted::nobody_there(fleet, before)) {
                return Err(OpError::Refused { reason: format!("resume ensemble {name}: {why}"), hint: None });
            }
            let mut members = before.clone();
            accepted::accept(fleet, &mut members, now);
            let mut events = vec![event("ensemble.resumed", format!("ensemble/{name}"), cause(&reason))];
            if members.lead.primary != before.lead.primary {
                let said = "it is the primary by the word of the members, and another one was recorded";
                events.push(EventDraft {
                    before: before.lead.primary.map(|number| number.to_string()),
                    after: members.lead.primary.map(|number| number.to_string()),
                    ..event("ensemble.primary_changed", format!("ensemble/{name}"), said.to_owned())
                });
            }
            let changeset = Changeset { writes: vec![Write::put(Record::EnsembleMembers(members))], events };
            Ok((Some(changeset.guarded_by(None::<Key>)), ensemble.clone()))
        })
        .await
}

/// The verb of what is done with members, and the kinds of the events that it was asked for and withdrawn.
const fn words(action: RollingAction) -> (&'static str, [&'static str; 2]) {
    match action {
        RollingAction::Restart => ("restart", ["ensemble.restart_requested", "ensemble.restart_withdrawn"]),
        RollingAction::Defragment => {
            ("defragment", ["ensemble.defragment_requested", "ensemble.defragment_withdrawn"])
        }
    }
}

/// The fleet as it would be if the replacement of a member was asked. Nothing is written.
///
/// # Errors
/// As for [`replace`].
pub fn with_replacement(
    fleet: &Fleet,
    (name, actor): (&EnsembleName, &Actor),
    number: u64,
    now: Timestamp,
) -> Result<(Fleet, Ensemble), OpError> {
    let (ensemble, members) = replaceable(fleet, name)?;
    let number = MemberNumber::new(number);
    if !members.members.contains_key(&number) {
        return Err(missing(name, number));
    }
    possible(fleet, (ensemble, members), number, now)?;
    let mut members = members.clone();
    members.requests.replace.insert(number, Annotation::of(actor.clone(), now));
    let (ensemble, mut fleet) = (ensemble.clone(), fleet.clone());
    let kept = Versioned { value: Arc::new(members), revision: Revision::ZERO };
    fleet.ensemble_members.insert_mut(name.clone(), kept);
    Ok((fleet, ensemble))
}

fn any<'a>(fleet: &'a Fleet, name: &EnsembleName) -> Result<(&'a Ensemble, &'a EnsembleMembers), OpError> {
    let kept = fleet.ensembles.get(name).ok_or_else(|| OpError::NotFound(format!("ensemble {name}")))?;
    let members = fleet.ensemble_members.get(name);
    let members = members.ok_or_else(|| OpError::NotFound(format!("members of ensemble {name}")))?;
    Ok((&kept.value, &members.value))
}

/// One whose members are not independent of each other.
fn replaceable<'a>(
    fleet: &'a Fleet,
    name: &EnsembleName,
) -> Result<(&'a Ensemble, &'a EnsembleMembers), OpError> {
    let (ensemble, members) = any(fleet, name)?;
    match &ensemble.service {
        EnsembleService::Etcd(_) | EnsembleService::Redis(_) | EnsembleService::Ceph(_) => {
            Ok((ensemble, members))
        }
        EnsembleService::Independent(_) => {
            Err(not_yet(ensemble, "that is there for etcd, Redis and Ceph, and"))
        }
    }
}

fn no_snapshots(ensemble: &Ensemble) -> OpError {
    let (name, service) = (&ensemble.name, ensemble.service.title());
    let hint = match &ensemble.service {
        EnsembleService::Redis(_) => {
            Some("to copy its data: redis-cli --rdb FILE, with the address of a member".to_owned())
        }
        EnsembleService::Etcd(_) | EnsembleService::Ceph(_) | EnsembleService::Independent(_) => None,
    };
    let reason = format!(
        "take a snapshot of ensemble {name}: snapshots are there for etcd, and not for {service} yet"
    );
    OpError::Refused { reason, hint }
}

/// That something is not there for the service of an ensemble.
fn not_yet(ensemble: &Ensemble, whose: &str) -> OpError {
    let (name, service) = (&ensemble.name, ensemble.service.title());
    OpError::Refused {
        reason: format!("change members of ensemble {name} on request: {whose} not for {service} yet"),
        hint: Some(
            "to have another member in the place of one, drain its node: bellwether node drain NODE"
                .to_owned(),
        ),
    }
}

fn missing(name: &EnsembleName, number: MemberNumber) -> OpError {
    OpError::NotFound(format!("member {number} of ensemble {name}"))
}

fn possible(
    fleet: &Fleet,
    (ensemble, members): (&Ensemble, &EnsembleMembers),
    number: MemberNumber,
    now: Timestamp,
) -> Result<(), OpError> {
    let name = &ensemble.name;
    match replace_refusal(fleet, ensemble, members, (number, now)) {
        None => Ok(()),
        Some(refusal) => Err(OpError::Refused {
            reason: format!("replace member {number} of ensemble {name}: {refusal}"),
            hint: Some(format!("see its members: bellwether why ensemble/{name}")),
        }),
    }
}

fn replaced(
    fleet: &Fleet,
    (ensemble, before): (&Ensemble, &EnsembleMembers),
    (number, member): (MemberNumber, &Member),
    annotation: Annotation,
) -> Result<Option<GuardedChangeset>, OpError> {
    if before.requests.replace.contains_key(&number) {
        return Ok(None);
    }
    possible(fleet, (ensemble, before), number, annotation.at)?;
    let mut said =
        event("ensemble.replace_requested", format!("ensemble/{}", ensemble.name), cause(&annotation.reason));
    said.after = Some(format!("another member takes the place of member {number} on {}", member.node));
    let mut members = before.clone();
    members.requests.replace.insert(number, annotation);
    let changeset =
        Changeset { writes: vec![Write::put(Record::EnsembleMembers(members))], events: vec![said] };
    // Whether it is managed was read.
    Ok(Some(changeset.guarded_by(Some(Key::Ensemble(ensemble.name.clone())))))
}

fn withdrawn(
    before: &EnsembleMembers,
    (number, member): (MemberNumber, &Member),
    annotation: &Annotation,
) -> Result<Option<GuardedChangeset>, OpError> {
    let name = &before.ensemble;
    if !before.requests.replace.contains_key(&number) {
        return Ok(None);
    }
    if member.phase.removal().is_some() {
        let reason = format!("keep member {number} of ensemble {name}: it leaves already");
        return Err(OpError::Refused { reason, hint: None });
    }
    let mut said = event("ensemble.replace_withdrawn", format!("ensemble/{name}"), cause(&annotation.reason));
    said.after = Some(format!("member {number} on {} stays", member.node));
    let mut members = before.clone();
    members.requests.replace.remove(&number);
    let changeset =
        Changeset { writes: vec![Write::put(Record::EnsembleMembers(members))], events: vec![said] };
    Ok(Some(changeset.into()))
}
