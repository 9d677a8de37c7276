//! An ensemble whose members are newer than what is recorded of them, as after a restore of an older backup: what is recorded would have new, empty
//! members take the places of those that serve.

use super::health::working;
use super::strangers::own_number;
use crate::records::ensemble_members::EnsembleMembers;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::world::fleet::Fleet;

/// The latest member that a node or the store says it has, or has had, and that was never recorded, with who says so; `None` if there is none.
#[must_use]
pub fn overtaken<'a>(fleet: &'a Fleet, members: &'a EnsembleMembers) -> Option<(MemberNumber, &'a NodeName)> {
    let later = members.members.values().filter_map(|member| {
        let known = fleet.node_members.get(&member.node)?.value.members.get(&members.ensemble)?;
        let report = Some(&known.report).filter(|report| report.identity == members.identity)?;
        Some((report.later.filter(|later| *later > members.last)?, &member.node))
    });
    let own = fleet.unrecorded_of(&members.ensemble);
    let own = own.filter(|(_, of)| of.identity == members.identity && of.number > members.last);
    // Others may have given such names to the members of a store that was adopted.
    let founded = members.members.iter().filter(|_| members.adoption.is_none());
    let listed = founded.flat_map(|(number, member)| {
        let list = working(fleet, members, *number).and_then(|report| report.membership.as_ref());
        let entries = list.into_iter().flat_map(|list| &list.members);
        entries.filter_map(|(id, entry)| Some((own_number(members, id, entry)?, &member.node)))
    });
    let listed = listed.filter(|(number, _)| *number > members.last);
    later.chain(own.map(|(node, of)| (of.number, node))).chain(listed).max()
}
