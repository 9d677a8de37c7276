//! Absorbs what a node's agent says of its data stores, and decides when nothing is known of them any more. A data store's state
//! comes from its own node alone, never from another member of its cluster.

mod changes;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use crate::records::key::{Key, Record};
use crate::records::probes::{DataStore, NodeProbes, OFFSETS_INTERVAL, StoreState};
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::{NodeName, ProbeName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// The changes to write for a report of a node's data stores; `None` if it says nothing new, or if the essence of every store is the
/// same and was written less than [`OFFSETS_INTERVAL`] ago. A store that is not up keeps the facts it had when it was. The caller refuses
/// what was overtaken.
#[must_use]
pub fn absorb(last: Option<&NodeProbes>, new: NodeProbes, now: Timestamp) -> Option<Changeset> {
    let none = BTreeMap::new();
    let before = last.map_or(&none, |last| &last.stores);
    if last.is_none() && new.stores.is_empty() {
        return None;
    }
    let stores: BTreeMap<_, _> = new
        .stores
        .clone()
        .into_iter()
        .map(|(name, store)| {
            let store = merged(before.get(&name), store, now);
            (name, store)
        })
        .collect();
    let is_behind_a_gap = last.is_some_and(|last| NodeProbes::is_behind_a_gap(&new, last));
    if stores == *before && !is_behind_a_gap {
        return None;
    }
    let events = changes::events(&new.node, before, &stores);
    let recent = last.is_some_and(|last| now.since(last.received_at) < OFFSETS_INTERVAL);
    if recent && !is_behind_a_gap && is_same_in_essence(before, &stores) {
        return None;
    }
    let write = if stores.is_empty() {
        Write::delete(Key::Probes(new.node))
    } else {
        Write::put(Record::Probes(NodeProbes { received_at: now, stores, ..new }))
    };
    Some(Changeset { writes: Vec::from([write]), events })
}

/// Data stores of nodes that were declared unreachable are in an unknown state from then on. Wakes on presences and reports.
#[must_use]
pub fn decide(fleet: &Fleet) -> Verdict {
    let changesets = fleet.unseen_stores.iter().filter_map(|node| unknown(fleet, node)).collect();
    Verdict { changesets, wake: None }
}

fn unknown(fleet: &Fleet, node: &NodeName) -> Option<Changeset> {
    let probes = &*fleet.probes.get(node)?.value;
    let since = fleet.presences.get(node)?.value.since;
    let mut new = probes.clone();
    for store in new.stores.values_mut().filter(|store| store.state != StoreState::Unknown) {
        store.state = StoreState::Unknown;
        store.since = since;
        store.reason = format!("the agent of {node} is unreachable");
    }
    let events = changes::events(node, &probes.stores, &new.stores);
    Some(Changeset { writes: Vec::from([Write::put(Record::Probes(new))]), events })
}

fn merged(before: Option<&DataStore>, new: DataStore, now: Timestamp) -> DataStore {
    let same = before.filter(|before| before.state == new.state);
    let since = same.map_or(now, |before| before.since);
    let facts = match (new.state, before) {
        (StoreState::Down | StoreState::Unknown, Some(before)) => before.facts.clone(),
        (StoreState::Up, _) | (_, None) => new.facts,
    };
    DataStore { since, facts, ..new }
}

fn is_same_in_essence(
    before: &BTreeMap<ProbeName, DataStore>,
    after: &BTreeMap<ProbeName, DataStore>,
) -> bool {
    let same = |(a, b): ((_, &DataStore), (_, &DataStore))| a.0 == b.0 && a.1.essence() == b.1.essence();
    before.len() == after.len() && before.iter().zip(after).all(same)
}

#[cfg(test)]
mod tests;
