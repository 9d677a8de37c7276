//! Which nodes may have a member of an ensemble, and why the others may not.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::decide::placement::{CandidateNode, CandidateNodes};
use crate::records::ensemble::{Ensemble, EnsembleService};
use crate::records::ensemble_members::{EnsembleMembers, MemberPhase};
use crate::records::node::{Node, PresenceState};
use crate::words::feature::Feature;
use crate::words::name::NodeName;
use crate::world::fleet::Fleet;

/// The field of a unit.
const UNIT: &str = "unit";

/// The nodes of a namespace as an ensemble sees them, without logical ones and those that were decommissioned. Costs time in proportion
/// to the nodes.
#[must_use]
pub fn candidates(fleet: &Fleet, ensemble: &Ensemble) -> CandidateNodes {
    let nodes = fleet.nodes.values().map(|kept| &*kept.value);
    let machines = nodes.filter(|node| node.decommissioned.is_none() && node.logical.is_none());
    machines.map(|node| (node.name.clone(), candidate(fleet, ensemble, node))).collect()
}

fn candidate(fleet: &Fleet, ensemble: &Ensemble, node: &Node) -> CandidateNode {
    let domain = ensemble.spread.as_ref().and_then(|key| node.labels.get(key));
    let matches = is_matched(fleet, ensemble, node);
    CandidateNode {
        domain: domain.map(ToString::to_string),
        matches,
        refusal: if matches { refusal(fleet, ensemble, node) } else { None },
        is_drained: node.cordon.as_ref().is_some_and(|cordon| cordon.drain.is_some()),
    }
}

/// Whether the filter of an ensemble matches a node.
#[must_use]
pub fn is_matched(fleet: &Fleet, ensemble: &Ensemble, node: &Node) -> bool {
    ensemble.filter.picks(node.name.as_str(), &node.labels, fleet.data_of(&node.name))
}

/// Why no new member of an ensemble is placed on a node that its filter matches; `None` if it may have one.
fn refusal(fleet: &Fleet, ensemble: &Ensemble, node: &Node) -> Option<String> {
    let name = &node.name;
    let contact = fleet.presences.get(name).map_or(PresenceState::Never, |kept| kept.value.contact);
    match contact {
        PresenceState::Never => return Some("it has never connected".to_string()),
        PresenceState::Suspect => return Some("it is suspect: it is not heard of at the moment".to_string()),
        PresenceState::Unreachable => return Some("it is unreachable".to_string()),
        PresenceState::Up => {}
    }
    let is_independent = matches!(ensemble.service, EnsembleService::Independent(_));
    let restores = ensemble.restore.as_ref().is_some_and(|source| source.node == *name);
    let unsupported = || {
        match fleet.reports.get(name).map(|kept| &kept.value) {
        None => Some("its agent has not reported yet".to_string()),
        Some(report) if is_independent && !report.features.has(Feature::IndependentMembers) => {
            Some(format!("its agent does not know {} yet, or runs no members: upgrade it, or add [ensembles] to its configuration", ensemble.service.as_str()))
        }
        Some(report) if restores && !report.features.has(Feature::Restores) => {
            Some("its agent cannot restore snapshots yet: upgrade it".to_string())
        }
        Some(report) if ensemble.adopt.is_some() && !report.features.has(Feature::Adoptions) => {
            Some("its agent cannot join a store that is adopted: upgrade it, or add [ensembles] to its configuration".to_string())
        }
        Some(report) if report.features.has(Feature::Ensembles) => None,
        Some(_) => Some("its agent runs no members: its configuration has no section [ensembles], or it is of an older release".to_string()),
    }
    };
    let cordon = || node.cordon.as_ref().map(|cordon| format!("it is {}", cordon.line()));
    let paused = || fleet.paused(node).map(|paused| format!("it is {paused}"));
    // Also where two agents follow its orders.
    let refuses = || fleet.order_refusal(name).map(|why| format!("it does not accept its orders: {why}"));
    let not_runnable = || fleet.not_runnable.get(name).map(|kept| format!("it is {}", kept.value.line()));
    unsupported()
        .or_else(cordon)
        .or_else(paused)
        .or_else(not_runnable)
        .or_else(refuses)
        .or_else(|| taken_by_another(fleet, ensemble, name))
        .or_else(|| has_unrecorded(fleet, ensemble, name))
}

