//! What is stored of a decommissioned node whose name a new one takes.

use bellwether_core::records::key::Key;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, Namespace, NodeName, TargetName};
use bellwether_core::world::fleet::Fleet;

use super::join_token::usable;
use crate::ops::{AT_ONCE, OpError};
use crate::transactor::Transactor;

/// Deletes records of a node of this name that was decommissioned, as long as there are more than fit in the commit of a join.
pub(super) async fn make_room(
    transactor: &Transactor,
    (namespace, name): (&Namespace, &NodeName),
    actor: &Actor,
    hash: &str,
) -> Result<(), OpError> {
    while transactor
        .change(namespace, actor, |world, fleet, now| {
            let mut writes = records(fleet, name);
            if writes.len() <= AT_ONCE || fleet.hosts_still(name).is_some() {
                return Ok((None, false));
            }
            usable(world, hash, namespace, name, now)?;
            writes.truncate(AT_ONCE);
            let guard = Key::Node(name.clone());
            Ok::<_, OpError>((Some(Changeset { writes, events: vec![] }.guarded_by([guard])), true))
        })
        .await?
    {}
    Ok(())
}

/// Deletes the records of a decommissioned node of this name: they are not true of the node that joins now.
pub(super) fn records(fleet: &Fleet, name: &NodeName) -> Vec<Write> {
    if fleet.nodes.get(name).is_none_or(|kept| kept.value.decommissioned.is_none()) {
        return Vec::new();
    }
    let target = TargetName::from(name);
    let targets = fleet
        .entities
        .keys()
        .filter(|entity| fleet.targets.contains_key(&((*entity).clone(), target.clone())));
    let targets = targets.map(|entity| Key::Target(entity.clone(), target.clone()));
    let kept = [
        fleet.reports.get(name).map(|_| Key::Report(name.clone())),
        fleet.presences.get(name).map(|_| Key::Presence(name.clone())),
        fleet.orders.get(name).map(|_| Key::Order(name.clone())),
        fleet.facts.get(name).map(|_| Key::Facts(name.clone())),
        fleet.probes.get(name).map(|_| Key::Probes(name.clone())),
        fleet.node_members.get(name).map(|_| Key::NodeMembers(name.clone())),
        fleet.registrations.get(name).map(|_| Key::Registrations(name.clone())),
    ];
    let logs = fleet.logs_of(name).map(|kept| &kept.value);
    let logs = logs.map(|log| Key::Log(name.clone(), log.category.clone(), log.entity.clone()));
    // What it began, the new one has not: what undoes a run is not for it.
    let jobs = fleet.runs.keys().filter(|run| fleet.jobs.contains_key(&((*run).clone(), name.clone())));
    let jobs = jobs.map(|run| Key::Jobs(run.clone(), name.clone()));
    kept.into_iter().flatten().chain(targets).chain(logs).chain(jobs).map(Write::delete).collect()
}
