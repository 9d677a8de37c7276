//! Members that the store counts, and that the ensemble has forgotten: one that joined by itself after its node was given up, or that was added by a
//! node which heard too late that this was withdrawn. Nobody else removes them, and no other one can join while they are there.

use alloc::string::String;

use super::EnsembleSight;
use crate::records::ensemble_members::{EnsembleMembers, OrderedChange};
use crate::records::member::MembershipChange;
use crate::records::probes::StoreMember;

impl EnsembleSight<'_> {
    /// The change, or the removal of a member that the ensemble has forgotten and the store has, without which no other one is added. Who lists one
    /// may have an old list: no other change waits for that.
    pub(super) fn after_leftovers(
        &self,
        members: &EnsembleMembers,
        change: Option<OrderedChange>,
    ) -> Option<OrderedChange> {
        let is_other =
            change.as_ref().is_some_and(|change| !matches!(change.change, MembershipChange::Add { .. }));
        if is_other { change } else { self.leftover_removal(members).or(change) }
    }

    fn leftover_removal(&self, members: &EnsembleMembers) -> Option<OrderedChange> {
        let (by, list) = self.executor(members, None)?;
        let (id, _) = list.members.iter().find(|(id, entry)| self.is_leftover(members, id, entry))?;
        Some(OrderedChange { by, change: MembershipChange::RemoveForeign { id: id.clone() } })
    }

    fn is_leftover(&self, members: &EnsembleMembers, id: &String, entry: &StoreMember) -> bool {
        let is_present = members.members.values().any(|member| {
            member.store_id.as_ref() == Some(id) || entry.address.as_ref() == Some(&member.peer_url)
        });
        if is_present {
            return false;
        }
        if members.service.admits_by_itself() {
            return members.former_ids.contains(id);
        }
        // What was added and never voted has no name yet. It was for a node that had a member at this address.
        let mut known = self.nodes.values().filter_map(|node| node.known);
        !entry.votes
            && known.any(|known| {
                known.report.identity == members.identity
                    && Some(&known.report.peer_url) == entry.address.as_ref()
            })
    }
}
