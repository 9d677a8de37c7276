//! Absorbs what a node's agent says of the members that it has.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::ensemble_members::MemberPhase;
use crate::records::ensemble_requests::RollingRequest;
use crate::records::event::EventDraft;
use crate::records::key::{Key, Record};
use crate::records::member::{KnownMember, MemberReport, MemberState, NodeMembers};
use crate::records::osd::{OsdPhase, OsdReport};
use crate::records::unrecorded::UnrecordedMember;
use crate::verdict::{Changeset, Write};
use crate::words::counter::MemberNumber;
use crate::words::name::EnsembleName;
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// What is said of a member or an OSD that its agent does not report any more, after "member 1 " and "it ".
const NOT_REPORTED: &str = "is not reported by its agent any more";

/// The changes to write for a report of a node's members; `None` if it says nothing new. The caller refuses what was overtaken.
#[must_use]
pub fn absorb(
    fleet: &Fleet,
    last: Option<&NodeMembers>,
    mut new: NodeMembers,
    now: Timestamp,
) -> Option<Changeset> {
    for (name, member) in &mut new.members {
        let before = last.and_then(|last| last.members.get(name));
        member.since =
            before.filter(|before| is_same_state(before, member)).map_or(now, |before| before.since);
    }
    for (name, osds) in &mut new.osds {
        let before = last.and_then(|last| last.osds.get(name));
        for (number, osd) in osds {
            let before = before.and_then(|before| before.get(number));
            let before = before.filter(|before| steady(before.state) == steady(osd.state));
            osd.since = before.map_or(now, |before| before.since);
        }
    }
    for (name, member) in &mut new.unrecorded {
        let before = last.and_then(|last| last.unrecorded.get(name));
        member.since = before.filter(|before| is_same(before, member)).map_or(now, |before| before.since);
    }
    // Its agent has lost what it knew of it. That it does not tell of it is no word about what it does.
    let forgotten = last.into_iter().flat_map(|last| &last.members);
    for (name, member) in forgotten.filter(|(_, member)| member.report.state != MemberState::Left) {
        let has_it = |of: &UnrecordedMember| {
            (of.number, &of.identity) == (member.report.number, &member.report.identity)
        };
        if new.unrecorded.get(name).is_some_and(has_it) {
            continue;
        }
        new.members.entry(name.clone()).or_insert_with(|| untold(name, member, now));
    }
    // The same of its OSDs: those that were there are not gone because it does not tell of them.
    let silent = last.into_iter().flat_map(|last| &last.osds);
    for (name, osds) in silent {
        for (number, osd) in osds.iter().filter(|(_, osd)| osd.state != MemberState::Left) {
            let since = if osd.state == MemberState::Failed { osd.since } else { now };
            let (state, reason) = (MemberState::Failed, NOT_REPORTED.into());
            let untold = OsdReport { state, reason, since, ..osd.clone() };
            new.osds.entry(name.clone()).or_default().entry(*number).or_insert(untold);
        }
    }
    let is_behind_a_gap = last.is_some_and(|last| new.is_behind_a_gap(last));
    new.epoch = fleet.epoch;
    let is_same = last.map_or_else(
        || new.is_empty(),
        |last| {
            let is_known = last.members == new.members && last.osds == new.osds;
            let has_same = last.devices == new.devices && last.unrecorded == new.unrecorded;
            is_known && has_same && last.epoch == new.epoch
        },
    );
    if is_same && !is_behind_a_gap {
        return None;
    }
    let events = events(fleet, last, &new);
    let write = match new.is_empty() {
        true => Write::delete(Key::NodeMembers(new.node)),
        false => Write::put(Record::NodeMembers(new)),
    };
    Some(Changeset { writes: Vec::from([write]), events })
}

/// What is known of a member that its agent does not report any more.
fn untold(ensemble: &EnsembleName, member: &KnownMember, now: Timestamp) -> KnownMember {
    let report = MemberReport {
        state: MemberState::Failed,
        reason: format!("ensemble {ensemble}: member {} {NOT_REPORTED}", member.report.number),
        membership: None,
        outside: None,
        ..member.report.clone()
    };
    let is_known = member.report.state == MemberState::Failed;
    KnownMember { report, since: if is_known { member.since } else { now } }
}

/// Whether it is the member that was not recorded before either.
fn is_same(before: &UnrecordedMember, now: &UnrecordedMember) -> bool {
    (before.number, &before.identity) == (now.number, &now.identity)
}

