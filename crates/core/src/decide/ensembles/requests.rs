//! What people ask to be done with the members of an ensemble: why it cannot be done now, and what is not done yet.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::candidates::{candidates, without_refusing};
use super::osds::known::named;
use super::replace::{has_room, placed};
use super::verdict::nodes;
use super::{EnsembleSight, foreign};
use crate::decide::placement::primary::InstanceState;
use crate::decide::placement::quorum::{self, QuorumSpec, VoterState, quorum};
use crate::decide::placement::{CandidateNodes, Placed, next_node};
use crate::records::annotation::Annotation;
use crate::records::ensemble::{Ensemble, EnsembleMode, EnsembleService};
use crate::records::ensemble_members::{EnsembleMembers, MemberPhase};
use crate::records::ensemble_requests::{RollingAction, RollingRequest};
use crate::records::ensemble_snapshots::SnapshotFailure;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Why a member cannot be replaced now, in words that fit after "cannot replace member 2 of ensemble store: "; `None` if it can.
#[must_use]
pub fn replace_refusal(
    fleet: &Fleet,
    ensemble: &Ensemble,
    members: &EnsembleMembers,
    (number, now): (MemberNumber, Timestamp),
) -> Option<String> {
    let Some(member) = members.members.get(&number) else {
        return Some("there is no such member".to_string());
    };
    if ensemble.mode == EnsembleMode::Unmanaged {
        return Some(
            "the mode of the ensemble is unmanaged, and its members are left as they are".to_string(),
        );
    }
    match &member.phase {
        MemberPhase::Voting | MemberPhase::Serving => {}
        MemberPhase::Leaving(_) | MemberPhase::Removed(_) => return Some("it leaves already".to_string()),
        MemberPhase::Preparing
        | MemberPhase::Bootstrapping
        | MemberPhase::Adding
        | MemberPhase::Joining(_) => {
            let verb = if ensemble.service.has_voters() { "vote" } else { "serve" };
            return Some(format!(
                "it does not {verb} yet, and is withdrawn by itself if that is so for {}",
                ensemble.join_within
            ));
        }
    }
    let nodes = nodes(fleet, members);
    let listening_since = Timestamp::EPOCH;
    let sight = EnsembleSight { ensemble, members, nodes: &nodes, is_stopped: false, listening_since, now };
    let places = candidates(fleet, ensemble);
    let places = without_refusing(&places, members);
    match &ensemble.service {
        EnsembleService::Redis(_) => instance_refusal(&sight, number, &places),
        EnsembleService::Etcd(_) | EnsembleService::Ceph(_) | EnsembleService::Independent(_) => {
            voter_refusal(&sight, number, &places)
        }
    }
}

fn voter_refusal(sight: &EnsembleSight<'_>, number: MemberNumber, places: &CandidateNodes) -> Option<String> {
    let EnsembleSight { ensemble, members, .. } = *sight;
    let voters = sight.voters(members);
    let is_working =
        |number: &MemberNumber| voters.get(number).is_some_and(|voter| voter.state == VoterState::Working);
    let voting = members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Voting);
    let others = foreign::others(members);
    let working =
        voting.clone().filter(|(number, _)| is_working(number)).count().saturating_add(others.working);
    let voting = voting.count().saturating_add(others.all());
    if working < quorum(voting) {
        return Some(format!(
            "{working} of {voting} members that vote work, and nothing is changed without a quorum"
        ));
    }
    if others.silent > 0 && is_working(&number) {
        return Some("members of the store that are not of the ensemble do not answer, and it takes no other one meanwhile".to_string());
    }
    let is_surplus = voters.len() > quorum::wanted(&QuorumSpec::of(ensemble), places, &voters);
    let has_room = has_room(ensemble.name.as_str(), places, &voters);
    (is_working(&number) && !is_surplus && !has_room).then(|| no_room(places, &placed(&voters)))
}

