//! Why an ensemble is not as it is to be, or that it is.

use bellwether_api::problem::Code;
use bellwether_api::v1::ensemble::status::{EnsembleStatus, RefusedDevice};
use bellwether_core::access::ObjectKind;
use bellwether_core::decide::ensembles::failing::said;
use bellwether_core::decide::ensembles::foreign;
use bellwether_core::decide::ensembles::health::{reported, working};
use bellwether_core::decide::ensembles::osds::explain;
use bellwether_core::decide::ensembles::passwords;
use bellwether_core::decide::ensembles::plan::{EnsemblePlan, PlannedStep, plan};
use bellwether_core::decide::ensembles::requests;
use bellwether_core::decide::ensembles::strangers;
use bellwether_core::records::ensemble::{Ensemble, EnsembleSize};
use bellwether_core::records::ensemble_members::{EnsembleMembers, Member, MemberPhase};
use bellwether_core::records::member::MemberState;
use bellwether_core::records::node::PresenceState;
use bellwether_core::rollout::why::WhyTime;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use bellwether_core::words::plural::plural;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::ensembles::{members, missing};
use super::problem::Failure;
use super::readable::Readable;
use crate::ops;

/// Most nodes that are named with why they may have no member.
const NAMED: usize = 20;

/// Whether it waits, and lines about its members, what happens to them next, and the nodes that may have none.
pub(super) fn ensemble(
    (world, fleet): (&World, &Fleet),
    readable: &Readable,
    name: &EnsembleName,
    time: WhyTime,
) -> Result<(bool, Vec<String>), Failure> {
    let now = time.now;
    let members = members(fleet, name);
    let Some(kept) = fleet.ensembles.get(name) else {
        return former(fleet, members.filter(|members| !members.is_empty()), time)
            .ok_or_else(|| unknown((fleet, readable), name));
    };
    let stop = world.stop(fleet, now);
    let plan = plan(fleet, &kept.value, stop.as_deref(), (now, time.watch.settled()));
    let mut lines = vec![sizes(fleet, &kept.value, members, &plan)];
    lines.extend(members.into_iter().flat_map(|members| each(fleet, members, Some(&kept.value), time)));
    lines.extend(members.into_iter().flat_map(|members| foreign::lines(members, now)));
    // While it is held, that is a sign that the records are old, and nothing that is to be removed.
    let known = members.filter(|members| !members.is_held(fleet.epoch));
    lines.extend(known.into_iter().flat_map(|members| strangers::lines(fleet, members, kept.value.mode)));
    lines.extend(members.into_iter().flat_map(|members| lead(fleet, members)));
    let report = |members| move |number| reported(fleet, members, number).map(|known| &known.report);
    lines.extend(
        members
            .into_iter()
            .flat_map(|members| passwords::lines(members, members.is_held(fleet.epoch), report(members))),
    );
    lines.extend(members.into_iter().flat_map(|members| requests::lines(members, now)));
    lines.extend(members.into_iter().flat_map(|members| requests::snapshot_lines(members, now)));
    let osds = |members| explain::lines(fleet, &kept.value, members, now);
    lines.extend(members.into_iter().flat_map(osds));
    lines.extend(
        members.into_iter().flat_map(|members| devices((fleet, readable), (&kept.value, members), now)),
    );
    let is_waiting = !plan.steps.is_empty() || plan.waiting.is_some();
    if world.leader.is_none() && is_waiting {
        let text = "no server leads, and no member is changed until one does; see: bellwether server list";
        lines.push(text.to_owned());
    }
    let word = |index: usize| if index == 0 { "next" } else { "then" };
    let steps = plan.steps.iter().map(PlannedStep::line).enumerate();
    lines.extend(steps.map(|(index, line)| format!("{}: {line}", word(index))));
    lines.extend(plan.waiting.iter().map(|waiting| format!("it waits: {waiting}")));
    lines.extend(refusals(readable, &plan));
    Ok((is_waiting, lines))
}

