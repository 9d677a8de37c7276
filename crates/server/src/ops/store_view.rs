//! The view of a cluster's data stores, as the API shows it.

use bellwether_api::v1::cluster::view::{ClusterCondition, ClusterView, NodeStores};
use bellwether_core::records::node::PresenceState;
use bellwether_core::words::name::{ClusterName, NodeName};
use bellwether_core::world::fleet::Fleet;

/// The data stores of a cluster: what was decided on them, put together, and of each member that is to be seen. What was decided reads
/// all members: it is for those who may see all.
#[must_use]
pub fn view(fleet: &Fleet, cluster: &ClusterName, is_seen: impl Fn(&NodeName) -> bool) -> ClusterView {
    let stores = fleet.store_view(cluster, &is_seen);
    let stores = stores.iter().map(|(name, summary)| (name.to_string(), summary.into())).collect();
    let decided = fleet.cluster_views.get(cluster).map(|kept| &*kept.value);
    let decided = decided.filter(|_| fleet.membership.members(cluster).all(&is_seen));
    let conditions = decided.into_iter().flat_map(|view| &view.conditions);
    let mode = fleet.clusters.get(cluster).map(|kept| kept.value.mode).unwrap_or_default();
    ClusterView {
        cluster: cluster.to_string(),
        revision: 0,
        at_ms: 0,
        mode: mode.into(),
        number: decided.map(|view| view.number),
        changed_at_ms: decided.map(|view| view.changed_at.as_millis()),
        conditions: conditions.map(|(id, of)| ClusterCondition::of(id, of)).collect(),
        stores,
        nodes: fleet
            .membership
            .members(cluster)
            .filter(|node| is_seen(node))
            .map(|node| of(fleet, node))
            .collect(),
    }
}

fn of(fleet: &Fleet, node: &NodeName) -> NodeStores {
    let probes = fleet.probes.get(node).map(|kept| &kept.value);
    let presence = fleet.presences.get(node).map_or(PresenceState::Never, |kept| kept.value.contact);
    NodeStores {
        node: node.to_string(),
        presence: presence.into(),
        received_at_ms: probes.map(|probes| probes.received_at.as_millis()),
        stores: probes
            .into_iter()
            .flat_map(|probes| &probes.stores)
            .map(|(name, store)| (name.to_string(), store.into()))
            .collect(),
    }
}
