//! An ensemble after a restore of the control plane: what is recorded of its members may be older than they are. Nothing is decided before it is known
//! that it is not, by the members' own word or by that of a person.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::health::working;
use super::strangers::{listed, named, own_number};
use crate::records::ensemble::EnsembleService;
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase};
use crate::records::event::EventDraft;
use crate::records::member::{MemberReport, Membership, NAMESAKE, NodeMembers};
use crate::records::probes::StoreMember;
use crate::words::counter::MemberNumber;
use crate::words::name::{EnsembleName, NodeName};
use crate::world::fleet::Fleet;

/// What is known of whether the records of an ensemble are what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// They are.
    Same,
    /// It is not known: what is not heard of.
    Unknown(Vec<String>),
    /// They are not: what differs.
    Other(Vec<String>),
}

/// What is said of a node that follows an order of after those that are recorded.
pub(super) const LATER_ORDER: &str = "follows an order that is later than any that is recorded";

/// Most contradictions that are kept: one is enough, and no more than some are read.
pub const MAX_CONTRADICTIONS: usize = 32;

/// Whether the members of an ensemble are those that are recorded, as far as they are heard of, or were since the restore.
#[must_use]
pub fn evidence(fleet: &Fleet, members: &EnsembleMembers) -> Evidence {
    // After a restore that was told, orders that were later before it say nothing of members.
    let is_told = members.epoch < fleet.epoch;
    let is_of_node = |what: &str, node: &NodeName| {
        what.strip_prefix("node ").is_some_and(|what| what.starts_with(&format!("{node} ")))
    };
    // Nor does the word of a node that was decommissioned since, such as one whose key was stolen.
    let is_active = |what: &str| {
        let mut nodes = members.members.values().map(|member| &member.node);
        nodes.any(|node| is_of_node(what, node) && fleet.active_node(node).is_some())
    };
    let counts = |what: &&String| !what.contains(LATER_ORDER) || !is_told && is_active(what);
    let contradicted: Vec<&String> = members.contradicted.iter().filter(counts).collect();
    let seen = |now: &[String]| {
        let seen = contradicted.iter().filter(|what| !now.contains(what));
        seen.map(|what| format!("it was seen since that {what}")).collect::<Vec<_>>()
    };
    let namesakes = namesakes(fleet, members).filter(|_| is_told);
    let namesakes: Vec<String> =
        namesakes.map(|node| format!("node {node} has a member {NAMESAKE}")).collect();
    match present(fleet, members) {
        Evidence::Unknown(unknown) if !contradicted.is_empty() || !namesakes.is_empty() => {
            Evidence::Other([seen(&[]), namesakes, unknown].concat())
        }
        Evidence::Other(other) => Evidence::Other([seen(&other), other].concat()),
        evidence @ (Evidence::Same | Evidence::Unknown(_)) => evidence,
    }
}

/// The nodes that have said since the restore that they have a member of another ensemble of this name in the place of the recorded one.
pub(super) fn namesakes<'a>(
    fleet: &'a Fleet,
    members: &'a EnsembleMembers,
) -> impl Iterator<Item = &'a NodeName> {
    let nodes = members.members.values().filter_map(|member| {
        let known = fresh(fleet, member)?.members.get(&members.ensemble)?;
        let is_recorded = known.report.identity == members.identity;
        (is_recorded && known.report.reason.contains(NAMESAKE)).then_some(&member.node)
    });
    nodes.filter(|node| fleet.active_node(node).is_some())
}

/// What contradicts the records now.
#[must_use]
pub fn contradictions(fleet: &Fleet, members: &EnsembleMembers) -> BTreeSet<String> {
    match present(fleet, members) {
        Evidence::Other(what) => what.into_iter().collect(),
        Evidence::Same | Evidence::Unknown(_) => BTreeSet::new(),
    }
}