/// Whether a member is as it was. One that starts and fails in turn does not work all the time.
fn is_same_state(before: &KnownMember, now: &KnownMember) -> bool {
    let of = |member: &KnownMember| {
        let report = &member.report;
        (report.number, report.identity.clone(), steady(report.state))
    };
    of(before) == of(now)
}

/// The state, in which one that starts does not work yet.
const fn steady(state: MemberState) -> MemberState {
    match state {
        MemberState::Starting => MemberState::Failed,
        MemberState::Refused
        | MemberState::Prepared
        | MemberState::Working
        | MemberState::Failed
        | MemberState::Left => state,
    }
}

/// What a member is ordered to do that makes it stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stops {
    /// Nothing.
    Never,
    /// It is being restarted.
    Restarts,
    /// It leaves, or was removed.
    Leaves,
}

impl Stops {
    fn of(fleet: &Fleet, name: &EnsembleName, number: MemberNumber) -> Self {
        let Some(members) = fleet.ensemble_members.get(name).map(|kept| &kept.value) else {
            return Self::Leaves;
        };
        let is_restarted = |request: &RollingRequest| request.under_way == Some(number);
        match members.members.get(&number).map(|member| &member.phase) {
            None | Some(MemberPhase::Leaving(_) | MemberPhase::Removed(_)) => Self::Leaves,
            Some(_) if members.requests.rolling.as_ref().is_some_and(is_restarted) => Self::Restarts,
            Some(_) => Self::Never,
        }
    }

    fn of_osd(fleet: &Fleet, name: &EnsembleName, number: MemberNumber) -> Self {
        let Some(members) = fleet.ensemble_members.get(name).map(|kept| &kept.value) else {
            return Self::Leaves;
        };
        let is_restarted = |request: &RollingRequest| request.osd_under_way == Some(number);
        match members.osds.osds.get(&number).map(|osd| osd.phase) {
            None | Some(OsdPhase::Removed) => Self::Leaves,
            Some(_) if members.requests.rolling.as_ref().is_some_and(is_restarted) => Self::Restarts,
            Some(_) => Self::Never,
        }
    }

    /// Whether a change of its state is a failure, and not what was ordered: one that is being restarted is told of if it does not start again.
    fn fails(self, before: MemberState, now: MemberState) -> bool {
        match (before, now) {
            (MemberState::Working, MemberState::Failed | MemberState::Starting) => self == Self::Never,
            (MemberState::Starting, MemberState::Failed) => self == Self::Restarts,
            _ => false,
        }
    }
}

/// That members that served do not any more, or do again.
fn events(fleet: &Fleet, last: Option<&NodeMembers>, new: &NodeMembers) -> Vec<EventDraft> {
    let told = |(name, member): (&EnsembleName, &KnownMember)| {
        let before = &last?.members.get(name)?.report;
        let report = &member.report;
        let is_same = before.number == report.number && before.identity == report.identity;
        let stops = Stops::of(fleet, name, report.number);
        let (kind, cause) = match (before.state, report.state) {
            _ if !is_same => return None,
            (before, now) if stops.fails(before, now) => ("ensemble.member_failed", report.reason.clone()),
            (MemberState::Failed | MemberState::Starting, MemberState::Working) => {
                ("ensemble.member_working", String::new())
            }
            _ => return None,
        };
        Some(EventDraft {
            kind,
            subject: format!("ensemble/{name}"),
            before: Some(before.state.as_str().to_string()),
            after: Some(report.state.as_str().to_string()),
            cause: format!(
                "member {} on {}{}",
                report.number,
                new.node,
                if cause.is_empty() { cause } else { format!(": {cause}") }
            ),
        })
    };
    let of_osds = last.into_iter().flat_map(|last| osd_events(fleet, last, new));
    new.members.iter().filter_map(told).chain(of_osds).chain(unrecorded_events(last, new)).collect()
}

/// That a node has members that are not recorded, told once of each.
fn unrecorded_events<'a>(
    last: Option<&'a NodeMembers>,
    new: &'a NodeMembers,
) -> impl Iterator<Item = EventDraft> + 'a {
    let known = move |name: &EnsembleName, member: &UnrecordedMember| {
        let before = last.and_then(|last| last.unrecorded.get(name));
        before.is_some_and(|before| is_same(before, member))
    };
    new.unrecorded.iter().filter(move |(name, member)| !known(name, member)).map(|(name, member)| {
        EventDraft {
            kind: "ensemble.member_unrecorded",
            subject: format!("ensemble/{name}"),
            before: None,
            after: None,
            cause: format!("member {} on {} {}", member.number, new.node, member.line()),
        }
    })
}

