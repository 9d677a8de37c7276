//! What is known of whether a member serves.

use crate::records::ensemble_members::EnsembleMembers;
use crate::records::member::{KnownMember, MemberReport, MemberState};
use crate::records::node::PresenceState;
use crate::words::counter::MemberNumber;
use crate::world::fleet::Fleet;

/// What its node reported last of a member, and not of another one that it had.
#[must_use]
pub fn reported<'a>(
    fleet: &'a Fleet,
    members: &EnsembleMembers,
    number: MemberNumber,
) -> Option<&'a KnownMember> {
    let node = &members.members.get(&number)?.node;
    let known = fleet.node_members.get(node)?.value.members.get(&members.ensemble)?;
    (known.report.number == number && known.report.identity == members.identity).then_some(known)
}

/// Whether a member serves, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberHealth<'a> {
    /// Its node was decommissioned.
    Decommissioned,
    /// Its node is not heard of at the moment.
    Suspect,
    /// Its node is unreachable.
    Unreachable,
    /// Its node has not reported it.
    Unknown,
    /// What its node reported last.
    Reported(&'a MemberReport),
}

/// Whether a member serves.
#[must_use]
pub fn health<'a>(fleet: &'a Fleet, members: &EnsembleMembers, number: MemberNumber) -> MemberHealth<'a> {
    let Some(node) = members.members.get(&number).map(|member| &member.node) else {
        return MemberHealth::Unknown;
    };
    if fleet.active_node(node).is_none() {
        return MemberHealth::Decommissioned;
    }
    match fleet.presences.get(node).map(|kept| kept.value.contact) {
        Some(PresenceState::Suspect) => return MemberHealth::Suspect,
        Some(PresenceState::Unreachable) => return MemberHealth::Unreachable,
        Some(PresenceState::Up | PresenceState::Never) | None => {}
    }
    let known = reported(fleet, members, number);
    known.map_or(MemberHealth::Unknown, |known| MemberHealth::Reported(&known.report))
}

/// What a member says that works, and whose node is heard of; `None` of any other one.
#[must_use]
pub fn working<'a>(
    fleet: &'a Fleet,
    members: &EnsembleMembers,
    number: MemberNumber,
) -> Option<&'a MemberReport> {
    match health(fleet, members, number) {
        MemberHealth::Reported(report) if report.state == MemberState::Working => Some(report),
        MemberHealth::Reported(_)
        | MemberHealth::Suspect
        | MemberHealth::Unreachable
        | MemberHealth::Decommissioned
        | MemberHealth::Unknown => None,
    }
}