/// What is known now.
fn present(fleet: &Fleet, members: &EnsembleMembers) -> Evidence {
    let (mut other, mut unknown) = (Vec::new(), Vec::new());
    for (number, member) in &members.members {
        let node = &member.node;
        let known = fresh(fleet, member).and_then(|told| told.members.get(&members.ensemble));
        let known = known.filter(|known| known.report.identity == members.identity);
        if let Some(later) = known.and_then(|known| known.report.later) {
            other.push(format!("node {node} has had member {later}, which is not recorded"));
        }
        if serves(member) && said(fleet, members, (*number, member)).is_none() {
            unknown.push(format!("member {number} on node {node} does not say that it works"));
        }
    }
    other.extend(unrecorded(fleet, members));
    let lists = members
        .members
        .iter()
        .filter_map(|(number, member)| said(fleet, members, (*number, member))?.membership.as_ref());
    let lists: Vec<&Membership> = lists.collect();
    let unrecorded = listed(members, lists.iter().copied());
    let is_recorded = |id: &str, entry: &StoreMember| {
        own_number(members, id, entry).is_some_and(|number| members.members.contains_key(&number))
    };
    // One that was to join may have joined since.
    let unrecorded =
        unrecorded.into_iter().filter(|(id, entry)| is_of(members, id, entry) && !is_recorded(id, entry));
    other.extend(
        unrecorded
            .map(|(id, entry)| format!("the store has member {}, which is not recorded", named(id, entry))),
    );
    for (number, member) in members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Voting) {
        let has =
            |list: &&Membership| member.store_id.as_ref().is_some_and(|id| list.members.contains_key(id));
        if !lists.is_empty() && !lists.iter().any(has) {
            other.push(format!("the store does not have member {number}"));
        }
    }
    // Who votes is known to any of them that reads it from a quorum: it does not matter whether the others are heard of.
    if members.service.has_voters() && !lists.is_empty() {
        unknown.clear();
    }
    for (is_known, role) in roles(fleet, members) {
        if is_known { &mut other } else { &mut unknown }.push(role);
    }
    match (other.is_empty(), unknown.is_empty()) {
        (false, _) => Evidence::Other(other),
        (true, false) => Evidence::Unknown(unknown),
        (true, true) => Evidence::Same,
    }
}

/// Whether a member of the store that is not recorded may be one of the ensemble: others may have joined one that was adopted, under other names.
fn is_of(members: &EnsembleMembers, id: &str, entry: &StoreMember) -> bool {
    let Some(adoption) = &members.adoption else { return true };
    own_number(members, id, entry).is_some() && !adoption.foreign.contains_key(id)
}

/// The members of it that nodes have had since the restore, and that are not recorded.
fn unrecorded<'a>(fleet: &'a Fleet, members: &'a EnsembleMembers) -> impl Iterator<Item = String> + 'a {
    let own = fleet.unrecorded_of(&members.ensemble);
    let own = own.filter(move |(node, of)| of.identity == members.identity && told(fleet, node).is_some());
    own.map(|(node, of)| format!("node {node} has member {}, which is not recorded", of.number))
}

/// What the node of a member has said of its members since the restore.
pub(super) fn fresh<'a>(fleet: &'a Fleet, member: &Member) -> Option<&'a NodeMembers> {
    told(fleet, &member.node)
}

/// What a node has said of its members since the restore.
pub(super) fn told<'a>(fleet: &'a Fleet, node: &NodeName) -> Option<&'a NodeMembers> {
    let kept = fleet.node_members.get(node)?;
    (kept.value.epoch == fleet.epoch).then_some(&*kept.value)
}

/// What a member that works has said since the restore.
pub(super) fn said<'a>(
    fleet: &'a Fleet,
    members: &EnsembleMembers,
    (number, member): (MemberNumber, &Member),
) -> Option<&'a MemberReport> {
    working(fleet, members, number).filter(|_| fresh(fleet, member).is_some())
}

const fn serves(member: &Member) -> bool {
    matches!(member.phase, MemberPhase::Voting | MemberPhase::Serving)
}