/// How many members vote, of how many that there are to be.
fn sizes(
    fleet: &Fleet,
    ensemble: &Ensemble,
    members: Option<&EnsembleMembers>,
    plan: &EnsemblePlan,
) -> String {
    let status = EnsembleStatus::of(plan.wanted, members, fleet);
    let voting = usize::try_from(status.voting).unwrap_or(usize::MAX);
    let size = match ensemble.size {
        EnsembleSize::Number(_) => "",
        EnsembleSize::Quorum => ", as its size is quorum",
    };
    let verb = match (ensemble.service.has_voters(), voting) {
        (false, 1) => "serves",
        (false, _) => "serve",
        (true, 1) => "votes",
        (true, _) => "vote",
    };
    let working = match status.working {
        working if working == status.voting => String::new(),
        0 => ", and none works".to_owned(),
        1 => ", and 1 works".to_owned(),
        working => format!(", and {working} work"),
    };
    format!("{} {verb} of {} that there are to be{size}{working}", plural(voting, "member"), plan.wanted)
}

/// Each member with its state, and why it does not do what it is to do.
fn each(
    fleet: &Fleet,
    members: &EnsembleMembers,
    ensemble: Option<&Ensemble>,
    time: WhyTime,
) -> impl Iterator<Item = String> {
    let now = time.now;
    members.members.iter().map(move |(number, member)| {
        let reason = member.phase.removal().map(|reason| format!(": {}", reason.describe()));
        let reason = reason.unwrap_or_default();
        let (since, phase) = (now.since(member.since).brief(), member.phase.as_str());
        let complaint = complaint(fleet, members, *number, now);
        let keys = keys(fleet, members, *number);
        let withdrawn = ensemble.and_then(|ensemble| withdrawn(ensemble, member, time)).unwrap_or_default();
        format!(
            "member {number} on node {} is {phase} for {since}{reason}{complaint}{keys}{withdrawn}",
            member.node
        )
    })
}

/// How many keys a member has, after what it is, where the primary does not work, or is not known: a person may have to name one.
fn keys(fleet: &Fleet, members: &EnsembleMembers, number: MemberNumber) -> String {
    let primary = members.lead.primary.and_then(|primary| working(fleet, members, primary));
    let is_asked = primary.is_none() || members.lead.is_held || members.is_held(fleet.epoch);
    let said = working(fleet, members, number).filter(|_| is_asked);
    let keys = said.and_then(|report| report.replication.as_ref()?.counted());
    keys.map(|keys| format!("; it has {keys}")).unwrap_or_default()
}

/// When a member that joins is withdrawn, after what it is; `None` of any other one.
fn withdrawn(ensemble: &Ensemble, member: &Member, time: WhyTime) -> Option<String> {
    match member.phase {
        MemberPhase::Preparing | MemberPhase::Adding | MemberPhase::Joining(_) => {}
        MemberPhase::Bootstrapping
        | MemberPhase::Voting
        | MemberPhase::Serving
        | MemberPhase::Leaving(_)
        | MemberPhase::Removed(_) => return None,
    }
    let until = member.since.max(time.watch.settled()).plus(ensemble.join_within);
    let verb = if ensemble.service.has_voters() { "vote" } else { "serve" };
    (until > time.now)
        .then(|| format!("; it is withdrawn if it does not {verb} within {}", until.since(time.now).brief()))
}

/// Who is the primary, and to whom it is to hand over.
fn lead(fleet: &Fleet, members: &EnsembleMembers) -> impl Iterator<Item = String> {
    let lead = &members.lead;
    let primary = lead.primary.map(|number| match &lead.promotion {
        None if members.is_held(fleet.epoch) => {
            format!("member {number} is recorded as the primary, which may be older than what there is")
        }
        None => format!("member {number} is the primary"),
        Some(_) => format!("member {number} is to become the primary"),
    });
    let handover =
        lead.handover.map(|to| format!("the primary is to hand over to member {to}, as was ordered"));
    primary.into_iter().chain(handover)
}

