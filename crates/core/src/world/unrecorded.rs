//! Members that nodes have and that are not recorded, by ensemble.

use alloc::collections::BTreeSet;

use super::fleet::Fleet;
use crate::records::member::NodeMembers;
use crate::records::unrecorded::UnrecordedMember;
use crate::words::name::{EnsembleName, NodeName};

impl Fleet {
    /// The nodes of the fleet that have a member of an ensemble without being ordered to, by name.
    pub fn unrecorded_of<'a>(
        &'a self,
        ensemble: &'a EnsembleName,
    ) -> impl Iterator<Item = (&'a NodeName, &'a UnrecordedMember)> {
        let nodes = self.unrecorded.get(ensemble).into_iter().flatten();
        nodes.filter_map(|node| Some((node, self.unrecorded_on(node, ensemble)?)))
    }

    /// The member of an ensemble that a node has without being ordered to, as far as is known now.
    #[must_use]
    pub fn unrecorded_on(&self, node: &NodeName, ensemble: &EnsembleName) -> Option<&UnrecordedMember> {
        let member = self.node_members.get(node)?.value.unrecorded.get(ensemble)?;
        // It may be ordered since.
        let order = self.contents.get(node).and_then(|content| content.members.get(ensemble));
        let is_ordered =
            order.is_some_and(|order| order.identity == member.identity && order.number == member.number);
        (!is_ordered && self.active_node(node).is_some()).then_some(member)
    }

    /// All of them of a node, by ensemble.
    pub fn all_unrecorded_on<'a>(
        &'a self,
        node: &'a NodeName,
    ) -> impl Iterator<Item = (&'a EnsembleName, &'a UnrecordedMember)> {
        let told = self.node_members.get(node).into_iter();
        let names = told.flat_map(|kept| kept.value.unrecorded.keys());
        names.filter_map(|ensemble| Some((ensemble, self.unrecorded_on(node, ensemble)?)))
    }

    /// Keeps the index for what a node reports now; whether it is of other ensembles than before.
    pub(super) fn index_unrecorded(&mut self, node: &NodeName, now: Option<&NodeMembers>) -> bool {
        let of = |told: &NodeMembers| told.unrecorded.keys().cloned().collect::<BTreeSet<_>>();
        let before = self.node_members.get(node).map(|kept| of(&kept.value)).unwrap_or_default();
        let now = now.map(of).unwrap_or_default();
        for ensemble in before.union(&now) {
            let mut nodes = self.unrecorded.get(ensemble).cloned().unwrap_or_default();
            match now.contains(ensemble) {
                true => nodes.insert(node.clone()),
                false => nodes.remove(node),
            };
            match nodes.is_empty() {
                true => self.unrecorded.remove_mut(ensemble),
                false => {
                    self.unrecorded.insert_mut(ensemble.clone(), nodes);
                    true
                }
            };
        }
        before != now
    }
}
