//! The next change of an ensemble with one primary that replicas follow, such as Redis. A member begins as a replica of nobody; only an
//! order makes it the primary. Another one takes over only where no write that was acknowledged can be lost by it: so many replicas have
//! left the former primary that each such write is on one of them, and the one that takes over has the most of the same history.

mod alone;
mod copies;
mod failover;
mod instance;
mod step;

use alloc::vec::Vec;

pub use self::alone::cut_for_good;
use self::alone::{is_cut_alone, taken_over_at};
use self::copies::{Leaver, leaver_step, may_come};
use self::failover::fail_over;
pub use self::instance::{HistoryPosition, Instance, InstanceState, Instances};
pub use self::step::{PrimarySpec, PrimaryStep, PrimaryWait, QUIET};
use super::{CandidateNodes, Placed, RemovalReason, next_node, surplus, wanted};
use crate::records::primary::PrimaryRecord;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;

/// The next change of an ensemble.
#[must_use]
pub fn next_step(
    spec: &PrimarySpec,
    places: &CandidateNodes,
    (record, members): (&PrimaryRecord, &Instances),
    now: Timestamp,
) -> PrimaryStep {
    let Some(number) = record.primary else { return begin(spec, places, members, now) };
    match members.get(&number).map(|primary| primary.state) {
        Some(InstanceState::Up) if is_stuck(spec, number, members, now) => {
            fail_over(spec, (number, record), members, now)
        }
        // Those that have left it are not told to follow it again.
        Some(InstanceState::Up) => match taken_over_at(spec, (number, record), members).flatten() {
            Some(until) if now >= until => fail_over(spec, (number, record), members, now),
            Some(_) | None => with_primary(spec, places, (number, record, members), now),
        },
        Some(InstanceState::Silent { since }) if now < since.plus(spec.patience(number)) => {
            let until = since.plus(spec.patience(number));
            PrimaryStep::Wait(PrimaryWait::Silent { member: number, until })
        }
        Some(InstanceState::Joining { .. }) => PrimaryStep::Wait(PrimaryWait::Joining(number)),
        Some(InstanceState::Silent { .. } | InstanceState::Restarted | InstanceState::Ended) | None => {
            fail_over(spec, (number, record), members, now)
        }
    }
}

/// The first member becomes the primary, once. Afterwards there is always one that is recorded, whatever became of it.
fn begin(spec: &PrimarySpec, places: &CandidateNodes, members: &Instances, now: Timestamp) -> PrimaryStep {
    if let Some((number, _)) = members.iter().find(|(_, member)| member.state == InstanceState::Up) {
        return PrimaryStep::Promote(*number);
    }
    match members.first_key_value() {
        Some((number, member)) => {
            joining(spec, *number, member, now).unwrap_or(PrimaryStep::Wait(PrimaryWait::Joining(*number)))
        }
        None => match next_node(&spec.name, places, &Placed::new()) {
            Some(node) => PrimaryStep::Add(node.clone()),
            None => PrimaryStep::Wait(PrimaryWait::NoRoom { missing: 1 }),
        },
    }
}

fn joining(
    spec: &PrimarySpec,
    number: MemberNumber,
    member: &Instance,
    now: Timestamp,
) -> Option<PrimaryStep> {
    let InstanceState::Joining { since } = member.state else { return None };
    Some(match now >= since.plus(spec.join_within) {
        true => PrimaryStep::Remove(number, RemovalReason::NotJoined),
        false => PrimaryStep::Wait(PrimaryWait::Joining(number)),
    })
}

