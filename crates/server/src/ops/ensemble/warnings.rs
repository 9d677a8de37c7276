//! What to know of an ensemble that is valid and may not be meant.

use bellwether_core::decide::ensembles::candidates::{is_matched, shared};
use bellwether_core::records::ensemble::{Ensemble, EnsembleService, EnsembleSize};
use bellwether_core::records::node::Node;
use bellwether_core::words::name::DeviceSerial;
use bellwether_core::words::plural::plural;
use bellwether_core::world::fleet::Fleet;

use crate::ops::entity_warnings;

/// Most devices that a warning names.
const DEVICES_SHOWN: usize = 10;

/// What to know of an ensemble; `None` if there is nothing. Costs time in proportion to the nodes that match it, for each ensemble with one
/// of its ports.
pub(crate) fn warning(fleet: &Fleet, ensemble: &Ensemble) -> Option<String> {
    let machines = machines(fleet).count();
    let matching = matching(fleet, ensemble);
    let found: Vec<String> = [
        unknown_field(fleet, ensemble),
        nobody(ensemble, machines, matching.len()),
        unknown_spread(ensemble, &matching),
        even(ensemble),
        capped(ensemble),
        shared_with(fleet, ensemble, &matching),
        not_offered(fleet, ensemble),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!found.is_empty()).then(|| format!("warning: {}", found.join("; ")))
}

fn machines(fleet: &Fleet) -> impl Iterator<Item = &Node> {
    let nodes = fleet.nodes.values().map(|kept| &*kept.value);
    nodes.filter(|node| node.decommissioned.is_none() && node.logical.is_none())
}

/// The nodes that an ensemble's filter matches.
pub(super) fn matching<'a>(fleet: &'a Fleet, ensemble: &Ensemble) -> Vec<&'a Node> {
    machines(fleet).filter(|node| is_matched(fleet, ensemble, node)).collect()
}

/// A label or fact that no node has: it may be mistyped, or come with nodes that join later.
fn unknown_field(fleet: &Fleet, ensemble: &Ensemble) -> Option<String> {
    let field = ensemble.filter.unknown_field(|| entity_warnings::active(fleet))?;
    Some(format!("the filter tests {field}, which no node has; see: bellwether node list -o wide"))
}

fn nobody(ensemble: &Ensemble, machines: usize, matching: usize) -> Option<String> {
    (matching == 0).then(|| {
        format!(
            "the filter {} matches 0 of {}: no member is added until one matches",
            ensemble.filter,
            plural(machines, "node")
        )
    })
}

fn unknown_spread(ensemble: &Ensemble, matching: &[&Node]) -> Option<String> {
    let key = ensemble.spread.as_ref()?;
    let has = matching.iter().any(|node| node.labels.get(key).is_some());
    (!has && !matching.is_empty())
        .then(|| format!("none of the nodes that match has the label {key}, by which members are spread"))
}

/// An even number of voters, of which no more may fail than of one fewer.
fn even(ensemble: &Ensemble) -> Option<String> {
    let votes = ensemble.service.has_voters();
    match ensemble.size {
        EnsembleSize::Number(number) if votes && number.is_multiple_of(2) => {
            Some(format!("{number} members bear as many failures as {}", number.saturating_sub(1)))
        }
        EnsembleSize::Number(_) | EnsembleSize::Quorum => None,
    }
}

/// Devices that no node offers: their serial numbers may be mistyped, or they come with nodes that join later.
fn not_offered(fleet: &Fleet, ensemble: &Ensemble) -> Option<String> {
    let offered = |serial: &DeviceSerial| {
        let mut nodes = fleet.node_members.values().map(|kept| &kept.value.devices);
        nodes.any(|devices| devices.contains_key(serial))
    };
    let unknown = ensemble.service.devices().into_iter().flatten().filter(|serial| !offered(serial));
    let unknown: Vec<String> = unknown.map(ToString::to_string).collect();
    let shown = unknown.iter().take(DEVICES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let more = match unknown.len().saturating_sub(DEVICES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!unknown.is_empty()).then(|| {
        let devices = if unknown.len() == 1 { "device" } else { "devices" };
        format!("no node offers {devices} {shown}{more}: name them in devices of [ensembles] of an agent")
    })
}

/// A primary that is to have more replicas than there can be, or none.
fn capped(ensemble: &Ensemble) -> Option<String> {
    let EnsembleService::Redis(redis) = &ensemble.service else { return None };
    let EnsembleSize::Number(number) = ensemble.size else { return None };
    let most = number.saturating_sub(1);
    if most == 0 {
        return Some(
            "with one member, nothing is promised of what it acknowledged once it is lost".to_owned(),
        );
    }
    let needed = "no write is taken while one of them does not work";
    if redis.min_replicas == most {
        return Some(format!("of {number} members, all are needed for a write: {needed}"));
    }
    (redis.min_replicas > most).then(|| {
        format!(
            "of {number} members, {most} can be replicas, so that writes need {most} of them and not {}: {needed}",
            redis.min_replicas
        )
    })
}

/// Another ensemble that has a port of this one, or its unit, and may have members on the same nodes.
fn shared_with(fleet: &Fleet, ensemble: &Ensemble, matching: &[&Node]) -> Option<String> {
    let others = fleet.ensembles.values().map(|kept| &*kept.value);
    let mut others = others.filter(|other| other.name != ensemble.name);
    others.find_map(|other| {
        let (field, value) = shared(&ensemble.service, &other.service)?;
        let both = matching.iter().filter(|node| is_matched(fleet, other, node)).count();
        let verb = if both == 1 { "matches" } else { "match" };
        (both > 0).then(|| {
            format!(
                "ensemble {} uses {field} {value}, too, and {} {verb} both filters: none of them gets a member of both",
                other.name,
                plural(both, "node")
            )
        })
    })
}
