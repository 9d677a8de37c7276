//! An ensemble whose members are newer than what is recorded of them, as after a restore of an older backup: what is recorded would have new, empty
//! members take the places of those that serve.

use alloc::format;
use alloc::string::String;

use crate::records::ensemble_members::EnsembleMembers;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::world::fleet::Fleet;

/// The latest member that a node says it has had and that was never recorded, with that node; `None` if there is none.
#[must_use]
pub fn overtaken<'a>(fleet: &'a Fleet, members: &'a EnsembleMembers) -> Option<(MemberNumber, &'a NodeName)> {
    let later = members.members.values().filter_map(|member| {
        let known = fleet.node_members.get(&member.node)?.value.members.get(&members.ensemble)?;
        let report = Some(&known.report).filter(|report| report.identity == members.identity)?;
        Some((report.later.filter(|later| *later > members.last)?, &member.node))
    });
    later.max()
}

/// The same in words.
#[must_use]
pub fn line((number, node): (MemberNumber, &NodeName), members: &EnsembleMembers) -> String {
    format!(
        "what is recorded of it is older than its members, as after a restore of an older backup: node {node} has had member {number}, and the last \
         one that is recorded is {}; no member is added, removed or made the primary, and those that run go on: restore a newer backup, or see \
         the guide on ensembles, \"After a restore of the control plane\"",
        members.last
    )
}
