//! Folds the data stores of nodes, and the index of those that nobody sees any more.

use alloc::vec::Vec;

use super::kept;
use crate::records::node::PresenceState;
use crate::records::probes::NodeProbes;
use crate::words::counter::Revision;
use crate::words::name::{NodeName, ProbeName};
use crate::world::fleet::Fleet;

impl Fleet {
    pub(super) fn put_probes(&mut self, probes: NodeProbes, revision: Revision) {
        let name = probes.node.clone();
        let before = self.probe_names(&name);
        self.probes.insert_mut(name.clone(), kept(probes, revision));
        self.note_stores(&name, &before);
        self.settle_unseen(&name);
        self.stores_changed(&name, revision);
    }

    pub(super) fn delete_probes(&mut self, name: &NodeName, revision: Revision) {
        let before = self.probe_names(name);
        self.probes.remove_mut(name);
        self.note_stores(name, &before);
        self.settle_unseen(name);
        self.stores_changed(name, revision);
    }

    fn probe_names(&self, node: &NodeName) -> Vec<ProbeName> {
        self.probes.get(node).into_iter().flat_map(|kept| kept.value.stores.keys().cloned()).collect()
    }

    /// The data stores of a node changed, and so those of its cluster.
    fn stores_changed(&mut self, name: &NodeName, revision: Revision) {
        self.touch_those_with_stores(revision);
        if let Some(cluster) = self.membership.of(name) {
            self.touched_views.touch(cluster, revision);
        }
    }

    /// The presence of a node changed: how far what it reported of its data stores is believed.
    pub(super) fn stores_heard(&mut self, name: &NodeName, revision: Revision) {
        if self.probes.contains_key(name) {
            self.stores_changed(name, revision);
        } else {
            self.touch_those_with_stores(revision);
        }
    }

    /// The presence or the data stores of a node changed.
    pub(super) fn settle_unseen(&mut self, name: &NodeName) {
        let unseen = match (self.probes.get(name), self.presences.get(name)) {
            // A report that was written after the node was declared unreachable is from its agent all the same.
            (Some(probes), Some(presence)) => {
                presence.value.contact == PresenceState::Unreachable
                    && probes.revision < presence.revision
                    && probes.value.is_known()
            }
            (_, None) | (None, _) => false,
        };
        if unseen {
            self.unseen_stores.insert_mut(name.clone());
        } else {
            self.unseen_stores.remove_mut(name);
        }
    }
}
