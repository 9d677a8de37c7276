//! An ensemble that goes on although its members are known to be others than those that are recorded, because a person accepts that: where a store
//! says who its members are, and nodes say that they have them, they are recorded.

use alloc::string::String;
use alloc::vec::Vec;

use super::restored::{fresh, said, told};
use super::strangers::own_number;
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, RemovalReason};
use crate::records::member::Membership;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// A member that is not recorded, and that its store and its node have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMember {
    /// Its number.
    pub number: MemberNumber,
    /// Its node.
    pub node: NodeName,
    /// Its id in the store.
    store_id: String,
    /// URL at which other members reach it.
    peer_url: String,
}

/// The highest number of a member of it that is heard of, whether it is recorded or not.
#[must_use]
pub fn highest(fleet: &Fleet, members: &EnsembleMembers) -> MemberNumber {
    let own = fleet.unrecorded_of(&members.ensemble).filter(|(_, of)| of.identity == members.identity);
    let reports =
        members.members.values().filter_map(|member| fresh(fleet, member)?.members.get(&members.ensemble));
    let later = reports.clone().filter_map(|known| known.report.later);
    let lists = reports.filter_map(|known| known.report.membership.as_ref());
    let listed = lists.flat_map(|list| &list.members);
    let listed = listed.filter_map(|(id, entry)| own_number(members, id, entry));
    own.map(|(_, of)| of.number).chain(later).chain(listed).max().unwrap_or(MemberNumber::ZERO)
}

/// The members that are not recorded, and that the store has by the word of a recorded one, and a node by its own.
#[must_use]
pub fn found(fleet: &Fleet, members: &EnsembleMembers) -> Vec<FoundMember> {
    if !members.service.has_voters() {
        return Vec::new();
    }
    let own = fleet.unrecorded_of(&members.ensemble);
    let own = own.filter(|(node, of)| of.identity == members.identity && told(fleet, node).is_some());
    let own = own.map(|(node, of)| (of.number, node));
    let later = members.members.values().filter_map(|member| {
        let known = fresh(fleet, member)?.members.get(&members.ensemble)?;
        let report = Some(&known.report).filter(|report| report.identity == members.identity)?;
        Some((report.later?, &member.node))
    });
    let lists = members.members.iter().filter_map(|(number, member)| said(fleet, members, (*number, member)));
    let lists: Vec<&Membership> = lists.filter_map(|report| report.membership.as_ref()).collect();
    let listed = |(number, node): (MemberNumber, &NodeName)| {
        let mut all = lists.iter().flat_map(|list| &list.members);
        let (id, entry) =
            all.find(|(id, entry)| entry.votes && own_number(members, id, entry) == Some(number))?;
        let peer_url = entry.address.clone().unwrap_or_default();
        Some(FoundMember { number, node: node.clone(), store_id: id.clone(), peer_url })
    };
    own.chain(later).filter(|(number, _)| !members.members.contains_key(number)).filter_map(listed).collect()
}

/// The members that the store has, as those that are recorded and work read them since the restore.
fn lists<'a>(fleet: &'a Fleet, members: &EnsembleMembers) -> Vec<&'a Membership> {
    let said = members.members.iter().filter_map(|(number, member)| said(fleet, members, (*number, member)));
    said.filter_map(|report| report.membership.as_ref()).collect()
}

/// The members that vote as is recorded, and that the store does not have.
fn uncounted(fleet: &Fleet, members: &EnsembleMembers) -> Vec<MemberNumber> {
    let lists = lists(fleet, members);
    let is_gone = |member: &Member| {
        let has =
            |list: &&Membership| member.store_id.as_ref().is_some_and(|id| list.members.contains_key(id));
        member.phase == MemberPhase::Voting && !lists.is_empty() && !lists.iter().any(has)
    };
    members.members.iter().filter(|(_, member)| is_gone(member)).map(|(number, _)| *number).collect()
}

/// Has an ensemble go on with the members that are recorded, whatever they have now, and with those that are found.
pub fn accept(fleet: &Fleet, members: &mut EnsembleMembers, now: Timestamp) {
    let primary = members.lead.primary.and_then(|number| Some((number, members.members.get(&number)?)));
    let said = primary.and_then(|primary| said(fleet, members, primary)?.replication.as_ref());
    if let Some(said) = said.filter(|said| said.is_primary) {
        // It goes on with the history that it has, and with those that follow it in that.
        members.lead.history = Some(said.history.clone());
    }
    let (found, highest, gone) = (found(fleet, members), highest(fleet, members), uncounted(fleet, members));
    for FoundMember { number, node, store_id, peer_url } in found {
        // Its node had that one before.
        members.members.retain(|_, member| member.node != node);
        let member =
            Member { node, phase: MemberPhase::Voting, since: now, store_id: Some(store_id), peer_url };
        members.members.insert(number, member);
    }
    for number in gone {
        if let Some(member) = members.members.get_mut(&number) {
            (member.phase, member.since) = (MemberPhase::Removed(RemovalReason::NotCounted), now);
        }
    }
    members.change = None;
    members.resume(fleet.epoch, highest);
}
