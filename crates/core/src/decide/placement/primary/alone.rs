//! Members that are heard of and cut off from each other: a primary without the replicas that a write needs takes none, and a replica without
//! its primary gets none. Which of the two is to blame is seen by the others.

use alloc::vec::Vec;

use super::failover::reach;
use super::instance::{Instance, InstanceState, Instances};
use super::step::PrimarySpec;
use crate::records::primary::PrimaryRecord;
use crate::words::counter::MemberNumber;
use crate::words::time::Timestamp;

/// A primary that takes no writes, as it is cut off from its replicas, with when another one takes over; that is `None` if none may.
pub(super) fn taken_over_at(
    spec: &PrimarySpec,
    (primary, record): (MemberNumber, &PrimaryRecord),
    members: &Instances,
) -> Option<Option<Timestamp>> {
    let since =
        members.get(&primary).and_then(|member| member.cut_since).filter(|_| spec.writes_needed > 0)?;
    let (reached, needed) = reach(spec, primary, members);
    if gets_data(members, primary) || reached.len() < needed {
        return Some(None);
    }
    // Of one that was not told to follow it, or is about to, nothing is known.
    let all: Option<Vec<Timestamp>> = reached.iter().map(|(_, member)| member.cut_since).collect();
    let last = all.and_then(|all| all.into_iter().max());
    let quiet = record.failed_over.map(|at| at.plus(spec.quiet));
    Some(last.map(|last| {
        let until = last.max(since).plus(spec.patience(primary));
        quiet.map_or(until, |quiet| quiet.max(until))
    }))
}

/// Whether a replica is cut off from a primary that others get data of.
pub(super) fn is_cut_alone(members: &Instances, (primary, number): (MemberNumber, MemberNumber)) -> bool {
    let member = members.get(&number).filter(|member| number != primary && member.state == InstanceState::Up);
    member.is_some_and(|member| member.cut_since.is_some()) && gets_data(members, primary)
}

/// The replicas that are cut off from a primary that others get data of, for so long that others are to take their places.
pub fn cut_for_good(
    spec: &PrimarySpec,
    record: &PrimaryRecord,
    members: &Instances,
    now: Timestamp,
) -> Vec<MemberNumber> {
    let Some(primary) = record.primary else { return Vec::new() };
    let is_over = |(number, member): &(&MemberNumber, &Instance)| {
        member.cut_since.is_some_and(|since| now >= since.plus(spec.patience(**number)))
    };
    let cut = members.iter().filter(|(number, _)| is_cut_alone(members, (primary, **number)));
    cut.filter(is_over).map(|(number, _)| *number).collect()
}

/// Whether any replica gets data of the primary, as it says itself.
fn gets_data(members: &Instances, primary: MemberNumber) -> bool {
    let gets = |member: &Instance| {
        member.state == InstanceState::Up && member.follows == Some(primary) && member.streams
    };
    members.iter().any(|(number, member)| *number != primary && gets(member))
}