/// The primary works: everybody follows it, and there are as many as are wanted.
fn with_primary(
    spec: &PrimarySpec,
    places: &CandidateNodes,
    (primary, record, members): (MemberNumber, &PrimaryRecord, &Instances),
    now: Timestamp,
) -> PrimaryStep {
    let all: Placed<'_> = members.iter().map(|(number, member)| (*number, &member.node)).collect();
    let wanted = wanted(spec.size, places, &all);
    let is_drained = |member: &Instance| places.get(&member.node).is_some_and(|place| place.is_drained);
    let is_primary_drained = members.get(&primary).is_some_and(is_drained);
    let is_one_too_many = members.len() > wanted && !is_primary_drained;
    let surplus = if is_one_too_many { one_too_many(places, primary, members) } else { None };
    let astray = astray(members, primary, surplus);
    if !astray.is_empty() {
        return PrimaryStep::Follow(astray, Some(primary));
    }
    if let Some(step) = members.iter().find_map(|(number, member)| joining(spec, *number, member, now)) {
        return step;
    }
    if let Some(to) = record.handover.filter(|to| is_successor(members, (primary, *to))) {
        return PrimaryStep::HandOver(to);
    }
    let next = next_node(&spec.name, places, &all);
    let may = |(number, member): &(&MemberNumber, &Instance)| {
        is_successor(members, (primary, **number)) && !is_drained(member)
    };
    let successor = members.iter().find(may).map(|(number, _)| *number);
    let blocked_since = members.get(&primary).and_then(|member| member.blocked_since);
    if let (Some(since), Some(to)) = (blocked_since, successor) {
        return blocked(primary, since.plus(spec.patience(primary)), to, now);
    }
    if is_primary_drained {
        let next = next.filter(|_| members.len() <= wanted);
        return drained(primary, successor, next);
    }
    let leaves = |number, reason| leaver_step(spec, (primary, members), Leaver { number, reason }, now);
    if let Some(number) = surplus {
        if let Some(member) = unsynced(members, (primary, number)) {
            return PrimaryStep::Wait(PrimaryWait::Syncing { member, leaver: number });
        }
        return leaves(number, RemovalReason::Surplus);
    }
    let missing = wanted.saturating_sub(members.len());
    if let Some((member, since)) = first_silent(members) {
        let until = since.plus(spec.patience(member));
        // Where too few that work have what it may have acknowledged, a new one gets it from the primary.
        let addition =
            next.filter(|_| members.len() <= wanted && !may_come(spec, members, (primary, member)));
        let may_be_replaced = next.is_some() || is_room_without(spec, places, (&all, member));
        return match may_be_replaced {
            _ if now < until => PrimaryStep::Wait(PrimaryWait::Silent { member, until }),
            false => PrimaryStep::Wait(PrimaryWait::NoRoom { missing: missing.max(1) }),
            true => addition
                .map_or_else(|| leaves(member, RemovalReason::Dead), |node| PrimaryStep::Add(node.clone())),
        };
    }
    let to_leave = members.values().filter(|member| is_drained(member)).count();
    if missing == 0 && to_leave == 0 {
        let blocked = || blocked_since.map(|_| PrimaryWait::Blocked { member: primary, until: None });
        let wait = blocked().or_else(|| cut(spec, (primary, record, members), next.is_some()));
        return wait.map_or(PrimaryStep::Rest, PrimaryStep::Wait);
    }
    match next {
        Some(node) => PrimaryStep::Add(node.clone()),
        None => PrimaryStep::Wait(PrimaryWait::NoRoom { missing: missing.max(to_leave) }),
    }
}

/// A drained primary leaves as a replica. Where nobody can take over, a new member may once it has the data.
fn drained(primary: MemberNumber, successor: Option<MemberNumber>, next: Option<&NodeName>) -> PrimaryStep {
    match (successor, next) {
        (Some(to), _) => PrimaryStep::HandOver(to),
        (None, Some(node)) => PrimaryStep::Add(node.clone()),
        (None, None) => PrimaryStep::Wait(PrimaryWait::NoSuccessor(primary)),
    }
}

/// The members that answer and do not follow the primary, but are to.
fn astray(members: &Instances, primary: MemberNumber, surplus: Option<MemberNumber>) -> Vec<MemberNumber> {
    let astray = members.iter().filter(|(number, member)| {
        let is_to_follow = **number != primary && Some(**number) != surplus;
        is_to_follow && member.state == InstanceState::Up && member.follows != Some(primary)
    });
    astray.map(|(number, _)| *number).collect()
}

