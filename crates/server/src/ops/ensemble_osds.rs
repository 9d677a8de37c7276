//! OSDs of an ensemble of Ceph: the removal that a person asks for, and the keys that only the node gets that has one.

use std::collections::BTreeSet;

use bellwether_api::shape::{ShapeError, read, reason};
use bellwether_api::v1::ensemble::keys::{OsdKeys, OsdKeysRequest};
use bellwether_api::v1::ensemble::osds::{RemoveOsd, ReplaceOsd};
use bellwether_core::decide::ensembles::osds::known::named;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::ensemble::{Ensemble, EnsembleService};
use bellwether_core::records::ensemble_members::EnsembleMembers;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::osd::{MAX_DEVICES, Osd, OsdPhase};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::{DeviceSerial, EnsembleName, Namespace, NodeName};
use bellwether_core::world::fleet::Fleet;

use super::ensemble::{EnsembleScope, change};
use super::{OpError, cause, event};
use crate::pki::Pki;
use crate::pki::ensemble::EnsembleId;
use crate::transactor::Transactor;

/// Asks that an OSD is emptied and removed, or withdraws that. The same again changes nothing.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble or an OSD that does not exist; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when it is removed already.
pub async fn remove(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    request: &RemoveOsd,
) -> Result<Ensemble, OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let (number, reason) = (MemberNumber::new(request.osd), reason(&request.reason)?);
    let key = Key::EnsembleMembers(name.clone()).into();
    transactor
        .compare(namespace, actor, &key, |_, fleet, _| {
            let kept = fleet.ensembles.get(name);
            let ensemble = kept.ok_or_else(|| OpError::NotFound(format!("ensemble {name}")))?;
            let before = members(fleet, name)?;
            let osd = before.osds.osds.get(&number).ok_or_else(|| missing(name, number))?;
            if osd.phase == OsdPhase::Removed {
                let reason = format!("change OSD {number} of ensemble {name}: it is removed already");
                return Err(OpError::Refused { reason, hint: None });
            }
            if let Some(device) = &osd.successor {
                let reason = format!(
                    "change OSD {number} of ensemble {name}: it is to be replaced, with device {device}"
                );
                let hint = format!(
                    "withdraw that first: bellwether ensemble replace-osd {name} {number} --withdraw"
                );
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            if osd.is_unwanted != request.withdraw {
                return Ok((None, (*ensemble.value).clone()));
            }
            let kind = match request.withdraw {
                true => "ensemble.osd_removal_withdrawn",
                false => "ensemble.osd_removal_requested",
            };
            let mut said = event(kind, format!("ensemble/{name}"), cause(&reason));
            said.after = Some(format!("{} on {}", named(number, osd), osd.node));
            let mut members = before.clone();
            members.osds.osds.insert(number, Osd { is_unwanted: !request.withdraw, ..osd.clone() });
            let writes = vec![Write::put(Record::EnsembleMembers(members))];
            let changeset = Changeset { writes, events: vec![said] }.guarded_by(None::<Key>);
            Ok((Some(changeset), (*ensemble.value).clone()))
        })
        .await
}

/// Asks that an OSD is replaced by one with another device, which gets its number in the store, or withdraws that. The same again changes nothing.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble or an OSD that does not exist; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when it cannot be
/// replaced, or not by that device.
pub async fn replace(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    request: &ReplaceOsd,
) -> Result<Ensemble, OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let (number, reason) = (MemberNumber::new(request.osd), reason(&request.reason)?);
    let device = match (&request.device, request.withdraw) {
        (Some(serial), false) => Some(read::<DeviceSerial>("device", serial)?),
        (None, true) => None,
        (None, false) => {
            return Err(ShapeError::at("device", "is required: the serial number of the other one").into());
        }
        (Some(_), true) => return Err(ShapeError::at("device", "cannot be given with withdraw").into()),
    };
    let key = Key::EnsembleMembers(name.clone()).into();
    transactor
        .compare(namespace, actor, &key, |_, fleet, now| {
            let kept = fleet.ensembles.get(name);
            let ensemble = &*kept.ok_or_else(|| OpError::NotFound(format!("ensemble {name}")))?.value;
            let before = members(fleet, name)?;
            let osd = before.osds.osds.get(&number).ok_or_else(|| missing(name, number))?;
            if osd.successor == device {
                return Ok((None, ensemble.clone()));
            }
            if let Some(refusal) = replace_refusal(fleet, (ensemble, before), osd, device.as_ref()) {
                let reason = format!("replace OSD {number} of ensemble {name}: {refusal}");
                return Err(OpError::Refused { reason, hint: None });
            }
            let annotation = Annotation { by: actor.clone(), reason: reason.clone(), at: now };
            let service = with_device(&ensemble.service, osd, device.as_ref());
            let (changed, (after, _)) = change(fleet, Ensemble { service, annotation, ..ensemble.clone() });
            let kind = match &device {
                Some(_) => "ensemble.osd_replacement_requested",
                None => "ensemble.osd_replacement_withdrawn",
            };
            let mut said = event(kind, format!("ensemble/{name}"), cause(&reason));
            let with = device.as_ref().map(|device| format!(", by one with device {device}"));
            said.after = Some(format!("{} on {}{}", named(number, osd), osd.node, with.unwrap_or_default()));
            let mut members = before.clone();
            let osd = Osd { is_unwanted: device.is_some(), successor: device.clone(), ..osd.clone() };
            members.osds.osds.insert(number, osd);
            let mut changeset = Changeset { writes: vec![], events: vec![said] };
            if let Some(of_ensemble) = changed {
                changeset.writes.extend(of_ensemble.changeset.writes);
                changeset.events.extend(of_ensemble.changeset.events);
            }
            changeset.writes.push(Write::put(Record::EnsembleMembers(members)));
            // Which devices it names was read.
            Ok((Some(changeset.guarded_by([Key::Ensemble(name.clone())])), after))
        })
        .await
}

