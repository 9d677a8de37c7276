//! The view of a cluster's data stores, as the API shows it.

use std::collections::BTreeMap;

use bellwether_api::v1::cluster::view::{NodeStores, StoreSummary};
use bellwether_core::records::node::PresenceState;
use bellwether_core::words::name::{ClusterName, NodeName};
use bellwether_core::world::fleet::Fleet;

/// The data stores of a cluster: put together, and of each member that is to be seen.
#[must_use]
pub fn view(
    fleet: &Fleet,
    cluster: &ClusterName,
    is_seen: impl Fn(&NodeName) -> bool,
) -> (BTreeMap<String, StoreSummary>, Vec<NodeStores>) {
    let stores = fleet.store_view(cluster, &is_seen);
    let stores = stores.iter().map(|(name, summary)| (name.to_string(), summary.into())).collect();
    let of = |node: &NodeName| {
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
    };
    (stores, fleet.membership.members(cluster).filter(|node| is_seen(node)).map(of).collect())
}