/// Of a primary or a replica: one that works stays where no other one can have its place.
fn instance_refusal(
    sight: &EnsembleSight<'_>,
    number: MemberNumber,
    places: &CandidateNodes,
) -> Option<String> {
    let instances = sight.instances(sight.members, places);
    let placed: Placed<'_> = instances.iter().map(|(number, of)| (*number, &of.node)).collect();
    let is_working = instances.get(&number).is_some_and(|of| of.state == InstanceState::Up);
    let is_surplus = instances.len() > sight.wanted_instances(places, sight.members);
    let has_room = next_node(sight.ensemble.name.as_str(), places, &placed).is_some();
    (is_working && !is_surplus && !has_room).then(|| no_room(places, &placed))
}

/// Why a member of the store that is not of the ensemble cannot be removed now, in words that fit after "cannot remove foreign member 1f of
/// ensemble store: it "; `None` if it can.
#[must_use]
pub fn foreign_refusal(
    fleet: &Fleet,
    ensemble: &Ensemble,
    members: &EnsembleMembers,
    (id, now): (&str, Timestamp),
) -> Option<String> {
    let member = members.adoption.as_ref()?.foreign.get(id)?;
    if ensemble.mode == EnsembleMode::Unmanaged {
        return Some("stays: the mode of the ensemble is unmanaged, and nothing is changed".to_string());
    }
    let nodes = nodes(fleet, members);
    let listening_since = Timestamp::EPOCH;
    let sight = EnsembleSight { ensemble, members, nodes: &nodes, is_stopped: false, listening_since, now };
    sight.keeps_foreign(members, id, member)
}

/// Why no snapshot can be taken now, in words that fit after "cannot take a snapshot of ensemble store: "; `None` if one can.
#[must_use]
pub fn snapshot_refusal(
    fleet: &Fleet,
    ensemble: &Ensemble,
    members: &EnsembleMembers,
    now: Timestamp,
) -> Option<String> {
    if ensemble.mode == EnsembleMode::Unmanaged {
        return Some(
            "the mode of the ensemble is unmanaged, and its members are left as they are".to_string(),
        );
    }
    let nodes = nodes(fleet, members);
    let listening_since = Timestamp::EPOCH;
    let sight = EnsembleSight { ensemble, members, nodes: &nodes, is_stopped: false, listening_since, now };
    let voters = sight.voters(members);
    let works = voters.values().any(|voter| voter.state == VoterState::Working);
    (!works).then(|| "none of its members works".to_string())
}

/// That no other node may have a member, with what keeps the first one from it.
fn no_room(places: &CandidateNodes, placed: &Placed<'_>) -> String {
    let matching = places.iter().filter(|(_, place)| place.matches);
    let refusals: BTreeMap<&NodeName, &String> =
        matching.filter_map(|(node, place)| Some((node, place.refusal.as_ref()?))).collect();
    let free = refusals.iter().find(|(node, _)| placed.values().all(|occupied| *occupied != **node));
    let because = free.map(|(node, reason)| format!(", such as {node}: {reason}")).unwrap_or_default();
    format!("it works, and no other node may have a member in its place{because}")
}

