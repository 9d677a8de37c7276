//! The data stores of an entity's targets, with the other members of their clusters, as its rollouts read them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::fleet::Fleet;
use crate::records::node::PresenceState;
use crate::records::probes::{DataStore, StoreState};
use crate::rollout::stores::{StoreEnvironment, StoreRole, StoreStanding};
use crate::words::name::{EntityName, NodeName, ProbeName};

impl Fleet {
    /// The data stores under the probe that the entity's policy names; `None` if it names none. Costs time in proportion to the targets
    /// and the members of their clusters.
    #[must_use]
    pub fn stores_of(&self, entity: &EntityName) -> Option<StoreEnvironment> {
        let board = self.boards.get(entity)?;
        let probe = board.entity().policy.store.as_ref()?;
        let mut stores = StoreEnvironment { probe: Some(probe.clone()), ..StoreEnvironment::default() };
        for target in board.targets() {
            let node = NodeName::parse(target.name.as_str()).ok();
            let Some(cluster) = node.and_then(|node| self.membership.of(&node)) else { continue };
            stores.clusters.insert(target.name.clone(), cluster.clone());
            if !stores.members.contains_key(cluster) {
                let each = self.membership.members(cluster);
                let each: Vec<(&NodeName, &DataStore)> =
                    each.filter_map(|node| Some((node, self.store_of(node, probe)?))).collect();
                let own = match common_id(&each) {
                    CommonId::None => None,
                    CommonId::Of(id) => Some(id),
                    CommonId::Split => {
                        stores.split.insert(cluster.clone());
                        None
                    }
                };
                let of =
                    each.into_iter().map(|(node, store)| (node.clone(), self.standing(node, store, own)));
                stores.members.insert(cluster.clone(), of.collect());
            }
        }
        Some(stores)
    }

    fn store_of(&self, node: &NodeName, probe: &ProbeName) -> Option<&DataStore> {
        self.probes.get(node)?.value.stores.get(probe)
    }

    fn standing(&self, node: &NodeName, store: &DataStore, own: Option<&str>) -> StoreStanding {
        let contact = self.presences.get(node).map(|kept| kept.value.contact);
        let id = store.facts.cluster_id.as_deref();
        let is_foreign = own.is_some() && id.is_some() && id != own;
        let is_counted = store.state == StoreState::Up && contact == Some(PresenceState::Up) && !is_foreign;
        StoreStanding { state: store.state, role: StoreRole::of(store), is_counted, is_foreign }
    }
}

/// The id of the cluster that stores say they belong to.
#[derive(Debug, PartialEq, Eq)]
enum CommonId<'a> {
    /// None says one.
    None,
    /// That of the most of those that are up.
    Of(&'a str),
    /// There are several, and none has the most.
    Split,
}

fn common_id<'a>(stores: &[(&NodeName, &'a DataStore)]) -> CommonId<'a> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for (_, store) in stores.iter().filter(|(_, store)| store.state == StoreState::Up) {
        if let Some(id) = store.facts.cluster_id.as_deref() {
            *counts.entry(id).or_default() += 1;
        }
    }
    let most = counts.values().copied().max().unwrap_or_default();
    let mut first = counts.iter().filter(|(_, count)| **count == most).map(|(id, _)| *id);
    match (first.next(), first.next()) {
        (None, _) => CommonId::None,
        (Some(id), None) => CommonId::Of(id),
        (Some(_), Some(_)) => CommonId::Split,
    }
}
