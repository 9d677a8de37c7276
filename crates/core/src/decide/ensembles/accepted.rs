//! An ensemble that goes on although its members are known to be others than those that are recorded, because a person accepts that: where a store
//! says who its members are, and nodes say that they have them, they are recorded.

mod present;
mod primaries;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub use self::present::FoundMember;
use self::present::unrecorded;
use super::restored::{Evidence, fresh, namesakes, said};
use super::strangers::own_number;
use crate::records::ensemble::EnsembleService;
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, RemovalReason};
use crate::records::member::Membership;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

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
    match &members.service {
        EnsembleService::Etcd(_) | EnsembleService::Ceph(_) => voters(fleet, members),
        EnsembleService::Redis(redis) => primaries::found(fleet, members, redis),
        EnsembleService::Independent(_) => Vec::new(),
    }
}

/// Where it has a primary and nobody can say which member that is, what each that works has: a person is to name it, or the one that is recorded would
/// have all others take its data in the place of their own. Empty if it is known, if there is nothing to choose, or if none of them works.
#[must_use]
pub fn choice_of_primary(fleet: &Fleet, members: &EnsembleMembers) -> Vec<String> {
    let serving = members.members.values().filter(|member| member.phase == MemberPhase::Serving);
    match &members.service {
        EnsembleService::Redis(redis)
            if serving.count() > 1 && !primaries::is_known(fleet, members, redis) =>
        {
            primaries::keys(fleet, members, redis)
        }
        EnsembleService::Redis(_)
        | EnsembleService::Etcd(_)
        | EnsembleService::Ceph(_)
        | EnsembleService::Independent(_) => Vec::new(),
    }
}

/// Whether a member that is not recorded may be named the primary while an ensemble is held: its node says that it has it.
#[must_use]
pub fn may_be_recorded(fleet: &Fleet, members: &EnsembleMembers, number: MemberNumber) -> bool {
    let EnsembleService::Redis(redis) = &members.service else { return false };
    let there = primaries::there(fleet, members, redis);
    members.is_held(fleet.epoch) && there.iter().any(|of| of.number == number)
}

/// Why it cannot go on with what is recorded: none of the recorded members works, and others run. `None` if it can.
#[must_use]
pub fn nobody_there(fleet: &Fleet, members: &EnsembleMembers) -> Option<String> {
    let works =
        |(number, member): (&MemberNumber, &Member)| said(fleet, members, (*number, member)).is_some();
    if members.members.iter().any(works) || !found(fleet, members).is_empty() {
        return None;
    }
    if namesakes(fleet, members).next().is_some() {
        return Some(format!(
            "none of the members that are recorded works, and their nodes have another ensemble of this name: to keep that one, restore a newer backup, or delete              this ensemble, which leaves it as it is: bellwether ensemble delete {}",
            members.ensemble
        ));
    }
    let others = unrecorded(fleet, members).filter(|(_, of)| of.runs);
    let others: Vec<String> =
        others.map(|(node, of)| format!("member {} on node {node}", of.number)).collect();
    let name = &members.ensemble;
    let way = match &members.service {
        EnsembleService::Redis(_) => format!(
            "name the one whose data are to be kept, bellwether ensemble failover {name} --to MEMBER --accept-data-loss, then bellwether ensemble resume {name} \
             --accept-data-loss"
        ),
        EnsembleService::Etcd(_) => format!(
            "an etcd without TLS keeps its data by bellwether ensemble delete {name}, then bellwether ensemble create {name} --adopt with the URL of one of them; any \
             other one by a snapshot of etcdctl and --from-snapshot"
        ),
        EnsembleService::Ceph(_) | EnsembleService::Independent(_) => {
            "see the guide on ensembles, \"Members that are not recorded\"".to_string()
        }
    };
    (!others.is_empty()).then(|| {
        format!("none of the members that are recorded works, and others run ({}): {way}", others.join(", "))
    })
}

