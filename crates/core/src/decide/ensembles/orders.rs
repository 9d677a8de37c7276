//! The change that is made in the store, and the member that makes it.

use super::EnsembleSight;
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, OrderedChange};
use crate::records::member::MembershipChange;
use crate::words::counter::MemberNumber;

impl EnsembleSight<'_> {
    /// The change that is to be made now; `None` if there is none, or nobody to make it.
    pub(super) fn change(&self, members: &EnsembleMembers) -> Option<OrderedChange> {
        members.members.iter().find_map(|(number, member)| self.change_for(members, *number, member))
    }

    fn change_for(
        &self,
        members: &EnsembleMembers,
        number: MemberNumber,
        member: &Member,
    ) -> Option<OrderedChange> {
        let admits_by_itself = members.service.admits_by_itself();
        let change = match &member.phase {
            MemberPhase::Adding | MemberPhase::Joining(_) if admits_by_itself => return None,
            MemberPhase::Adding => {
                MembershipChange::Add { member: number, peer_url: member.peer_url.clone() }
            }
            MemberPhase::Joining(_) => MembershipChange::Promote { id: member.store_id.clone()? },
            MemberPhase::Leaving(_) if members.has_store() => removal(number, member),
            // One that was withdrawn may have been added after that, by somebody who had heard nothing of it.
            MemberPhase::Removed(_) if self.is_listed(members, number, member) => removal(number, member),
            MemberPhase::Preparing
            | MemberPhase::Bootstrapping
            | MemberPhase::Voting
            | MemberPhase::Serving
            | MemberPhase::Leaving(_)
            | MemberPhase::Removed(_) => return None,
        };
        let (by, _) = self.executor(members, Some(number))?;
        Some(OrderedChange { by, change })
    }
}

fn removal(number: MemberNumber, member: &Member) -> MembershipChange {
    MembershipChange::Remove {
        member: number,
        id: member.store_id.clone(),
        peer_url: member.peer_url.clone(),
    }
}
