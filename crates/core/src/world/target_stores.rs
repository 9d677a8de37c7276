//! The data stores of an entity's targets, with the other members of their clusters, as its rollouts read them.

use alloc::collections::BTreeMap;

use super::fleet::Fleet;
use crate::records::node::PresenceState;
use crate::records::probes::StoreState;
use crate::rollout::stores::{StoreEnvironment, StoreRole, StoreStanding};
use crate::words::name::{ClusterName, EntityName, NodeName, ProbeName, TargetName};

impl Fleet {
    /// The data stores under the probe that the entity's policy names; `None` if it names none. Costs time in proportion to the targets
    /// and the members of their clusters.
    #[must_use]
    pub fn stores_of(&self, entity: &EntityName) -> Option<StoreEnvironment> {
        let board = self.boards.get(entity)?;
        let probe = board.entity().policy.store.as_ref()?;
        let (mut clusters, mut members) = (BTreeMap::<TargetName, ClusterName>::new(), BTreeMap::new());
        for target in board.targets() {
            let node = NodeName::parse(target.name.as_str()).ok();
            let Some(cluster) = node.and_then(|node| self.membership.of(&node)) else { continue };
            clusters.insert(target.name.clone(), cluster.clone());
            if !members.contains_key(cluster) {
                let each = self.membership.members(cluster);
                let of = each.filter_map(|node| Some((node.clone(), self.standing(node, probe)?)));
                members.insert(cluster.clone(), of.collect());
            }
        }
        Some(StoreEnvironment { probe: Some(probe.clone()), clusters, members })
    }

    fn standing(&self, node: &NodeName, probe: &ProbeName) -> Option<StoreStanding> {
        let store = self.probes.get(node)?.value.stores.get(probe)?;
        let contact = self.presences.get(node).map(|kept| kept.value.contact);
        let is_counted = store.state == StoreState::Up && contact == Some(PresenceState::Up);
        Some(StoreStanding { state: store.state, role: StoreRole::of(store), is_counted })
    }
}