/// Why an OSD cannot be replaced by one with this device, or stay after all, in words that fit after "cannot replace OSD 3 of ensemble disks: ".
fn replace_refusal(
    fleet: &Fleet,
    (ensemble, members): (&Ensemble, &EnsembleMembers),
    osd: &Osd,
    device: Option<&DeviceSerial>,
) -> Option<String> {
    let is_pending = osd.successor.is_some();
    let Some(device) = device else {
        return (osd.phase == OsdPhase::Removed)
            .then(|| "it is removed already; name another device".to_owned());
    };
    match osd.phase {
        OsdPhase::Removed if !is_pending => return Some("it is removed already".to_owned()),
        OsdPhase::Joining => {
            return Some("it has no data yet: remove it, and name the other device".to_owned());
        }
        OsdPhase::In | OsdPhase::Out | OsdPhase::Removed => {}
    }
    if osd.is_unwanted && !is_pending {
        return Some("its removal is asked for: withdraw that first".to_owned());
    }
    let has_it = members.osds.osds.iter().find(|(_, other)| other.serial == *device);
    if let Some((other, _)) = has_it {
        return Some(format!("OSD {other} has, or had, device {device}"));
    }
    let awaits_it = members.osds.osds.iter().find(|(_, other)| other.successor.as_ref() == Some(device));
    if let Some((other, _)) = awaits_it {
        return Some(format!("device {device} is to take the place of OSD {other}"));
    }
    if let Some(refusal) = device_refusal(fleet, device) {
        return Some(refusal);
    }
    let service = with_device(&ensemble.service, osd, Some(device));
    let devices = service.devices().map_or(0, BTreeSet::len);
    (devices > MAX_DEVICES)
        .then(|| format!("the ensemble would name {devices} devices, {MAX_DEVICES} at most"))
}

/// Why nothing can take this device now: what it is to replace would be emptied, and have no successor.
fn device_refusal(fleet: &Fleet, device: &DeviceSerial) -> Option<String> {
    let offering = fleet.node_members.values().filter_map(|kept| {
        let found = kept.value.devices.get(device)?;
        fleet.active_node(&kept.value.node).map(|_| (&kept.value.node, found))
    });
    let offering: Vec<_> = offering.collect();
    match offering.as_slice() {
        [] => Some(format!(
            "no node offers device {device}: check the name, or put it into devices or device_paths of [ensembles] of the node that has it"
        )),
        [(_, found)] if found.used_by.is_empty() => None,
        [(node, found)] => Some(format!(
            "device {device} ({} on node {node}) is not free: {}",
            found.path,
            found.used_by.join(" and ")
        )),
        [(node, _), (other, _), ..] => Some(format!("nodes {node} and {other} have a device {device} each")),
    }
}

/// The settings with this device in the list, in the place of that of an OSD and of the one that was to be its successor; with its own if it stays.
fn with_device(service: &EnsembleService, osd: &Osd, device: Option<&DeviceSerial>) -> EnsembleService {
    let EnsembleService::Ceph(ceph) = service else { return service.clone() };
    let mut ceph = ceph.clone();
    for former in std::iter::once(&osd.serial).chain(&osd.successor) {
        ceph.devices.remove(former);
    }
    ceph.devices.insert(device.unwrap_or(&osd.serial).clone());
    EnsembleService::Ceph(ceph)
}

/// The keys of an OSD that a node has.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble without members; [`OpError::Refused`] when the node does not have that OSD, or it is removed.
pub fn keys(
    transactor: &Transactor,
    pki: &Pki,
    (namespace, node, name): (&Namespace, &NodeName, &EnsembleName),
    request: &OsdKeysRequest,
) -> Result<OsdKeys, OpError> {
    let OsdKeysRequest { osd: number, identity } = request;
    let world = transactor.world();
    let fleet = world.fleets.get(namespace);
    let members = members(fleet.unwrap_or(&Fleet::default()), name)?.clone();
    let number = MemberNumber::new(*number);
    let osd = members.osds.osds.get(&number).filter(|osd| osd.node == *node);
    let refused = |because: String| OpError::Refused {
        reason: format!("give the keys of OSD {number} of ensemble {name}: {because}"),
        hint: None,
    };
    let Some(osd) = osd.filter(|_| members.identity == *identity) else {
        return Err(refused(format!("it is not on node {node}")));
    };
    if osd.phase == OsdPhase::Removed {
        return Err(refused("it is removed".to_owned()));
    }
    let of = EnsembleId { namespace, name, identity: &members.identity };
    let all = pki.ceph_keys(of);
    let key = pki.osd_key(of, &Osd::uuid(&members.identity, number));
    Ok(OsdKeys { fsid: all.fsid, bootstrap: all.bootstrap, key })
}

fn members<'a>(fleet: &'a Fleet, name: &EnsembleName) -> Result<&'a EnsembleMembers, OpError> {
    let members = fleet.ensemble_members.get(name);
    Ok(&members.ok_or_else(|| OpError::NotFound(format!("members of ensemble {name}")))?.value)
}

fn missing(name: &EnsembleName, number: MemberNumber) -> OpError {
    OpError::NotFound(format!("OSD {number} of ensemble {name}"))
}
