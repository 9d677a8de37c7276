//! Decides on an ensemble as it is recorded, and on the members that a deleted one has left.

use alloc::collections::BTreeMap;
use alloc::vec;

use super::accepted::{accept, highest};
use super::candidates::candidates;
use super::osds;
use super::osds::OsdsSight;
use super::overtaken::overtaken;
use super::passwords;
use super::restored;
use super::set_back::set_back;
use super::{EnsembleSight, EnsembleStep, MemberNode, foreign};
use crate::records::ensemble::Ensemble;
use crate::records::ensemble_adoption::Adoption;
use crate::records::ensemble_members::{EnsembleMembers, Member};
use crate::records::freeze::Freeze;
use crate::records::key::{Key, Record};
use crate::records::member::{KnownMember, MemberState};
use crate::records::node::PresenceState;
use crate::rollout::environment::Watch;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::counter::MemberNumber;
use crate::words::name::{EnsembleName, NodeName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// The next change of the members of an ensemble.
///
/// Woken by: freezes, the ensemble, its members, the secrets that it names, what nodes report of them, and whatever says which nodes may have one.
#[must_use]
pub fn decide(
    fleet: &Fleet,
    name: &EnsembleName,
    stop: Option<&Freeze>,
    (watch, now): (Watch, Timestamp),
) -> Verdict {
    let recorded = fleet.ensemble_members.get(name).map(|kept| &*kept.value);
    match (fleet.ensembles.get(name), recorded) {
        (Some(kept), _) => {
            let mut verdict = managed(fleet, &kept.value, recorded, (stop.is_some(), watch, now));
            let end = stop.and_then(|stop| stop.until);
            verdict.wake = verdict.wake.into_iter().chain(end).min();
            verdict
        }
        (None, Some(members)) => deleted(fleet, members),
        (None, None) => Verdict::default(),
    }
}

fn managed(
    fleet: &Fleet,
    ensemble: &Ensemble,
    recorded: Option<&EnsembleMembers>,
    (is_stopped, watch, now): (bool, Watch, Timestamp),
) -> Verdict {
    let none = || EnsembleMembers::none(ensemble.name.clone(), ensemble.service.clone(), now);
    let mut members = recorded.cloned().unwrap_or_else(none);
    if members.members.is_empty() {
        members.service = ensemble.service.clone();
        members.restore.clone_from(&ensemble.restore);
    }
    adopt(&mut members, ensemble);
    if foreign::taken(fleet, &members).is_some() || set_back(fleet, &members).is_some() {
        return Verdict::default();
    }
    let mut resumed = None;
    let is_held = members.is_held(fleet.epoch);
    // What is known of before the store was set back looks as if it were heard now.
    let is_heard = members.epoch < fleet.epoch || now >= watch.settled();
    if is_held && is_heard && is_as_recorded(fleet, &members) {
        resumed = Some(restored::resumed(&members, "its members are as is recorded".into()));
    } else if is_held || overtaken(fleet, &members).is_some() {
        let wake = Some(watch.settled()).filter(|at| !is_heard && *at > now);
        return Verdict { wake, ..held(fleet, &members) };
    }
    if is_held {
        accept(fleet, &mut members, now);
    } else if members.epoch < fleet.epoch {
        members.resume(fleet.epoch, highest(fleet, &members));
    }
    let nodes = nodes(fleet, &members);
    let sight = EnsembleSight {
        ensemble,
        members: &members,
        nodes: &nodes,
        is_stopped,
        listening_since: watch.settled(),
        now,
    };
    let places = candidates(fleet, ensemble);
    let mut decision = sight.decide(&places);
    decision.events.splice(..0, resumed);
    if decision.step == EnsembleStep::Stopped {
        decision.members.osds.change = None;
    } else {
        let of_osds = OsdsSight { sight: &sight, fleet, places: &places };
        decision.events.extend(of_osds.decide(&mut decision.members));
        decision.members.passwords = passwords::current(fleet, ensemble, &members);
    }
    let is_first = recorded.is_none() && decision.members.members.is_empty();
    if is_first || recorded == Some(&decision.members) {
        return Verdict { changesets: vec![], wake: decision.wake };
    }
    let writes = vec![Write::put(Record::EnsembleMembers(decision.members))];
    Verdict { changesets: vec![Changeset { writes, events: decision.events }], wake: decision.wake }
}

/// While an ensemble is held, what contradicts its records is kept, and nothing else is done.
fn held(fleet: &Fleet, members: &EnsembleMembers) -> Verdict {
    let seen = restored::contradictions(fleet, members);
    if seen.is_subset(&members.contradicted) {
        return Verdict::default();
    }
    let contradicted =
        members.contradicted.union(&seen).take(restored::MAX_CONTRADICTIONS).cloned().collect();
    if contradicted == members.contradicted {
        return Verdict::default();
    }
    let kept = EnsembleMembers { contradicted, ..members.clone() };
    let writes = vec![Write::put(Record::EnsembleMembers(kept))];
    Verdict { changesets: vec![Changeset { writes, events: vec![] }], wake: None }
}

fn is_as_recorded(fleet: &Fleet, members: &EnsembleMembers) -> bool {
    restored::evidence(fleet, members) == restored::Evidence::Same
}

/// Takes over where the store is that is adopted; what is known of it stays.
fn adopt(members: &mut EnsembleMembers, ensemble: &Ensemble) {
    let Some(source) = &ensemble.adopt else { return };
    match &mut members.adoption {
        Some(adoption) if adoption.endpoints == source.endpoints => {}
        Some(adoption) => {
            adoption.endpoints.clone_from(&source.endpoints);
            // What kept a node from having a member may have been the endpoints.
            members.refused.clear();
        }
        None if members.members.is_empty() && !members.is_bootstrapped => {
            members.adoption = Some(Adoption::of(source));
        }
        None => {}
    }
}

/// The members of an ensemble that was deleted are forgotten once their nodes have set them aside, or are gone.
fn deleted(fleet: &Fleet, recorded: &EnsembleMembers) -> Verdict {
    let nodes = nodes(fleet, recorded);
    let is_left = |number: &MemberNumber, member: &Member| match nodes.get(&member.node) {
        None => true,
        Some(node) => node.known.is_some_and(|known| {
            let report = &known.report;
            let is_of = report.number == *number && report.identity == recorded.identity;
            is_of && report.state == MemberState::Left && node.unreachable_since.is_none()
        }),
    };
    let mut members = recorded.clone();
    if members.is_held(fleet.epoch) {
        // Whoever deleted it meant whatever it has.
        let highest = highest(fleet, &members);
        members.resume(fleet.epoch, highest);
    }
    members.members.retain(|number, member| !is_left(number, member));
    let has_left = osds::known::known(fleet, recorded);
    let has_left = has_left.iter().filter(|known| {
        let is_gone = fleet.active_node(&known.osd.node).is_none();
        is_gone || known.report.is_some_and(|report| report.state == MemberState::Left)
    });
    for known in has_left {
        members.osds.osds.remove(&known.number);
    }
    let is_empty = members.is_empty();
    if members == *recorded && !is_empty {
        return Verdict::default();
    }
    let write = match is_empty {
        true => Write::delete(Key::EnsembleMembers(recorded.ensemble.clone())),
        false => Write::put(Record::EnsembleMembers(members.clone())),
    };
    let events = super::events(recorded, &members);
    Verdict { changesets: vec![Changeset { writes: vec![write], events }], wake: None }
}

/// What is heard of the nodes that have a member.
pub(super) fn nodes<'a>(fleet: &'a Fleet, members: &EnsembleMembers) -> BTreeMap<NodeName, MemberNode<'a>> {
    let of = |member: &Member| {
        let node = &member.node;
        fleet.active_node(node)?;
        let presence = fleet.presences.get(node).map(|kept| &kept.value);
        let lost = presence.filter(|presence| presence.contact == PresenceState::Unreachable);
        let is_suspect = presence.is_some_and(|presence| presence.contact == PresenceState::Suspect);
        let known = known(fleet, node, &members.ensemble);
        let (unreachable_since, refuses_orders) =
            (lost.map(|presence| presence.since), fleet.order_refusal(node).is_some());
        Some((node.clone(), MemberNode { unreachable_since, is_suspect, refuses_orders, known }))
    };
    members.members.values().filter_map(of).collect()
}

/// What a node reported last of its member of an ensemble.
fn known<'a>(fleet: &'a Fleet, node: &NodeName, ensemble: &EnsembleName) -> Option<&'a KnownMember> {
    fleet.node_members.get(node)?.value.members.get(ensemble)
}