/// Whose role is not that which is recorded, where there is one primary, and whether it has another one: one that was started follows nobody.
fn roles(fleet: &Fleet, members: &EnsembleMembers) -> Vec<(bool, String)> {
    let EnsembleService::Redis(_) = &members.service else { return Vec::new() };
    let primary = members.lead.primary.and_then(|number| Some((number, members.members.get(&number)?)));
    let Some((primary, at)) = primary else { return Vec::new() };
    let differs = |number: MemberNumber, report: &MemberReport| {
        let said = report.replication.as_ref()?;
        let is_recorded = match number == primary {
            true => said.is_primary && is_its_history(members, &said.history),
            false => !said.is_primary && said.streams && said.follows.as_ref() == Some(&at.peer_url),
        };
        let role = match (number == primary, said.is_primary, &said.follows) {
            (true, true, _) => "is the primary of another history of writes".to_string(),
            (_, false, None) => "follows nobody, as after a start".to_string(),
            (true, false, Some(of)) => {
                format!("is a replica of {}, and not the primary, as is recorded", url_of(members, of))
            }
            (false, true, _) => "is a primary, and not a replica, as is recorded".to_string(),
            (false, false, Some(of)) if *of == at.peer_url => "gets no data of the primary".to_string(),
            (false, false, Some(of)) => {
                format!(
                    "is a replica of {}, and not of member {primary}, as is recorded",
                    url_of(members, of)
                )
            }
        };
        // One that follows the primary and gets nothing from it may not have reached it yet.
        let is_other = |of: &String| number == primary || *of != at.peer_url;
        let is_known = said.is_primary || said.follows.as_ref().is_some_and(is_other);
        (!is_recorded).then(|| (is_known, format!("member {number} {role}")))
    };
    let all = members.members.iter();
    let differing = |(number, member): (&MemberNumber, &Member)| {
        let (is_known, role) = differs(*number, said(fleet, members, (*number, member))?)?;
        (is_known || serves(member)).then_some((is_known, role))
    };
    all.filter_map(differing).collect()
}

/// Whether the primary is to have this history: that which is recorded, or that with which it was named the primary.
pub(super) fn is_its_history(members: &EnsembleMembers, history: &String) -> bool {
    let named = members.lead.promotion.as_ref();
    let named = named.is_some_and(|named| named.history.as_ref().is_none_or(|of| of == history));
    named || members.lead.history.as_ref() == Some(history)
}

/// Whose URL that is, as far as members are recorded.
pub(super) fn url_of(members: &EnsembleMembers, url: &str) -> String {
    let found = members.members.iter().find(|(_, member)| member.peer_url == url);
    found.map_or_else(|| url.to_string(), |(number, _)| format!("member {number}"))
}

/// Why nothing is decided, in one line.
#[must_use]
pub fn line(members: &EnsembleMembers, evidence: &Evidence, choice: &[String]) -> String {
    let name = &members.ensemble;
    let held = "what is recorded of its members may be older than they are, as after a restore of the control plane: none is added, removed, ordered \
                another role or started without its data";
    match evidence {
        Evidence::Same => format!("{held}; they are as is recorded, and it goes on at once"),
        Evidence::Unknown(what) if choice.is_empty() => format!(
            "{held}, until each is known to be as is recorded: {}; if that is how it is to go on: bellwether ensemble resume {name}",
            what.join(", ")
        ),
        Evidence::Unknown(what) => format!(
            "{held}, until each is known to be as is recorded: {}; if that is how it is to go on: {}",
            what.join(", "),
            named_first(name, choice)
        ),
        Evidence::Other(what) if choice.is_empty() => format!(
            "{held}; {}: restore a newer backup, or see the guide on ensembles, \"After a restore of the control plane\"",
            what.join(", ")
        ),
        Evidence::Other(what) => {
            format!("{held}; {}: restore a newer backup, or {}", what.join(", "), named_first(name, choice))
        }
    }
}

/// What a person does where nobody can say who the primary is.
#[must_use]
pub fn named_first(name: &EnsembleName, choice: &[String]) -> String {
    format!(
        "no member can say which one is the primary ({}): name the one whose data are to be kept, bellwether ensemble failover {name} --to MEMBER \
         --accept-data-loss, then bellwether ensemble resume {name} --accept-data-loss",
        choice.join(", ")
    )
}

/// That it goes on with what is recorded.
#[must_use]
pub fn resumed(members: &EnsembleMembers, cause: String) -> EventDraft {
    let subject = format!("ensemble/{}", members.ensemble);
    EventDraft { kind: "ensemble.resumed", subject, before: None, after: None, cause }
}