/// Whether the primary takes no writes, for so long that another one takes over, and cannot be told to hand over. Without a replica that a write needs
/// it may take writes again before it learns that it is the primary no more.
fn is_stuck(spec: &PrimarySpec, primary: MemberNumber, members: &Instances, now: Timestamp) -> bool {
    let stuck = members.get(&primary).filter(|member| spec.writes_needed > 0 && member.is_stuck());
    let since = stuck.and_then(|member| member.blocked_since);
    since.is_some_and(|since| now >= since.plus(spec.patience(primary)))
}

/// The primary cannot write to its disk, and another member can.
fn blocked(primary: MemberNumber, until: Timestamp, to: MemberNumber, now: Timestamp) -> PrimaryStep {
    match now >= until {
        true => PrimaryStep::HandOver(to),
        false => PrimaryStep::Wait(PrimaryWait::Blocked { member: primary, until: Some(until) }),
    }
}

/// The primary takes no writes, as it is cut off, or a replica that is cut off from it is replaced in time, if another node may have one.
fn cut(
    spec: &PrimarySpec,
    (primary, record, members): (MemberNumber, &PrimaryRecord, &Instances),
    has_room: bool,
) -> Option<PrimaryWait> {
    if let Some(until) = taken_over_at(spec, (primary, record), members) {
        return Some(PrimaryWait::Alone { member: primary, until });
    }
    let cut = members.iter().filter(|(number, _)| is_cut_alone(members, (primary, **number)));
    let due =
        cut.filter_map(|(number, member)| Some((member.cut_since?.plus(spec.patience(*number)), *number)));
    let (until, member) = due.min().filter(|_| has_room)?;
    Some(PrimaryWait::Silent { member, until })
}

/// Whether a node may have a member in the place of this one: its own, if there is no other.
fn is_room_without(
    spec: &PrimarySpec,
    places: &CandidateNodes,
    (all, member): (&Placed<'_>, MemberNumber),
) -> bool {
    let others = all.iter().filter(|(number, _)| **number != member);
    let others: Placed<'_> = others.map(|(number, node)| (*number, *node)).collect();
    next_node(&spec.name, places, &others).is_some()
}

/// The member to remove where there is one too many: never the primary; who is silent is of least use.
fn one_too_many(places: &CandidateNodes, primary: MemberNumber, members: &Instances) -> Option<MemberNumber> {
    let placed = |is: &dyn Fn(&Instance) -> bool| -> Placed<'_> {
        let all = members.iter().filter(|(number, member)| **number != primary && is(member));
        all.map(|(number, member)| (*number, &member.node)).collect()
    };
    let silent = placed(&Instance::is_silent);
    surplus(places, &if silent.is_empty() { placed(&|_| true) } else { silent })
}

/// Whether a replica may be handed the lead: it has the data, and gets what is written.
fn is_successor(members: &Instances, (primary, to): (MemberNumber, MemberNumber)) -> bool {
    let may = |member: &Instance| {
        member.is_reached()
            && member.follows == Some(primary)
            && member.streams
            && member.blocked_since.is_none()
    };
    to != primary && members.get(&to).is_some_and(may)
}

/// The member that has to get the data of the primary before a replica that works leaves; `None` if all that stay have them.
fn unsynced(members: &Instances, (primary, leaver): (MemberNumber, MemberNumber)) -> Option<MemberNumber> {
    members.get(&leaver).filter(|leaver| leaver.state == InstanceState::Up)?;
    let stays = members.iter().filter(|(number, _)| **number != primary && **number != leaver);
    let lacks = |member: &Instance| member.state == InstanceState::Up && !(member.is_whole && member.streams);
    let mut lacking = stays.filter(|(_, member)| lacks(member));
    lacking.next().map(|(number, _)| *number)
}

/// The replica that is silent for longest; the primary is not asked for here.
fn first_silent(members: &Instances) -> Option<(MemberNumber, Timestamp)> {
    let silent = members.iter().filter_map(|(number, member)| match member.state {
        InstanceState::Silent { since } => Some((*number, since)),
        InstanceState::Joining { .. }
        | InstanceState::Up
        | InstanceState::Restarted
        | InstanceState::Ended => None,
    });
    silent.min_by_key(|(number, since)| (*since, *number))
}

#[cfg(test)]
mod tests;
