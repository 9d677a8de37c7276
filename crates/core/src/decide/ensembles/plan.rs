//! What is to happen to the members of an ensemble: the changes one after the other, decided by the same function as the real ones, as if
//! each succeeded; and what is waited for then.

mod independents;
mod osds;
mod primaries;
mod step;
mod waits;

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use self::step::MAX_STEPS;
pub use self::step::PlannedStep;
use self::waits::{Circumstances, no_room, replaced, unreplaced};
use super::candidates::{candidates, with_snapshot, without_refusing};
use super::osds::OsdsSight;
use super::replace;
use super::verdict::nodes;
use super::{EnsembleSight, accepted, foreign, overtaken, restored, set_back};
use crate::decide::placement::CandidateNodes;
use crate::decide::placement::independent::IndependentSpec;
use crate::decide::placement::quorum::{
    self, QuorumSpec, QuorumStep, QuorumWait, Voter, VoterState, Voters, next_step,
};
use crate::records::ensemble::{Ensemble, EnsembleMode, EnsembleService};
use crate::records::ensemble_adoption::Adoption;
use crate::records::ensemble_members::{EnsembleMembers, RemovalReason};
use crate::records::ensemble_restore::RestoreSource;
use crate::records::freeze::Freeze;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// What is to happen to the members of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnsemblePlan {
    /// How many members there are to be.
    pub wanted: usize,
    /// The changes, one after the other.
    pub steps: Vec<PlannedStep>,
    /// What is waited for after them; `None` if it is as it is to be then.
    pub waiting: Option<String>,
    /// The nodes that match and may not have a new member, each with the reason.
    pub refusals: BTreeMap<NodeName, String>,
}

/// What is to happen to the members of an ensemble, as far as is recorded of them and their nodes, by somebody who has heard of all nodes since
/// `listening_since`.
#[must_use]
pub fn plan(
    fleet: &Fleet,
    ensemble: &Ensemble,
    stop: Option<&Freeze>,
    (now, listening_since): (Timestamp, Timestamp),
) -> EnsemblePlan {
    let all = candidates(fleet, ensemble);
    let mut places = all.clone();
    let kept = fleet.ensemble_members.get(&ensemble.name);
    let members = kept.map(|kept| &*kept.value);
    if let Some(members) = members {
        places = without_refusing(&places, members).into_owned();
    }
    let none = EnsembleMembers {
        restore: ensemble.restore.clone(),
        adoption: ensemble.adopt.as_ref().map(Adoption::of),
        ..EnsembleMembers::none(ensemble.name.clone(), ensemble.service.clone(), now)
    };
    let of = members.unwrap_or(&none);
    let nodes = nodes(fleet, of);
    let sight =
        EnsembleSight { ensemble, members: of, nodes: &nodes, is_stopped: false, listening_since, now };
    let voters = sight.without_envoy(of, sight.voters(of));
    places = without_leaving(&sight, places, &voters);
    let wanted = match &ensemble.service {
        EnsembleService::Etcd(_) | EnsembleService::Ceph(_) => {
            quorum::wanted(&QuorumSpec::of(ensemble), &places, &voters)
        }
        EnsembleService::Redis(_) => sight.wanted_instances(&places, of),
        EnsembleService::Independent(_) => IndependentSpec::of(ensemble).wanted(),
    };
    let refusals = refusals(of, &places, now);
    if let Some(waiting) = left_alone(fleet, (ensemble, wanted), of, stop) {
        return EnsemblePlan { wanted, steps: Vec::new(), waiting: Some(waiting), refusals };
    }
    let taken = foreign::taken(fleet, of).as_ref().map(foreign::taken_line);
    let unfounded = founded_on(of).and_then(|source| waits::unfounded(source, &places, !voters.is_empty()));
    let (mut steps, mut waiting) = match &ensemble.service {
        EnsembleService::Etcd(_) | EnsembleService::Ceph(_) => {
            let reason = |number, reason| replace::reason(of, number, reason);
            let spec = QuorumSpec { others: foreign::others(of), ..QuorumSpec::of(ensemble) };
            let (steps, end) = play(&spec, (places.clone(), of), voters, (now, reason));
            let described = end.and_then(|end| {
                let of = Circumstances::new(&sight, &places, end.dead);
                describe((&end.wait, end.has_room), members, &of)
            });
            (steps, taken.or(unfounded).or(described))
        }
        EnsembleService::Redis(redis) => primaries::steps(&sight, redis, &places),
        EnsembleService::Independent(_) => independents::steps(&sight, &places),
    };
    let of_osds = OsdsSight { sight: &sight, fleet, places: &all };
    let (of_osds, emptied) = osds::steps(&of_osds, of);
    steps.extend(of_osds);
    waiting = waiting.or(emptied);
    EnsemblePlan { wanted, steps, waiting, refusals }
}

