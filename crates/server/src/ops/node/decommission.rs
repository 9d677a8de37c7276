//! Decommissions a node: first it leaves the runs that are in progress, then the fleet.

use bellwether_api::v1::node::DecommissionRequest;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::ensemble::EnsembleMode;
use bellwether_core::records::ensemble_members::{EnsembleMembers, MemberPhase};
use bellwether_core::records::job::JobState;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::node::PresenceState;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::{EnsembleName, NodeName};
use bellwether_core::world::fleet::Fleet;

use super::{NodeScope, active, put};
use crate::ops::run::switch;
use crate::ops::{OpError, cause, event, reason};
use crate::transactor::Transactor;

/// What ends a node that cannot be trusted, or told, to give up what it has.
const FORCE: &str = "if somebody else has its key, or it cannot be reached, add --force: what it has counts as lost, and is replaced from the others";

/// Removes a node for good. The runs in progress go on without it, and those that were on this node alone are aborted: a machine that
/// takes its name later is another one.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] for the manager of a cluster, and, unless it is forced, for a node that is up and has a member of an ensemble; [`OpError::Invalid`].
pub async fn decommission(
    transactor: &Transactor,
    scope: NodeScope<'_>,
    request: &DecommissionRequest,
) -> Result<(), OpError> {
    let NodeScope { namespace, node: name, actor } = scope;
    let reason = reason(&request.reason)?;
    // A run may list many nodes, so that each is a commit of its own.
    while transactor
        .change(namespace, actor, |_, fleet, now| {
            let mut node = active(fleet, name)?;
            if let Some(cluster) = &node.logical {
                let reason =
                    format!("decommission {name}: it is the manager of cluster {cluster}, and goes with it");
                let hint = Some(format!("bellwether cluster delete {cluster}"));
                return Err(OpError::Refused { reason, hint });
            }
            if !request.force {
                refuse_needed(fleet, name)?;
            }
            let mark = Annotation { by: actor.clone(), at: now, reason: reason.clone() };
            if let Some(leaving) = leaves_a_run(fleet, name, &mark)? {
                return Ok((Some(leaving), true));
            }
            node.decommissioned = Some(mark);
            let mut changeset =
                put(node, event("node.decommissioned", format!("node/{name}"), cause(&reason)));
            if fleet.not_runnable.contains_key(name) {
                changeset.writes.push(Write::delete(Key::NotRunnable(name.clone())));
            }
            // Nobody will say any more how its data stores are: what was wrong with them is no condition of the fleet.
            if fleet.probes.contains_key(name) {
                changeset.writes.push(Write::delete(Key::Probes(name.clone())));
            }
            Ok((Some(changeset), false))
        })
        .await?
    {}
    Ok(())
}

/// Refuses a node that is up and has what others need: it can be moved first.
fn refuse_needed(fleet: &Fleet, name: &NodeName) -> Result<(), OpError> {
    if let Some((number, ensemble)) = live_member(fleet, name) {
        let reason = format!("decommission {name}: it is up, and has member {number} of ensemble {ensemble}");
        let hint = format!(
            "drain it, and decommission it once the member has left: bellwether node drain {name}; bellwether why ensemble/{ensemble}; {FORCE}"
        );
        return Err(OpError::Refused { reason, hint: Some(hint) });
    }
    if let Some((number, ensemble)) = live_osd(fleet, name) {
        let reason = format!("decommission {name}: it is up, and has OSD {number} of ensemble {ensemble}");
        let hint = format!(
            "remove that first, and decommission the node once the OSD has left: bellwether ensemble remove-osd {ensemble} {number}; \
             bellwether why ensemble/{ensemble}; {FORCE}"
        );
        return Err(OpError::Refused { reason, hint: Some(hint) });
    }
    if let Some((ensemble, number)) = live_unrecorded(fleet, name) {
        let reason = format!(
            "decommission {name}: it is up, and has member {number} of ensemble {ensemble}, which runs and is not recorded"
        );
        let hint = format!(
            "stop that member on the node, or the agent if its data are of no use; see the guide on ensembles, \"Members that are not \
             recorded\"; {FORCE}"
        );
        return Err(OpError::Refused { reason, hint: Some(hint) });
    }
    Ok(())
}

/// The member of an ensemble that is managed on a node that is not lost: another one is to take its place before the node goes.
fn live_member<'a>(fleet: &'a Fleet, node: &NodeName) -> Option<(MemberNumber, &'a EnsembleName)> {
    live(fleet, node).find_map(|members| {
        let (number, member) = members.of_node(node)?;
        (!matches!(member.phase, MemberPhase::Removed(_))).then_some((number, &members.ensemble))
    })
}

/// The same of an OSD, which has data.
fn live_osd<'a>(fleet: &'a Fleet, node: &NodeName) -> Option<(MemberNumber, &'a EnsembleName)> {
    live(fleet, node).find_map(|members| {
        let (number, _) = members.osds.present().find(|(_, osd)| osd.node == *node)?;
        Some((number, &members.ensemble))
    })
}

/// The same of a member that runs there and is not recorded.
fn live_unrecorded<'a>(fleet: &'a Fleet, node: &'a NodeName) -> Option<(&'a EnsembleName, MemberNumber)> {
    let mut all = fleet.all_unrecorded_on(node).filter(|_| is_live(fleet, node));
    all.find(|(_, member)| member.runs).map(|(ensemble, member)| (ensemble, member.number))
}

/// Whether a node is heard of.
fn is_live(fleet: &Fleet, node: &NodeName) -> bool {
    let contact = fleet.presences.get(node).map(|kept| kept.value.contact);
    matches!(contact, Some(PresenceState::Up | PresenceState::Suspect))
}

/// The members of all ensembles that are managed; none if the node is not heard of.
fn live<'a>(fleet: &'a Fleet, node: &NodeName) -> impl Iterator<Item = &'a EnsembleMembers> {
    let all = is_live(fleet, node).then(|| fleet.ensembles.values()).into_iter().flatten();
    let managed = all.filter(|kept| kept.value.mode == EnsembleMode::Managed);
    managed.filter_map(|kept| Some(&*fleet.ensemble_members.get(&kept.value.name)?.value))
}

/// Takes the node out of one of the runs that list it and have not ended; `None` if there is none.
fn leaves_a_run(fleet: &Fleet, node: &NodeName, mark: &Annotation) -> Result<Option<Changeset>, OpError> {
    let open = fleet.entities_of_node.get(node).find_map(|name| {
        let (_, entity) = (fleet.runs.get(name)?, &*fleet.entities.get(name)?.value);
        (entity.abort.is_none() && !fleet.has_ended(name)).then_some((name, entity))
    });
    let Some((run, entity)) = open else { return Ok(None) };
    let cause = format!("node {node} is decommissioned");
    let annotation = Annotation { reason: cause.clone(), ..mark.clone() };
    let (left, event) = switch::left(fleet, (entity, &[node].into()), &annotation, cause)?;
    let jobs = fleet.jobs.get(&(run.clone(), node.clone())).map(|kept| &*kept.value);
    // Nobody will hear how they end.
    let lost = jobs.map(|jobs| jobs.clone().with_open_ones(JobState::Lost));
    let lost = lost.filter(|lost| Some(lost) != jobs).map(|lost| Write::put(Record::Jobs(lost)));
    Ok(Some(Changeset { writes: [left].into_iter().chain(lost).collect(), events: vec![event] }))
}
