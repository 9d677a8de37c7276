//! The data stores of a cluster as they were: what is known now, with the events since then undone. Offsets, lags and times are of no
//! event, so that they are of the present alone.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use super::fleet::Fleet;
use crate::records::event::Event;
use crate::records::probes::DataStore;
use crate::words::name::{ClusterName, NodeName, ProbeName};

/// The data stores of a cluster at one event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PastView {
    /// By node and probe.
    pub stores: BTreeMap<(NodeName, ProbeName), PastStore>,
    /// By probe and name of the condition: what was seen, as it was told when the condition began or ended.
    pub conditions: BTreeMap<(String, String), String>,
}

/// A data store at one event, in the words of the events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PastStore {
    /// Its state.
    pub state: String,
    /// Software and version.
    pub software: Option<String>,
    /// Id of the cluster that it said it belonged to.
    pub cluster_id: Option<String>,
    /// By shard: its role.
    pub roles: BTreeMap<String, String>,
    /// By shard: what it replicated from, and whether it was connected.
    pub replication: BTreeMap<String, String>,
}

impl PastView {
    /// The view as it is now.
    #[must_use]
    pub fn now(fleet: &Fleet, cluster: &ClusterName) -> Self {
        let members = fleet
            .membership
            .members(cluster)
            .filter_map(|node| fleet.probes.get(node).map(|kept| (node, kept)));
        let stores = members.flat_map(|(node, kept)| {
            kept.value
                .stores
                .iter()
                .map(|(probe, store)| ((node.clone(), probe.clone()), PastStore::now(store)))
        });
        let decided = fleet.cluster_views.get(cluster).map(|kept| &*kept.value);
        let conditions = decided
            .into_iter()
            .flat_map(|view| &view.conditions)
            .map(|(id, of)| ((id.probe.to_string(), id.kind.as_str().to_string()), of.reason.clone()));
        Self { stores: stores.collect(), conditions: conditions.collect() }
    }

    /// The view before an event of this cluster or of one of its stores. Events are undone from the newest on.
    pub fn undo(&mut self, cluster: &ClusterName, event: &Event) {
        match event.subject.split_once('/') {
            Some(("cluster", name)) if name == cluster.as_str() => self.undo_condition(event),
            Some(("store", of)) => {
                if let Some(id) = store_id(of) {
                    self.undo_store(id, event);
                }
            }
            _ => {}
        }
    }

    fn undo_condition(&mut self, event: &Event) {
        let Some((probe, reason)) = event.cause.split_once(": ") else { return };
        let id = |kind: &String| (probe.to_string(), kind.clone());
        match (event.kind.as_str(), &event.before, &event.after) {
            ("cluster.condition_raised", _, Some(kind)) => drop(self.conditions.remove(&id(kind))),
            ("cluster.condition_cleared", Some(kind), _) => {
                self.conditions.insert(id(kind), reason.to_string());
            }
            _ => {}
        }
    }

    fn undo_store(&mut self, id: (NodeName, ProbeName), event: &Event) {
        let before = event.before.clone();
        match (event.kind.as_str(), before) {
            ("store.up" | "store.down" | "store.unknown", None) => drop(self.stores.remove(&id)),
            ("store.up" | "store.down" | "store.unknown" | "store.removed", Some(state)) => {
                self.stores.entry(id).or_default().state = state;
            }
            (kind, before) => {
                if let Some(store) = self.stores.get_mut(&id) {
                    store.undo(kind, before, event.after.as_deref());
                }
            }
        }
    }
}

impl PastStore {
    /// The store as it is now.
    #[must_use]
    pub fn now(store: &DataStore) -> Self {
        let facts = &store.facts;
        let shards = || facts.shards.iter();
        Self {
            state: store.state.as_str().to_string(),
            software: facts.software_and_version(),
            cluster_id: facts.cluster_id.clone(),
            roles: shards().map(|(name, shard)| (name.clone(), shard.role.as_str().to_string())).collect(),
            replication: shards()
                .filter_map(|(name, shard)| Some((name.clone(), shard.replicates()?)))
                .collect(),
        }
    }

    fn undo(&mut self, kind: &str, before: Option<String>, after: Option<&str>) {
        match kind {
            "store.version_changed" => self.software = before,
            "store.cluster_id_changed" => self.cluster_id = before,
            "shard.role_changed" | "shard.added" | "shard.removed" => {
                undo_shard(&mut self.roles, " role=", before.as_deref(), after);
                self.replication.retain(|shard, _| self.roles.contains_key(shard));
            }
            "shard.replication_changed" => {
                undo_shard(&mut self.replication, " from=", before.as_deref(), after);
            }
            _ => {}
        }
    }
}

/// Undoes a change of one shard, written as `shard=NAME role=ROLE`.
fn undo_shard(shards: &mut BTreeMap<String, String>, sign: &str, before: Option<&str>, after: Option<&str>) {
    let read = |text: &str| {
        let (name, value) = text.strip_prefix("shard=")?.split_once(sign)?;
        Some((name.to_string(), value.to_string()))
    };
    if let Some((name, _)) = after.and_then(read) {
        shards.remove(&name);
    }
    if let Some((name, value)) = before.and_then(read) {
        shards.insert(name, value);
    }
}

fn store_id(of: &str) -> Option<(NodeName, ProbeName)> {
    let (node, probe) = of.split_once('/')?;
    Some((node.parse().ok()?, probe.parse().ok()?))
}
