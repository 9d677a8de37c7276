//! What does not work of ensembles: members and OSDs that are to, as far as is known of them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::health::{MemberHealth, health, reported, working};
use super::osds::known::{KnownOsd, known};
use crate::records::ensemble::{EnsembleService, RedisSettings};
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase};
use crate::records::member::{MemberReport, MemberState, Replication};
use crate::records::osd::OsdPhase;
use crate::records::registrations::{CheckStatus, ServiceRegistration, instance_of_member};
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Time after which a member that is to leave and has not is said to fail to.
const LEAVES_WITHIN: Span = Span::from_secs(60);

/// A member or an OSD that does not work, or does not leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingPart {
    /// What it is.
    pub part: EnsemblePart,
    /// Its node, which is heard of.
    pub node: NodeName,
    /// Since when, if that is known, or since when it is what it is.
    pub since: Timestamp,
    /// Why, as its node says it.
    pub reason: String,
}

/// A part of an ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnsemblePart {
    /// A member.
    Member(MemberNumber),
    /// An OSD.
    Osd(MemberNumber),
}

/// How many members and OSDs of an ensemble work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EnsembleCounts {
    /// Members that vote, or that are the primary or a replica.
    pub members: usize,
    /// Those of them that work.
    pub working: usize,
    /// Those of them that work and warn.
    pub warning: usize,
    /// OSDs that have data, or may have.
    pub osds: usize,
    /// Those of them that work.
    pub working_osds: usize,
}

/// What a node says of its member, in words that fit after "member 1 " and "it ".
#[must_use]
pub fn said<'a>(members: &EnsembleMembers, number: MemberNumber, report: &'a MemberReport) -> &'a str {
    let own = format!("ensemble {}: member {number} ", members.ensemble);
    report.reason.strip_prefix(&own).unwrap_or(&report.reason)
}

/// The service instance of a member that works and warns, as of one whose directory is gone; `None` if it does not warn.
fn warning<'a>(
    fleet: &'a Fleet,
    members: &EnsembleMembers,
    (number, member): (MemberNumber, &Member),
) -> Option<&'a ServiceRegistration> {
    working(fleet, members, number)?;
    let key = instance_of_member(&members.ensemble, number)?;
    let instance = fleet.registrations.get(&member.node)?.value.instances.get(&key)?;
    matches!(instance.serving, CheckStatus::Warning { .. }).then_some(instance)
}

/// What does not work of an ensemble on nodes that are heard of, and what warns. Of what is on others, nothing is known.
#[must_use]
pub fn failing(fleet: &Fleet, members: &EnsembleMembers, now: Timestamp) -> Vec<FailingPart> {
    let own = members.members.iter().filter_map(|(number, member)| {
        let MemberHealth::Reported(report) = health(fleet, members, *number) else { return None };
        let is_to_work = !matches!(member.phase, MemberPhase::Leaving(_) | MemberPhase::Removed(_));
        let fails = matches!(report.state, MemberState::Failed | MemberState::Refused);
        let serves = member.phase == MemberPhase::Serving;
        let idle = replication(fleet, members, *number).filter(|_| serves);
        let idle = idle.and_then(|said| idleness(members, said));
        let warning = warning(fleet, members, (*number, member)).filter(|_| !fails);
        (is_to_work && (fails || idle.is_some() || warning.is_some())).then(|| FailingPart {
            part: EnsemblePart::Member(*number),
            node: member.node.clone(),
            since: match (idle, warning) {
                (Some(_), _) => idle_since(members, *number).unwrap_or(member.since),
                (None, Some(warning)) => warning.since,
                (None, None) => reported(fleet, members, *number).map_or(member.since, |known| known.since),
            },
            reason: match (said(members, *number, report), idle, warning.map(|of| &of.serving)) {
                ("", Some(idle), _) => idle.to_string(),
                ("", None, Some(CheckStatus::Warning { reason })) => reason.to_string(),
                (said, _, _) => said.to_string(),
            },
        })
    });
    let osds = known(fleet, members).into_iter().filter_map(|known| {
        let is_heard = known.unreachable_since.is_none() && fleet.active_node(&known.osd.node).is_some();
        let said = known.report.map_or("", |report| report.reason.as_str());
        let is_refused = known.osd.phase == OsdPhase::Joining
            && known
                .report
                .is_some_and(|report| matches!(report.state, MemberState::Failed | MemberState::Refused));
        let is_down = matches!(known.osd.phase, OsdPhase::In | OsdPhase::Out) && known.is_up() == Some(false);
        (is_heard && (is_down || is_refused)).then(|| FailingPart {
            part: EnsemblePart::Osd(known.number),
            node: known.osd.node.clone(),
            since: stands_since(&known),
            reason: if said.is_empty() { "is down, as the store says".to_string() } else { said.to_string() },
        })
    });
    own.chain(staying(fleet, members, now)).chain(osds).collect()
}

/// Since when an OSD does not work, if its node says so, or since when it is what it is.
fn stands_since(known: &KnownOsd<'_>) -> Timestamp {
    let said = known.report.filter(|report| report.state != MemberState::Working);
    said.map(|report| report.since).filter(|since| *since > known.osd.since).unwrap_or(known.osd.since)
}

/// Whether a member is to leave for longer than that takes, as at this time.
#[must_use]
pub fn is_staying(member: &Member, now: Timestamp) -> bool {
    let is_leaving = matches!(member.phase, MemberPhase::Leaving(_) | MemberPhase::Removed(_));
    is_leaving && now >= member.since.plus(LEAVES_WITHIN)
}