/// What becomes of one whose members are others than those that are recorded once a person accepts that, after why nothing is decided.
#[must_use]
pub fn consequence(
    fleet: &Fleet,
    members: &EnsembleMembers,
    (evidence, choice): (&Evidence, &[String]),
) -> String {
    if !matches!(evidence, Evidence::Other(_)) || !choice.is_empty() {
        return String::new();
    }
    if let Some(why) = nobody_there(fleet, members) {
        return format!("; {why}");
    }
    let (name, mut then) = (&members.ensemble, members.clone());
    accept(fleet, &mut then, Timestamp::EPOCH);
    let numbers: Vec<String> = staying(&then).map(|number| number.to_string()).collect();
    let (noun, numbers) = (if numbers.len() == 1 { "member" } else { "members" }, numbers.join(", "));
    let primary = then.lead.primary.filter(|_| matches!(members.service, EnsembleService::Redis(_)));
    let primary = primary.map(|number| {
        format!(
            ", of which member {number} is the primary and all others take its data in the place of their own"
        )
    });
    format!(
        "; or go on with {noun} {numbers}{}: bellwether ensemble resume {name} --accept-data-loss",
        primary.unwrap_or_default()
    )
}

fn staying(members: &EnsembleMembers) -> impl Iterator<Item = MemberNumber> {
    let stay = members.members.iter().filter(|(_, member)| !matches!(member.phase, MemberPhase::Removed(_)));
    stay.map(|(number, _)| *number)
}

/// That there are more members than there are to be once it goes on, of which some are removed then; empty if there are not.
#[must_use]
pub fn surplus(fleet: &Fleet, members: &EnsembleMembers, evidence: &Evidence, wanted: usize) -> String {
    let mut then = members.clone();
    if matches!(evidence, Evidence::Other(_)) && nobody_there(fleet, members).is_none() {
        accept(fleet, &mut then, Timestamp::EPOCH);
    }
    let (name, stay) = (&members.ensemble, staying(&then).count());
    let surplus = stay.saturating_sub(wanted);
    if surplus == 0 {
        return String::new();
    }
    let are = if surplus == 1 { "is" } else { "are" };
    format!(
        "; {surplus} of the {stay} members {are} removed then, since it is to have {wanted}: to keep them, first: bellwether ensemble scale {name} {stay}"
    )
}

/// The same of those that vote.
fn voters(fleet: &Fleet, members: &EnsembleMembers) -> Vec<FoundMember> {
    let own = unrecorded(fleet, members).map(|(node, of)| (of.number, node));
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
        Some(FoundMember { number, node: node.clone(), store_id: Some(id.clone()), peer_url })
    };
    // One that was to join may have joined since.
    let joining = members.members.iter().filter(|(number, member)| {
        let joins = matches!(
            member.phase,
            MemberPhase::Preparing
                | MemberPhase::Bootstrapping
                | MemberPhase::Adding
                | MemberPhase::Joining(_)
        );
        joins && said(fleet, members, (**number, member)).is_some()
    });
    let joining = joining.map(|(number, member)| (*number, &member.node));
    let is_new = |number: &MemberNumber| !members.members.contains_key(number);
    own.chain(later).filter(|(number, _)| is_new(number)).chain(joining).filter_map(listed).collect()
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

/// Has an ensemble go on with the members that are recorded, as they are now, and with those that are found.
pub fn accept(fleet: &Fleet, members: &mut EnsembleMembers, now: Timestamp) {
    let (found, highest, gone) = (found(fleet, members), highest(fleet, members), uncounted(fleet, members));
    let present = primaries::present(fleet, members, &found);
    for FoundMember { number, node, store_id, peer_url } in found {
        // Its node had that one before.
        members.members.retain(|_, member| member.node != node);
        let phase = if store_id.is_some() { MemberPhase::Voting } else { MemberPhase::Serving };
        members.members.insert(number, Member { node, phase, since: now, store_id, peer_url });
        if members.lead.primary.is_some() {
            members.lead.had_data.insert(number);
        }
    }
    for number in gone {
        if let Some(member) = members.members.get_mut(&number) {
            (member.phase, member.since) = (MemberPhase::Removed(RemovalReason::NotCounted), now);
        }
    }
    if let Some(present) = present {
        primaries::lead(members, present);
    }
    members.change = None;
    members.resume(fleet.epoch, highest);
}
