//! Members that a person wants replaced: one that works leaves once another one votes in its place, as from a node that is drained; one that
//! does not is removed first.

use alloc::borrow::Cow;
use alloc::string::ToString;

use crate::decide::placement::primary::{InstanceState, Instances, PrimarySpec, cut_for_good};
use crate::decide::placement::quorum::{QuorumStep, VoterState, Voters};
use crate::decide::placement::{CandidateNodes, Placed, next_node};
use crate::records::ensemble::{Ensemble, MIN_FAILOVER_AFTER};
use crate::records::ensemble_members::{EnsembleMembers, MemberPhase, RefusedMember, RemovalReason};
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;

/// Why the node of a member that was replaced does not get the next one.
const REPLACED: &str = "its former member was replaced because somebody asked for it";

/// Since when a member counts as one that does not work: one that is to be replaced waits the shortest time, and no longer than others.
pub(super) fn silent_since(
    ensemble: &Ensemble,
    members: &EnsembleMembers,
    number: MemberNumber,
    since: Timestamp,
) -> Timestamp {
    let sooner = ensemble.failover_after.as_millis().saturating_sub(MIN_FAILOVER_AFTER.as_millis());
    match members.requests.replace.contains_key(&number) {
        true => Timestamp::from_millis(since.as_millis().saturating_sub(sooner)),
        false => since,
    }
}

/// Keeps the node of a member that does not work and is removed on request, before another one has its place, from having that one, if another
/// node can.
pub(super) fn note(
    members: &mut EnsembleMembers,
    (places, placed): (&CandidateNodes, &Placed<'_>),
    node: NodeName,
    until: Timestamp,
) {
    if next_node(members.ensemble.as_str(), places, placed).is_some() {
        members.refused.insert(node, RefusedMember { reason: REPLACED.to_string(), until });
    }
}

/// A node that was kept from having the next member may have others once that is ordered.
pub(super) fn release(members: &mut EnsembleMembers) {
    members.refused.retain(|_, refused| refused.reason != REPLACED);
}

/// The nodes, of which those of members that work and are to be replaced are drained.
pub(super) fn leaving<'a>(
    mut places: Cow<'a, CandidateNodes>,
    members: &EnsembleMembers,
    voters: &Voters,
) -> Cow<'a, CandidateNodes> {
    for number in members.requests.replace.keys() {
        let Some(voter) = voters.get(number).filter(|voter| voter.state == VoterState::Working) else {
            continue;
        };
        if let Some(place) = places.to_mut().get_mut(&voter.node) {
            place.is_drained = true;
        }
    }
    places
}

/// The same where one is the primary; also of those that are cut off from it for too long.
pub(super) fn leaving_instances<'a>(
    mut places: Cow<'a, CandidateNodes>,
    members: &EnsembleMembers,
    instances: &Instances,
    (spec, now): (&PrimarySpec, Timestamp),
) -> Cow<'a, CandidateNodes> {
    let cut = cut_for_good(spec, &members.lead, instances, now);
    for number in members.requests.replace.keys().chain(&cut) {
        let up = instances.get(number).filter(|instance| instance.state == InstanceState::Up);
        if let Some(instance) = up
            && let Some(place) = places.to_mut().get_mut(&instance.node)
        {
            place.is_drained = true;
        }
    }
    places
}

/// Why a member is removed, if somebody asked for it.
pub(super) fn reason(
    members: &EnsembleMembers,
    number: MemberNumber,
    reason: RemovalReason,
) -> RemovalReason {
    let is_asked = members.requests.replace.contains_key(&number);
    match reason {
        RemovalReason::Dead | RemovalReason::CutOff | RemovalReason::Drained | RemovalReason::Surplus
            if is_asked =>
        {
            RemovalReason::Replaced
        }
        RemovalReason::Dead
        | RemovalReason::Decommissioned
        | RemovalReason::NotCounted
        | RemovalReason::CutOff
        | RemovalReason::Surplus
        | RemovalReason::Drained
        | RemovalReason::NotJoined
        | RemovalReason::Refused
        | RemovalReason::Replaced
        | RemovalReason::Deleted => reason,
    }
}

/// The step with its reason, if somebody asked for it.
pub(super) fn named(step: QuorumStep, members: &EnsembleMembers) -> QuorumStep {
    match step {
        QuorumStep::Remove(number, why) => QuorumStep::Remove(number, reason(members, number, why)),
        QuorumStep::Rest | QuorumStep::Add(_) | QuorumStep::Wait(_) => step,
    }
}

/// Withdraws what was asked of members that are gone.
pub(super) fn withdraw(members: &mut EnsembleMembers) {
    let EnsembleMembers { members, requests, .. } = members;
    let is_there = |number: &MemberNumber| {
        members.get(number).is_some_and(|member| !matches!(member.phase, MemberPhase::Removed(_)))
    };
    requests.replace.retain(|number, _| is_there(number));
}

/// Whether a node that has no member may have one.
pub(super) fn has_room(ensemble: &str, places: &CandidateNodes, voters: &Voters) -> bool {
    next_node(ensemble, places, &placed(voters)).is_some()
}

/// Which node each member is on.
pub(super) fn placed(voters: &Voters) -> Placed<'_> {
    voters.iter().map(|(number, voter)| (*number, &voter.node)).collect()
}