/// The same of OSDs.
fn osd_events(fleet: &Fleet, last: &NodeMembers, new: &NodeMembers) -> Vec<EventDraft> {
    let mut events = Vec::new();
    for (name, osds) in &new.osds {
        for (number, osd) in osds {
            let before = last.osds.get(name).and_then(|osds| osds.get(number));
            let Some(before) = before.filter(|before| before.identity == osd.identity) else { continue };
            let stops = Stops::of_osd(fleet, name, *number);
            let kind = match (before.state, osd.state) {
                (before, now) if stops.fails(before, now) => "ensemble.osd_failed",
                (MemberState::Failed | MemberState::Starting, MemberState::Working) => "ensemble.osd_working",
                _ => continue,
            };
            let reason = if osd.reason.is_empty() { String::new() } else { format!(": it {}", osd.reason) };
            events.push(EventDraft {
                kind,
                subject: format!("ensemble/{name}"),
                before: Some(before.state.as_str().to_string()),
                after: Some(osd.state.as_str().to_string()),
                cause: format!("OSD {number} on {}{reason}", new.node),
            });
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::records::key::AnyRecord;

    #[test]
    fn what_stops_as_it_was_ordered_has_not_failed() {
        use MemberState::{Failed, Starting, Working};
        let fails = |stops: Stops| {
            let changes = [(Working, Failed), (Working, Starting), (Starting, Failed), (Starting, Working)];
            changes.map(|(before, now)| stops.fails(before, now))
        };
        assert_eq!(fails(Stops::Never), [true, true, false, false]);
        assert_eq!(fails(Stops::Leaves), [false; 4]);
        assert_eq!(fails(Stops::Restarts), [false, false, true, false], "one that does not start again has");
    }

    /// That it is not ordered is told in place of what was reported of it, once.
    #[test]
    fn a_member_that_is_not_recorded_is_told_of_once_and_keeps_its_time() {
        let (fleet, name) = (Fleet::default(), EnsembleName::parse("store").unwrap());
        let (number, identity) = (MemberNumber::new(4), String::from("one"));
        let none = || NodeMembers {
            node: "db-1".parse().unwrap(),
            sequence: 0,
            members: BTreeMap::new(),
            osds: BTreeMap::new(),
            devices: BTreeMap::new(),
            unrecorded: BTreeMap::new(),
            epoch: fleet.epoch,
        };
        let report = MemberReport::of(number, identity.clone(), MemberState::Working);
        let known = KnownMember { report, since: Timestamp::EPOCH };
        let before = NodeMembers { members: BTreeMap::from([(name.clone(), known)]), ..none() };
        let at = Timestamp::from_millis;
        let member = |runs| UnrecordedMember::seen(number, identity.clone(), runs, [10, 0, 0, 4].into());
        let told =
            |runs| NodeMembers { unrecorded: BTreeMap::from([(name.clone(), member(runs))]), ..none() };
        let written = |changeset: &Changeset| {
            let Some(Write::Put(record)) = changeset.writes.first() else { panic!("it is kept") };
            let AnyRecord::Namespaced(Record::NodeMembers(kept)) = &**record else { panic!("as it is told") };
            kept.clone()
        };
        let changeset = absorb(&fleet, Some(&before), told(true), at(5)).unwrap();
        let kept = written(&changeset);
        assert!(kept.members.is_empty() && kept.unrecorded.get(&name).unwrap().since == at(5));
        let kinds: Vec<_> = changeset.events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, ["ensemble.member_unrecorded"]);
        assert!(absorb(&fleet, Some(&kept), told(true), at(9)).is_none(), "it is known");
        let changeset = absorb(&fleet, Some(&kept), told(false), at(9)).unwrap();
        assert!(changeset.events.is_empty());
        let kept = written(&changeset);
        assert_eq!(kept.unrecorded.get(&name).unwrap().since, at(5));
        assert!(matches!(
            absorb(&fleet, Some(&kept), none(), at(9)).unwrap().writes.first(),
            Some(Write::Delete(_))
        ));
    }
}