/// The nodes, of which those that refused a member lately may have no other one, and those that still have a removed one neither: it would
/// have the same directory and address.
#[must_use]
pub fn without_refusing<'a>(
    places: &'a CandidateNodes,
    members: &EnsembleMembers,
) -> Cow<'a, CandidateNodes> {
    let mut places = Cow::Borrowed(places);
    let removed =
        members.members.iter().filter(|(_, member)| matches!(member.phase, MemberPhase::Removed(_)));
    let left_over = |number| format!("its former member {number} has not left it yet");
    let removed = removed.map(|(number, member)| (&member.node, left_over(number)));
    let refused = members.refused.iter().map(|(node, refused)| (node, refused.reason.clone()));
    for (node, reason) in
        removed.chain(refused).filter(|(node, _)| places.contains_key(*node)).collect::<Vec<_>>()
    {
        places.to_mut().entry(node.clone()).or_default().refusal.get_or_insert(reason);
    }
    places
}

/// The nodes, of which only the one with the snapshot may have the first member of an ensemble that is founded from one.
#[must_use]
pub fn with_snapshot<'a>(
    places: Cow<'a, CandidateNodes>,
    members: &EnsembleMembers,
) -> Cow<'a, CandidateNodes> {
    let Some(source) = members.restore.as_ref().filter(|_| !members.is_bootstrapped) else { return places };
    let mut places = places;
    for (node, place) in places.to_mut() {
        if *node != source.node {
            let reason =
                || format!("the first member is founded on node {}, which has the snapshot", source.node);
            place.refusal.get_or_insert_with(reason);
        }
    }
    places
}

/// That a member of another ensemble on a node has one of the ports of this one, or its unit.
fn taken_by_another(fleet: &Fleet, ensemble: &Ensemble, node: &NodeName) -> Option<String> {
    // Those of an ensemble that was deleted have it until they have left.
    let others = fleet.ensemble_members.values().map(|kept| &*kept.value);
    let others = others.filter(|other| other.ensemble != ensemble.name);
    others.filter(|other| other.of_node(node).is_some()).find_map(|other| {
        let (field, value) = shared(&ensemble.service, &other.service)?;
        let noun = if field == UNIT { UNIT } else { "port" };
        Some(format!("a member of ensemble {} on it has {noun} {value}", other.ensemble))
    })
}

/// That a node has a member of a former ensemble of this name: a new one would stop that, and set its data aside.
fn has_unrecorded(fleet: &Fleet, ensemble: &Ensemble, node: &NodeName) -> Option<String> {
    let number = fleet.unrecorded_on(node, &ensemble.name)?.number;
    Some(format!("it has member {number} of an ensemble {} that is not recorded", ensemble.name))
}

/// What a node cannot have of two services at once, with the field of it in the first: a port that both listen on, or a unit.
#[must_use]
pub fn shared(one: &EnsembleService, other: &EnsembleService) -> Option<(&'static str, String)> {
    let others = other.ports();
    let port = one.ports().into_iter().find(|(_, port)| others.iter().any(|(_, other)| other == port));
    port.map(|(field, port)| (field, port.to_string())).or_else(|| {
        let unit = single(one).filter(|unit| single(other) == Some(unit))?;
        Some((UNIT, unit.to_string()))
    })
}

/// The unit of which a node has one alone.
fn single(service: &EnsembleService) -> Option<&str> {
    match service {
        EnsembleService::Independent(of) if of.workload.is_single() => Some(of.workload.name()),
        EnsembleService::Etcd(_)
        | EnsembleService::Redis(_)
        | EnsembleService::Ceph(_)
        | EnsembleService::Independent(_) => None,
    }
}
