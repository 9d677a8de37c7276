//! Absorbs what a node's agent says of the members that it has.

use alloc::vec::Vec;

use crate::records::key::{Key, Record};
use crate::records::member::{KnownMember, MemberReport, MemberState, NodeMembers};
use crate::verdict::{Changeset, Write};
use crate::words::time::Timestamp;

/// What is said of a member that its agent does not report any more.
const NOT_REPORTED: &str = "its agent does not report it any more";

/// The changes to write for a report of a node's members; `None` if it says nothing new. The caller refuses what was overtaken.
#[must_use]
pub fn absorb(last: Option<&NodeMembers>, mut new: NodeMembers, now: Timestamp) -> Option<Changeset> {
    for (name, member) in &mut new.members {
        let before = last.and_then(|last| last.members.get(name));
        member.since =
            before.filter(|before| is_same_state(before, member)).map_or(now, |before| before.since);
    }
    // Its agent has lost what it knew of it. That it does not tell of it is no word about what it does.
    let forgotten = last.into_iter().flat_map(|last| &last.members);
    for (name, member) in forgotten.filter(|(_, member)| member.report.state != MemberState::Left) {
        new.members.entry(name.clone()).or_insert_with(|| untold(member, now));
    }
    let is_behind_a_gap = last.is_some_and(|last| new.is_behind_a_gap(last));
    let is_same = last.map_or_else(|| new.members.is_empty(), |last| last.members == new.members);
    if is_same && !is_behind_a_gap {
        return None;
    }
    let write = match new.members.is_empty() {
        true => Write::delete(Key::NodeMembers(new.node)),
        false => Write::put(Record::NodeMembers(new)),
    };
    Some(Changeset { writes: Vec::from([write]), events: Vec::new() })
}

/// What is known of a member that its agent does not report any more.
fn untold(member: &KnownMember, now: Timestamp) -> KnownMember {
    let report = MemberReport {
        state: MemberState::Failed,
        reason: NOT_REPORTED.into(),
        membership: None,
        ..member.report.clone()
    };
    let is_known = member.report.state == MemberState::Failed;
    KnownMember { report, since: if is_known { member.since } else { now } }
}

fn is_same_state(before: &KnownMember, now: &KnownMember) -> bool {
    let of = |member: &KnownMember| {
        let report = &member.report;
        (report.number, report.identity.clone(), report.state)
    };
    of(before) == of(now)
}
