//! Certificates of ensembles: those of their members, which only the node gets that has the member, and those of clients.

use std::net::{IpAddr, SocketAddr};

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::ensemble::certificates::{
    ClientCertificateRequest, EnsembleCertificate, MAX_ADDRESSES, MemberCertificateRequest,
    MemberCertificates,
};
use bellwether_core::records::ensemble::EnsembleService;
use bellwether_core::records::ensemble_members::{EnsembleMembers, Member};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::{EnsembleName, Namespace, NodeName};
use bellwether_core::world::fleet::Fleet;

use super::OpError;
use crate::pki::ensemble::{AuthorityUse, EnsembleId, IssuedForEnsemble};
use crate::pki::{Pki, PkiError};
use crate::transactor::Transactor;

/// Issues the certificates of the member that a node has of an ensemble, which asks for them from an address.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::NotFound`] for an ensemble without members; [`OpError::Refused`] when the node does not have that
/// member, or an address is none of the node, or the ensemble has no TLS.
pub fn certify_member(
    transactor: &Transactor,
    pki: &Pki,
    (namespace, node, name): (&Namespace, &NodeName, &EnsembleName),
    request: &MemberCertificateRequest,
    from: Option<IpAddr>,
) -> Result<MemberCertificates, OpError> {
    let MemberCertificateRequest { number, identity, addresses, certificate_request } = request;
    if addresses.is_empty() || addresses.len() > MAX_ADDRESSES {
        let reason = format!("{} addresses; write 1 to {MAX_ADDRESSES}", addresses.len());
        return Err(ShapeError::at("addresses", reason).into());
    }
    let world = transactor.world();
    let fleet = world.fleets.get(namespace);
    let found = fleet.and_then(|fleet| Some((fleet, fleet.ensemble_members.get(name)?)));
    let (fleet, kept) = found.ok_or_else(|| OpError::NotFound(format!("members of ensemble {name}")))?;
    let members = &*kept.value;
    let of = secured(namespace, members)?;
    let member = members.members.get(&MemberNumber::new(*number));
    let what = format!("issue certificates for member {number} of ensemble {name}");
    let own = member.filter(|member| members.identity == *identity && member.node == *node);
    let Some(member) = own else {
        return Err(OpError::Refused { reason: format!("{what}: it is not on node {node}"), hint: None });
    };
    if let Some(other) = addresses.iter().find(|address| !is_of_node(fleet, member, **address, from)) {
        return Err(OpError::Refused {
            reason: format!("{what}: node {node} has not reported that it has the address {other}"),
            hint: Some("its agent asks again once it has reported its addresses".to_owned()),
        });
    }
    let issue = |use_| {
        let issued = pki.issue_to_member((of, use_), addresses, certificate_request, transactor.now());
        issued.map(shape).map_err(refused)
    };
    Ok(MemberCertificates { clients: issue(AuthorityUse::Clients)?, peers: issue(AuthorityUse::Peers)? })
}

/// Whether an address is one that the node of a member reported, or that the member had when it was founded, or from which the node asks.
fn is_of_node(fleet: &Fleet, member: &Member, address: IpAddr, from: Option<IpAddr>) -> bool {
    let reported = fleet.registrations.get(&member.node);
    let is_reported = reported.is_some_and(|kept| kept.value.addresses.all().any(|own| own == address));
    let place = member.peer_url.rsplit('/').next().and_then(|place| place.parse::<SocketAddr>().ok());
    is_reported || from == Some(address) || place.is_some_and(|place| place.ip() == address)
}

/// Issues a certificate to a client of an ensemble.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::NotFound`]; [`OpError::Refused`] when the ensemble has no members yet, or no TLS.
pub fn certify_client(
    transactor: &Transactor,
    pki: &Pki,
    (namespace, name): (&Namespace, &EnsembleName),
    request: &ClientCertificateRequest,
) -> Result<EnsembleCertificate, OpError> {
    let life = request.life()?;
    let world = transactor.world();
    let fleet = world.fleets.get(namespace).filter(|fleet| fleet.ensembles.contains_key(name));
    let fleet = fleet.ok_or_else(|| OpError::NotFound(format!("ensemble {name}")))?;
    let Some(members) = fleet.ensemble_members.get(name) else {
        return Err(OpError::Refused {
            reason: format!("issue a certificate of ensemble {name}: it has no members yet"),
            hint: Some(format!("see what it waits for: bellwether why ensemble/{name}")),
        });
    };
    let of = secured(namespace, &members.value)?;
    let issued = pki.issue_to_client(of, &request.certificate_request, (transactor.now(), life));
    issued.map(shape).map_err(refused)
}

/// The ensemble of these members, if they have TLS.
fn secured<'a>(namespace: &'a Namespace, members: &'a EnsembleMembers) -> Result<EnsembleId<'a>, OpError> {
    let name = &members.ensemble;
    match members.service.has_tls() {
        true => Ok(EnsembleId { namespace, name, identity: &members.identity }),
        false => {
            let (reason, hint) = match &members.service {
                EnsembleService::Etcd(_) | EnsembleService::Redis(_) => {
                    ("it was created without TLS", "clients connect to it without certificates")
                }
                EnsembleService::Independent(_) => (
                    "what its nodes run has none of the control plane",
                    "give its program certificates of your own",
                ),
                EnsembleService::Ceph(_) => (
                    "Ceph knows clients by keys",
                    "each node with a monitor has the administrator's in the directory of its member",
                ),
            };
            Err(OpError::Refused {
                reason: format!("issue a certificate of ensemble {name}: {reason}"),
                hint: Some(hint.to_owned()),
            })
        }
    }
}

fn shape(issued: IssuedForEnsemble) -> EnsembleCertificate {
    EnsembleCertificate {
        certificate: issued.pem,
        ca: issued.ca_pem,
        expires_at_ms: issued.expires_at.as_millis(),
    }
}

fn refused(error: PkiError) -> OpError {
    ShapeError::at("certificate_request", error).into()
}
