//! OSDs of an ensemble of Ceph: the removal that a person asks for, and the keys that only the node gets that has one.

use bellwether_api::shape::reason;
use bellwether_api::v1::ensemble::keys::{OsdKeys, OsdKeysRequest};
use bellwether_api::v1::ensemble::osds::RemoveOsd;
use bellwether_core::decide::ensembles::osds::known::named;
use bellwether_core::records::ensemble::Ensemble;
use bellwether_core::records::ensemble_members::EnsembleMembers;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::osd::{Osd, OsdPhase};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::{EnsembleName, Namespace, NodeName};
use bellwether_core::world::fleet::Fleet;

use super::ensemble::EnsembleScope;
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
