//! Members that are there and not recorded.

use alloc::string::String;

use crate::decide::ensembles::restored::told;
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::unrecorded::UnrecordedMember;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::world::fleet::Fleet;

/// A member that is not recorded, and that its store and its node have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMember {
    /// Its number.
    pub number: MemberNumber,
    /// Its node.
    pub node: NodeName,
    /// Its id in the store; `None` where members do not vote.
    pub(super) store_id: Option<String>,
    /// URL at which other members reach it.
    pub(super) peer_url: String,
}

/// The members that nodes have had since the restore, and that are not recorded.
pub(super) fn unrecorded<'a>(
    fleet: &'a Fleet,
    members: &'a EnsembleMembers,
) -> impl Iterator<Item = (&'a NodeName, &'a UnrecordedMember)> {
    let own = fleet.unrecorded_of(&members.ensemble);
    own.filter(move |(node, of)| of.identity == members.identity && told(fleet, node).is_some())
}