/// The members on nodes that are heard of that are to leave and do not.
fn staying(fleet: &Fleet, members: &EnsembleMembers, now: Timestamp) -> impl Iterator<Item = FailingPart> {
    let all = members.members.iter().filter(move |(_, member)| is_staying(member, now));
    all.filter_map(move |(number, member)| {
        let MemberHealth::Reported(report) = health(fleet, members, *number) else { return None };
        let said = said(members, *number, report);
        (report.state != MemberState::Left).then(|| FailingPart {
            part: EnsemblePart::Member(*number),
            node: member.node.clone(),
            since: member.since,
            reason: match said {
                "" => "is to leave, and has not".to_string(),
                said => format!("is to leave, and has not: it {said}"),
            },
        })
    })
}

/// What a member of a Redis that works says of its replication.
fn replication<'a>(
    fleet: &'a Fleet,
    members: &EnsembleMembers,
    number: MemberNumber,
) -> Option<&'a Replication> {
    working(fleet, members, number)?.replication.as_ref()
}

/// Whether a primary with so many replicas takes writes.
const fn are_enough(replicas: usize, redis: &RedisSettings) -> bool {
    replicas >= redis.min_replicas as usize
}

/// Whether a member says that it is the primary and takes writes, whoever made it that, or replicas get data of one that is not heard of; true
/// where members vote.
fn takes_writes(fleet: &Fleet, members: &EnsembleMembers) -> bool {
    let EnsembleService::Redis(redis) = &members.service else { return true };
    let lead = &members.lead;
    let leads = |number: &MemberNumber| match health(fleet, members, *number) {
        // For a moment; of what it is afterwards more is known.
        MemberHealth::Suspect => lead.primary == Some(*number) && !lead.is_held,
        MemberHealth::Reported(_)
        | MemberHealth::Unreachable
        | MemberHealth::Decommissioned
        | MemberHealth::Unknown => replication(fleet, members, *number).is_some_and(|said| {
            said.is_primary && !said.cannot_store && are_enough(said.replicas.len(), redis)
        }),
    };
    members.members.keys().any(leads) || is_followed(fleet, members, redis)
}

/// Whether as many replicas as it needs for writes get data of a primary that is not heard of, or that is not recorded after a restore.
fn is_followed(fleet: &Fleet, members: &EnsembleMembers, redis: &RedisSettings) -> bool {
    let primary = members.lead.primary.and_then(|number| Some((number, members.members.get(&number)?)));
    let unheard = primary
        .filter(|(number, _)| matches!(health(fleet, members, *number), MemberHealth::Unreachable))
        .map(|(_, primary)| &primary.peer_url);
    let is_unrecorded = |url: &String| {
        members.is_held(fleet.epoch) && members.members.values().all(|member| member.peer_url != *url)
    };
    let said = members.members.keys().filter_map(|number| replication(fleet, members, *number));
    let of = |url: &String| Some(url) == unheard || is_unrecorded(url);
    let replicas = said.filter(|said| said.streams && said.follows.as_ref().is_some_and(of)).count();
    replicas > 0 && are_enough(replicas, redis)
}

/// Since when a member whose program works does not do its part.
fn idle_since(members: &EnsembleMembers, number: MemberNumber) -> Option<Timestamp> {
    let lead = &members.lead;
    let blocked = lead.blocked_since.filter(|_| lead.primary == Some(number));
    lead.cut_off.get(&number).copied().or(blocked)
}

/// Whether a member works by its own word, and does not do its part: a primary that takes no writes, or a replica that is not connected.
#[must_use]
pub fn is_impaired(members: &EnsembleMembers, report: &MemberReport) -> bool {
    let is_working = report.state == MemberState::Working;
    is_working && report.replication.as_ref().is_some_and(|said| idleness(members, said).is_some())
}

/// Why a member of a Redis whose program works does not do its part; `None` if it does, or is about to.
fn idleness(members: &EnsembleMembers, said: &Replication) -> Option<&'static str> {
    let EnsembleService::Redis(redis) = &members.service else { return None };
    match said.is_primary {
        true if said.cannot_store => Some("cannot write to its disk"),
        true if !are_enough(said.replicas.len(), redis) => {
            Some("takes no writes: too few replicas are connected to it")
        }
        true => None,
        false if said.is_whole && said.follows.is_some() && !said.streams => {
            Some("is not connected to the member that it follows")
        }
        false => None,
    }
}

/// How many members and OSDs of an ensemble work.
#[must_use]
pub fn counts(fleet: &Fleet, members: &EnsembleMembers) -> EnsembleCounts {
    let serves = |phase: &MemberPhase| matches!(phase, MemberPhase::Voting | MemberPhase::Serving);
    let serving = members.members.iter().filter(|(_, member)| serves(&member.phase));
    let works = |number: MemberNumber| {
        // A replica that gets no data is none.
        let is_idle = |said: &Replication| idleness(members, said).is_some();
        working(fleet, members, number)
            .is_some_and(|report| !report.replication.as_ref().is_some_and(is_idle))
    };
    let serves_and_warns =
        serving.clone().filter(|(number, member)| warning(fleet, members, (**number, member)).is_some());
    let osds: Vec<_> = known(fleet, members)
        .into_iter()
        .filter(|known| matches!(known.osd.phase, OsdPhase::In | OsdPhase::Out))
        .collect();
    EnsembleCounts {
        members: serving.clone().count(),
        // Without a primary that takes them, none of them takes writes.
        working: match takes_writes(fleet, members) {
            true => serving.filter(|(number, _)| works(**number)).count(),
            false => 0,
        },
        warning: serves_and_warns.count(),
        osds: osds.len(),
        working_osds: osds.iter().filter(|known| known.is_up() == Some(true)).count(),
    }
}
