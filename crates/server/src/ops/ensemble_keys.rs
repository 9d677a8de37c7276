//! Keys of the members of ensembles, which only a node gets that has a member.

use bellwether_api::v1::ensemble::keys::{MemberKeys, MemberKeysRequest};
use bellwether_core::records::ensemble::EnsembleService;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::{EnsembleName, Namespace, NodeName};

use super::OpError;
use crate::pki::Pki;
use crate::pki::ensemble::EnsembleId;
use crate::pki::ensemble_keys::CephKeys;
use crate::transactor::Transactor;

/// The keys of the member that a node has of an ensemble.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble without members; [`OpError::Refused`] when the node does not have that member, or it leaves, or the software has no keys.
pub fn keys(
    transactor: &Transactor,
    pki: &Pki,
    (namespace, node, name): (&Namespace, &NodeName, &EnsembleName),
    request: &MemberKeysRequest,
) -> Result<MemberKeys, OpError> {
    let MemberKeysRequest { number, identity } = request;
    let world = transactor.world();
    let members = world.fleets.get(namespace).and_then(|fleet| fleet.ensemble_members.get(name));
    let members = members.ok_or_else(|| OpError::NotFound(format!("members of ensemble {name}")))?;
    let members = &*members.value;
    let refused = |because: String| OpError::Refused {
        reason: format!("give the keys of member {number} of ensemble {name}: {because}"),
        hint: None,
    };
    match &members.service {
        EnsembleService::Ceph(_) => {}
        EnsembleService::Etcd(_) | EnsembleService::Redis(_) | EnsembleService::Independent(_) => {
            return Err(refused(format!("{} has none", members.service.title())));
        }
    }
    let member = members.members.get(&MemberNumber::new(*number)).filter(|member| member.node == *node);
    let Some(member) = member.filter(|_| members.identity == *identity) else {
        return Err(refused(format!("it is not on node {node}")));
    };
    if member.phase.removal().is_some() {
        return Err(refused("it leaves".to_owned()));
    }
    let CephKeys { fsid, monitors, administrator, bootstrap } =
        pki.ceph_keys(EnsembleId { namespace, name, identity: &members.identity });
    Ok(MemberKeys { fsid, members: monitors, administrator, bootstrap })
}