/// Why nothing is done with an ensemble, whatever it has; `None` if something may be.
fn left_alone(
    fleet: &Fleet,
    (ensemble, wanted): (&Ensemble, usize),
    members: &EnsembleMembers,
    stop: Option<&Freeze>,
) -> Option<String> {
    if ensemble.mode == EnsembleMode::Unmanaged {
        return Some("its mode is unmanaged: its members are left as they are".to_string());
    }
    if let Some(stop) = stop {
        return Some(format!("{}: no member is changed", stop.line()));
    }
    if let Some(refusal) = set_back::set_back(fleet, members) {
        return Some(set_back::line(refusal));
    }
    let is_left = members.is_held(fleet.epoch) || overtaken::overtaken(fleet, members).is_some();
    is_left.then(|| {
        let (evidence, choice) =
            (restored::evidence(fleet, members), accepted::choice_of_primary(fleet, members));
        let then = accepted::consequence(fleet, members, (&evidence, &choice));
        let surplus = accepted::surplus(fleet, members, &evidence, wanted);
        format!("{}{then}{surplus}", restored::line(members, &evidence, &choice))
    })
}

/// The nodes that match and may not have a new member, each with the reason.
fn refusals(
    members: &EnsembleMembers,
    places: &CandidateNodes,
    now: Timestamp,
) -> BTreeMap<NodeName, String> {
    let refused = places.iter().filter_map(|(name, place)| {
        let reason = place.refusal.as_ref()?;
        let refused =
            members.refused.get(name).filter(|refused| refused.reason == *reason && refused.until > now);
        let until =
            refused.map(|refused| format!("; it may have one again in {}", refused.until.since(now).brief()));
        Some((name.clone(), format!("{reason}{}", until.unwrap_or_default())))
    });
    refused.collect()
}

/// The nodes, of which those of members that work and are to be replaced are drained.
fn without_leaving(sight: &EnsembleSight<'_>, places: CandidateNodes, voters: &Voters) -> CandidateNodes {
    let members = sight.members;
    let places = match &members.service {
        EnsembleService::Redis(redis) => {
            let (instances, now) = (sight.instances(members, &places), sight.now);
            let spec = primaries::spec(sight, redis, &places);
            replace::leaving_instances(Cow::Owned(places), members, &instances, (&spec, now))
        }
        EnsembleService::Etcd(_) | EnsembleService::Ceph(_) | EnsembleService::Independent(_) => {
            replace::leaving(Cow::Owned(places), members, voters)
        }
    };
    places.into_owned()
}

/// What is waited for among voters, once no change is under way.
struct VotersWait {
    wait: QuorumWait,
    /// Whether a node may have a member in the place of one that is yet to be replaced.
    has_room: bool,
    /// Those that have not worked for their time.
    dead: Vec<MemberNumber>,
}

