//! The changes of an ensemble of independent members, one after the other, as if each succeeded.

use alloc::string::String;
use alloc::vec::Vec;

use super::step::{MAX_STEPS, PlannedStep};
use super::waits::{Circumstances, named, no_room, replaced, unreplaced};
use crate::decide::ensembles::EnsembleSight;
use crate::decide::placement::CandidateNodes;
use crate::decide::placement::independent::{
    IndependentMember, IndependentSpec, IndependentState, IndependentStep, IndependentWait, next_step,
};
use crate::words::counter::MemberNumber;
use crate::words::time::Timestamp;

/// The changes until nothing is to be changed, or something is waited for that is not a change under way, with what that is.
pub(super) fn steps(
    sight: &EnsembleSight<'_>,
    places: &CandidateNodes,
) -> (Vec<PlannedStep>, Option<String>) {
    let spec = IndependentSpec::of(sight.ensemble);
    let (mut members, mut last) = (sight.independents(sight.members), sight.members.last);
    let mut places = places.clone();
    let mut steps = Vec::new();
    while steps.len() < MAX_STEPS {
        match next_step(&spec, &places, &members, sight.now) {
            IndependentStep::Rest => return (steps, None),
            IndependentStep::Add(node) => {
                last = last.next();
                let state = IndependentState::Working;
                members.insert(last, IndependentMember { node: node.clone(), state });
                steps.push(PlannedStep::Add(last, node));
            }
            IndependentStep::Remove(number, reason) => {
                let Some(member) = members.remove(&number) else { break };
                let reason = sight.cause(&member.node, reason, &places);
                // It has another one only once this one has left it.
                if let Some(place) = places.get_mut(&member.node) {
                    place.refusal.get_or_insert_with(|| reason.describe().into());
                }
                steps.push(PlannedStep::Remove(number, member.node, reason));
            }
            IndependentStep::Wait(IndependentWait::Joining(number)) => {
                let Some(member) = members.get_mut(&number) else { break };
                member.state = IndependentState::Working;
                steps.push(PlannedStep::Join(number, member.node.clone()));
            }
            IndependentStep::Wait(wait) => {
                let is_room_missing = |until: Timestamp| {
                    let then = next_step(&spec, &places, &members, until);
                    matches!(then, IndependentStep::Wait(IndependentWait::NoRoom { .. }))
                };
                let has_room =
                    !matches!(&wait, IndependentWait::Silent { until, .. } if is_room_missing(*until));
                let is_dead = |(_, member): &(&MemberNumber, &IndependentMember)| match member.state {
                    IndependentState::Silent { since } => {
                        since.plus(sight.ensemble.failover_after) <= sight.now
                    }
                    IndependentState::Joining { .. }
                    | IndependentState::Refused
                    | IndependentState::Working => false,
                };
                let dead = members.iter().filter(is_dead).map(|(number, _)| *number).collect();
                let of = Circumstances::new(sight, &places, dead);
                return (steps, describe((&wait, has_room), sight, &of));
            }
        }
    }
    (steps, None)
}

/// What is waited for, in one line, with whether a node may have a member in the place of one that does not work; `None` for a change under way,
/// which is in the steps.
fn describe(
    (wait, has_room): (&IndependentWait, bool),
    sight: &EnsembleSight<'_>,
    of: &Circumstances,
) -> Option<String> {
    match wait {
        IndependentWait::Joining(_) => None,
        IndependentWait::Silent { member, until: _ } if !has_room => {
            Some(unreplaced(&named(sight.members, *member), of.matching))
        }
        IndependentWait::Silent { member, until } => {
            Some(replaced(&named(sight.members, *member), *until, of))
        }
        IndependentWait::NoneWorks => Some(
            "none of its members works, and none is replaced before one does: start them, see what they all need, move back what was set aside, or decommission the nodes that are gone for good; if they are of no use any more, delete the \
             ensemble and create it anew"
                .into(),
        ),
        IndependentWait::NoRoom { missing } => Some(no_room(of.matching, *missing, &of.dead(sight.members))),
    }
}