/// What keeps a member from working, after what it is; empty if nothing is known.
fn complaint(fleet: &Fleet, members: &EnsembleMembers, number: MemberNumber, now: Timestamp) -> String {
    let node = members.members.get(&number).map(|member| &member.node);
    if let Some(node) = node.filter(|node| fleet.active_node(node).is_none()) {
        let of_node = fleet.nodes.get(node).and_then(|kept| kept.value.decommissioned.as_ref());
        let since = of_node.map(|of| format!(" for {}", now.since(of.at).brief())).unwrap_or_default();
        return format!(
            "; its node is decommissioned{since} (one that still has its data can join again with them: bellwether agent join --force)"
        );
    }
    let presence = node.and_then(|node| Some((node, &fleet.presences.get(node)?.value)));
    let unreachable = presence.filter(|(_, presence)| presence.contact == PresenceState::Unreachable);
    if let Some((node, presence)) = unreachable {
        let since = now.since(presence.since).brief();
        return format!(
            "; its node is unreachable for {since} (once it is lost for good: bellwether node decommission {node})"
        );
    }
    let refused = node.and_then(|node| fleet.order_refusal(node));
    let refused =
        refused.map(|why| format!("; its node does not accept its orders: {why}")).unwrap_or_default();
    let Some(known) = reported(fleet, members, number) else { return refused };
    match said(members, number, &known.report) {
        "" => refused,
        // What keeps it from a change is not as old as its state.
        said if known.report.state == MemberState::Working => format!("; it {said}{refused}"),
        said => format!("; for {}, it {said}{refused}", now.since(known.since).brief()),
    }
}

/// That there is no such ensemble, with who has members of it nevertheless.
fn unknown((fleet, readable): (&Fleet, &Readable), name: &EnsembleName) -> Failure {
    let nodes = fleet.unrecorded_of(name).map(|(node, _)| node.as_str());
    let nodes = nodes.filter(|node| readable.has_object(ObjectKind::Node, node));
    let nodes: Vec<String> = nodes.map(|node| format!("node {node}")).take(NAMED).collect();
    if nodes.is_empty() {
        return missing(name);
    }
    let have = if nodes.len() == 1 { "has a member" } else { "have members" };
    Failure::new(Code::NotFound, format!("cannot find ensemble {name}, of which {} {have}", nodes.join(", ")))
        .hint("see the guide on ensembles, \"Members that are not recorded\"")
}

/// The members that are left of an ensemble that was deleted; `None` if none is.
fn former(fleet: &Fleet, members: Option<&EnsembleMembers>, time: WhyTime) -> Option<(bool, Vec<String>)> {
    let members = members?;
    let first =
        format!("it was deleted, and its former members are leaving: {}", ops::ensemble::on_nodes(members));
    let osds = explain::osds(fleet, members, time.now);
    Some((true, std::iter::once(first).chain(each(fleet, members, None, time)).chain(osds).collect()))
}

/// The devices that are not taken, as far as the caller may read their nodes.
fn devices(
    (fleet, readable): (&Fleet, &Readable),
    (ensemble, members): (&Ensemble, &EnsembleMembers),
    now: Timestamp,
) -> Vec<String> {
    let is_seen = |node: &str| readable.has_object(ObjectKind::Node, node);
    let refused = RefusedDevice::seen(explain::refused(fleet, ensemble, members, now), is_seen);
    refused.iter().map(RefusedDevice::line).collect()
}

/// The nodes that match and may have no member, as far as the caller may read them.
fn refusals(readable: &Readable, plan: &EnsemblePlan) -> Vec<String> {
    let is_seen = |node: &str| readable.has_object(ObjectKind::Node, node);
    let seen = plan.refusals.iter().filter(|(node, _)| is_seen(node.as_str()));
    let named = seen.take(NAMED).map(|(node, reason)| format!("node {node} cannot get a member: {reason}"));
    let mut lines: Vec<String> = named.collect();
    let others = plan.refusals.len().saturating_sub(lines.len());
    if others > 0 {
        lines.push(format!("{others} more of the nodes that match cannot get a member"));
    }
    lines
}