/// The changes until nothing is to be changed, or something is waited for that is not a change under way.
fn play(
    spec: &QuorumSpec,
    (mut places, of): (CandidateNodes, &EnsembleMembers),
    mut voters: Voters,
    (now, named): (Timestamp, impl Fn(MemberNumber, RemovalReason) -> RemovalReason),
) -> (Vec<PlannedStep>, Option<VotersWait>) {
    let (mut steps, mut last) = (Vec::new(), of.last);
    while steps.len() < MAX_STEPS {
        let works = voters.values().any(|voter| voter.state == VoterState::Working);
        let source = founded_on(of).filter(|_| !works);
        let open = match source {
            Some(_) => with_snapshot(Cow::Borrowed(&places), of),
            None => Cow::Borrowed(&places),
        };
        let step = next_step(spec, &open, &voters, now);
        let founds = |number, node| {
            source.map(|source| PlannedStep::Restore(number, node, source.snapshot.to_string()))
        };
        match step {
            QuorumStep::Rest => return (steps, None),
            QuorumStep::Add(node) => {
                last = last.next();
                voters.insert(last, Voter { node: node.clone(), state: VoterState::Working });
                steps.push(founds(last, node.clone()).unwrap_or(PlannedStep::Add(last, node)));
            }
            QuorumStep::Remove(number, reason) => {
                let reason = named(number, reason);
                let has_other = replace::has_room(&spec.name, &places, &voters);
                let Some(voter) = voters.remove(&number) else { break };
                let is_passed_over =
                    reason == RemovalReason::Refused || reason == RemovalReason::Replaced && has_other;
                if let Some(place) = places.get_mut(&voter.node).filter(|_| is_passed_over) {
                    place.refusal.get_or_insert_with(|| reason.describe().to_string());
                }
                steps.push(PlannedStep::Remove(number, voter.node, reason));
            }
            QuorumStep::Wait(QuorumWait::Joining(number)) => {
                let Some(voter) = voters.get_mut(&number) else { break };
                voter.state = VoterState::Working;
                let node = voter.node.clone();
                steps.push(founds(number, node.clone()).unwrap_or(PlannedStep::Join(number, node)));
            }
            QuorumStep::Wait(QuorumWait::Leaving(number)) => {
                let Some(voter) = voters.remove(&number) else { break };
                steps.push(PlannedStep::Leave(number, voter.node));
            }
            QuorumStep::Wait(wait) => {
                let is_room_missing = |until: Timestamp| {
                    let then = next_step(spec, &open, &voters, until);
                    matches!(then, QuorumStep::Wait(QuorumWait::NoRoom { .. }))
                };
                let has_room = !matches!(&wait, QuorumWait::Silent { until, .. } if is_room_missing(*until));
                let is_dead = |(_, voter): &(&MemberNumber, &Voter)| match voter.state {
                    VoterState::Silent { since } => since.plus(spec.failover_after) <= now,
                    VoterState::Joining { .. }
                    | VoterState::Refused
                    | VoterState::Working
                    | VoterState::Leaving => false,
                };
                let dead = voters.iter().filter(is_dead).map(|(number, _)| *number).collect();
                return (steps, Some(VotersWait { wait, has_room, dead }));
            }
        }
    }
    (steps, None)
}

/// The snapshot that an ensemble is yet to be founded from.
fn founded_on(members: &EnsembleMembers) -> Option<&RestoreSource> {
    members.restore.as_ref().filter(|_| !members.is_bootstrapped)
}

/// What is waited for, in one line, with whether a node may have a member in the place of one that does not work; `None` for a change under way,
/// which is in the steps.
fn describe(
    (wait, has_room): (&QuorumWait, bool),
    members: Option<&EnsembleMembers>,
    of: &Circumstances,
) -> Option<String> {
    let named = |number| members.map_or_else(String::new, |members| waits::named(members, number));
    Some(match wait {
        QuorumWait::Joining(_) | QuorumWait::Leaving(_) => return None,
        QuorumWait::QuorumLost { working, voters, silent } => {
            waits::quorum_lost(members?, (*working, *voters), silent, of)
        }
        QuorumWait::Silent { member, until: _ } if of.at_work.contains(member) => format!(
            "member {} is being defragmented, and is not replaced while it is, however long that takes",
            named(*member)
        ),
        QuorumWait::Silent { member, until: _ } if !has_room => unreplaced(&named(*member), of.matching),
        QuorumWait::Silent { member, until } => replaced(&named(*member), *until, of),
        QuorumWait::NoRoom { missing } => {
            let dead = members.map_or_else(Vec::new, |members| of.dead(members));
            no_room(of.matching, *missing, &dead)
        }
        QuorumWait::Others => waits::of_others(members?, of.now),
    })
}

#[cfg(test)]
mod tests;