/// How far it is, line by line.
fn rolling_lines(members: &EnsembleMembers, request: &RollingRequest, now: Timestamp) -> Vec<String> {
    let ago = now.since(request.annotation.at).brief();
    let list = |numbers: &BTreeSet<MemberNumber>| {
        numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let left = (!request.left.is_empty()).then(|| list(&request.left));
    let osds = (!request.osds_left.is_empty()).then(|| format!("OSDs {}", list(&request.osds_left)));
    let left: Vec<String> = left.into_iter().chain(osds).collect();
    let done = done(request.action);
    let asked = format!(
        "its members are {done} one after the other, as was asked {ago} ago {}: left are {}",
        request.annotation,
        left.join(", then ")
    );
    if let Some(of_osds) = osd_restart_line(members, request) {
        return Vec::from([asked, of_osds]);
    }
    let under_way = request.under_way.and_then(|number| Some((number, members.members.get(&number)?)));
    let under_way = under_way.map(|(number, member)| {
        format!("member {number} on node {} is being {done}; the next one waits until it works", member.node)
    });
    let waits = format!("no other one is {done} before all members work, and none joins or leaves");
    Vec::from([asked, under_way.unwrap_or(waits)])
}

/// What is done with the OSDs, or waited for; `None` while it is the turn of members.
fn osd_restart_line(members: &EnsembleMembers, request: &RollingRequest) -> Option<String> {
    let of = |number: MemberNumber| {
        let osd = members.osds.osds.get(&number)?;
        Some(format!("{} on node {}", named(number, osd), osd.node))
    };
    if let Some(osd) = request.osd_under_way.and_then(of) {
        return Some(format!("{osd} is being restarted; the next one waits until it works"));
    }
    let osd = request.next_osd().and_then(of)?;
    Some(format!(
        "{osd} is restarted once all OSDs work, and the store says that all data can be read and written without it"
    ))
}

/// What is done with members, in words that fit after "they are ".
const fn done(action: RollingAction) -> &'static str {
    match action {
        RollingAction::Restart => "restarted",
        RollingAction::Defragment => "defragmented",
    }
}

/// Why this cannot be done with the members now, in words that fit after "cannot restart ensemble store: "; `None` if it can.
#[must_use]
pub fn rolling_refusal(
    ensemble: &Ensemble,
    members: &EnsembleMembers,
    action: RollingAction,
) -> Option<String> {
    if action == RollingAction::Defragment && !ensemble.service.is_etcd() {
        return Some(format!("only an etcd is defragmented, and it is one of {}", ensemble.service.title()));
    }
    if ensemble.mode == EnsembleMode::Unmanaged {
        return Some(
            "the mode of the ensemble is unmanaged, and its members are left as they are".to_string(),
        );
    }
    let serves = |phase: &MemberPhase| matches!(phase, MemberPhase::Voting | MemberPhase::Serving);
    let has_any = members.members.values().any(|member| serves(&member.phase));
    if !has_any {
        return Some("it has no members that serve yet".to_string());
    }
    let other = members.requests.rolling.as_ref().filter(|request| request.action != action)?;
    Some(format!("its members are being {}, as was asked {}", done(other.action), other.annotation))
}

/// What was asked, line by line.
#[must_use]
pub fn lines(members: &EnsembleMembers, now: Timestamp) -> Vec<String> {
    let line = |(number, asked): (&MemberNumber, &Annotation)| {
        let ago = now.since(asked.at).brief();
        format!("member {number} is to be replaced, as was asked {ago} ago {asked}")
    };
    let rolling = members.requests.rolling.iter().flat_map(|request| rolling_lines(members, request, now));
    members.requests.replace.iter().map(line).chain(rolling).collect()
}

/// What is to be known of snapshots, line by line.
#[must_use]
pub fn snapshot_lines(members: &EnsembleMembers, now: Timestamp) -> Vec<String> {
    let snapshots = &members.snapshots;
    let requested = snapshots.requested.as_ref();
    let requested = requested.map(|asked| format!("a snapshot is to be taken, as was asked {asked}"));
    let ordered = snapshots.ordered.as_ref().map(|ordered| {
        let since = now.since(ordered.id.at).brief();
        format!("member {} takes snapshot {} for {since}", ordered.by, ordered.id.number)
    });
    let failure = snapshots.failure.as_ref().map(|failure| {
        let (ago, SnapshotFailure { id, node, reason, .. }) = (now.since(failure.at).brief(), failure);
        format!("snapshot {} failed {ago} ago on node {node}: {reason}", id.number)
    });
    requested.into_iter().chain(ordered).chain(failure).collect()
}
