//! Ensembles that adopt a store that something else founded: which one may be adopted, and when an ensemble in such a store is deleted.

use bellwether_api::shape::ShapeError;
use bellwether_core::decide::ensembles::foreign::others;
use bellwether_core::decide::ensembles::health::{MemberHealth, health};
use bellwether_core::decide::ensembles::strangers::{named, strangers};
use bellwether_core::records::ensemble::Ensemble;
use bellwether_core::records::ensemble_adoption::StoreEndpoint;
use bellwether_core::records::ensemble_members::{EnsembleMembers, MemberPhase};
use bellwether_core::records::member::MemberState;
use bellwether_core::words::name::Namespace;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use crate::ops::OpError;

/// Refuses to adopt a store for an ensemble that has one, and one of which another ensemble of any namespace names an endpoint, or has a member
/// there.
pub(super) fn may_adopt(
    world: &World,
    (own, fleet): (&Namespace, &Fleet),
    after: &Ensemble,
) -> Result<(), OpError> {
    let name = &after.name;
    let before = fleet.ensembles.get(name).map(|kept| &*kept.value);
    let Some(source) = &after.adopt else { return Ok(()) };
    let members = fleet.ensemble_members.get(name).map(|kept| &*kept.value);
    let has_own = members.is_some_and(|members| !members.members.is_empty() || members.is_bootstrapped);
    if before.is_some_and(|before| before.adopt.is_none()) && has_own {
        let reason =
            format!("ensemble {name} has a store of its own already: adopt the other one in a new ensemble");
        return Err(ShapeError::at("adopt", reason).into());
    }
    for (namespace, other_fleet) in &world.fleets {
        let is_own = |other: &Ensemble| other.name == *name && namespace == own;
        let others = other_fleet.ensembles.values().map(|kept| &*kept.value);
        for other in others.filter(|other| !is_own(other)) {
            let listed = other.adopt.iter().flat_map(|adopt| &adopt.endpoints);
            let served = serving(other_fleet, other);
            if let Some(endpoint) = source
                .endpoints
                .iter()
                .find(|endpoint| listed.clone().any(|of| of == *endpoint) || served.contains(endpoint))
            {
                let reason = format!(
                    "{endpoint} is of the store of ensemble {} in namespace {namespace}, which has it already",
                    other.name
                );
                return Err(ShapeError::at("adopt.endpoints", reason).into());
            }
        }
    }
    Ok(())
}

/// Where the members of an ensemble of etcd serve clients.
fn serving(fleet: &Fleet, ensemble: &Ensemble) -> Vec<StoreEndpoint> {
    let port = ensemble.service.client_port().filter(|_| ensemble.service.is_etcd());
    let members = fleet.ensemble_members.get(&ensemble.name).map(|kept| &*kept.value);
    let of = |url: &str| {
        let (host, _) = url.split_once("://")?.1.rsplit_once(':')?;
        format!("http://{host}:{}", port?).parse().ok()
    };
    members
        .iter()
        .flat_map(|members| members.members.values())
        .filter_map(|member| of(&member.peer_url))
        .collect()
}

/// Refuses to delete an ensemble whose members work in a store that has others, too: they would go on to count there, and not work.
pub(super) fn may_delete(fleet: &Fleet, members: Option<&EnsembleMembers>) -> Result<(), OpError> {
    let Some(members) = members else { return Ok(()) };
    let added = strangers(fleet, members);
    let others = others(members).all().saturating_add(added.len());
    let mut voting = members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Voting);
    let works = |number| match health(fleet, members, number) {
        MemberHealth::Reported(report) => report.state == MemberState::Working,
        MemberHealth::Decommissioned
        | MemberHealth::Suspect
        | MemberHealth::Unreachable
        | MemberHealth::Unknown => false,
    };
    if others == 0 || !voting.any(|(number, _)| works(*number)) {
        return Ok(());
    }
    let name = &members.ensemble;
    if !added.is_empty() {
        let all: Vec<String> = added.into_iter().map(|(id, entry)| named(id, entry)).collect();
        return Err(OpError::Refused {
            reason: format!(
                "delete ensemble {name}: its store has members that something else added ({}), and would count those of the ensemble as \
                 members that do not work",
                all.join(", ")
            ),
            hint: Some(format!(
                "remove them from the store first, or, to leave it to them: bellwether ensemble set {name} --mode unmanaged, then remove \
                 the ensemble's own members from the store and stop them"
            )),
        });
    }
    Err(OpError::Refused {
        reason: format!(
            "delete ensemble {name}: its store has members that something else runs ({others}), and would count those of the ensemble as members \
             that do not work"
        ),
        hint: Some(format!(
            "remove those first (bellwether ensemble remove-foreign-member {name} ID), or give the store back: bellwether ensemble set {name} --mode \
             unmanaged, then etcdctl member remove each of its own members"
        )),
    })
}
