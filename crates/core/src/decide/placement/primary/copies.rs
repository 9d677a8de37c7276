//! A replica is removed only once what it has, and may have acknowledged, is on as many others as a write needs.

use alloc::vec;

use super::instance::{Instance, InstanceState, Instances};
use super::step::{PrimarySpec, PrimaryStep, PrimaryWait};
use crate::records::ensemble_members::RemovalReason;
use crate::words::counter::MemberNumber;
use crate::words::time::{Span, Timestamp};

/// Time after which a primary has told of all that a replica acknowledged that fell silent.
const TOLD_WITHIN: Span = Span::from_secs(30);

/// A replica that is to be removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaver {
    pub(super) number: MemberNumber,
    pub(super) reason: RemovalReason,
}

/// The next step of a removal: a replica that answers leaves its primary first, so that it acknowledges nothing any more.
pub(super) fn leaver_step(
    spec: &PrimarySpec,
    (primary, members): (MemberNumber, &Instances),
    leaver: Leaver,
    now: Timestamp,
) -> PrimaryStep {
    let Leaver { number, reason } = leaver;
    let Some(member) = members.get(&number) else { return PrimaryStep::Rest };
    let is_up = member.state == InstanceState::Up;
    if is_up && member.follows.is_some() {
        return PrimaryStep::Follow(vec![number], None);
    }
    if member.streams && member.may_be_cut {
        return PrimaryStep::Cut(number);
    }
    if member.streams {
        // Its agent is gone, and it acknowledges writes.
        return PrimaryStep::Wait(PrimaryWait::LeaverStreams(number));
    }
    match has_copies(spec, (primary, members), (number, member), now) {
        true => PrimaryStep::Remove(number, reason),
        false => PrimaryStep::Wait(PrimaryWait::Copies(number)),
    }
}

/// Whether those that answer are enough to have what a replica has that is to be removed; otherwise it stays as long as that is so.
pub(super) fn may_come(
    spec: &PrimarySpec,
    members: &Instances,
    (primary, leaver): (MemberNumber, MemberNumber),
) -> bool {
    let others = members.iter().filter(|(number, _)| **number != primary && **number != leaver);
    let holders = || others.clone().filter(|(_, other)| other.data.is_some());
    let needed = holders().count().min(spec.copies_needed as usize);
    holders().filter(|(_, other)| other.state == InstanceState::Up).count() >= needed
}

/// Whether what a replica has is on as many others as a write needs, or on all there are.
fn has_copies(
    spec: &PrimarySpec,
    (primary, members): (MemberNumber, &Instances),
    (number, member): (MemberNumber, &Instance),
    now: Timestamp,
) -> bool {
    let Some(data) = &member.data else { return true };
    let Some(written) = members.get(&primary).and_then(|primary| primary.data.as_ref()) else { return false };
    let others = || members.iter().filter(|(other, _)| **other != number && **other != primary);
    let others = || others().map(|(_, other)| other).filter(|other| other.data.is_some());
    let needed = others().count().min(spec.copies_needed as usize);
    let is_told = match member.state {
        InstanceState::Silent { since } => now >= since.plus(TOLD_WITHIN),
        InstanceState::Joining { .. }
        | InstanceState::Up
        | InstanceState::Restarted
        | InstanceState::Ended => true,
    };
    // One that answers and follows nobody gets nothing more. Of another one it is only known that it has no more than the primary.
    let is_final = member.is_reached() && data.history == written.history;
    let target = if is_final { data.offset } else { written.offset.filter(|_| is_told) };
    let has_it = |other: &Instance| {
        let position = other.data.as_ref().filter(|_| other.is_reached());
        let has_all = |offset: u64| target.is_some_and(|target| offset >= target);
        position.is_some_and(|has| has.history == written.history && has.offset.is_some_and(has_all))
    };
    others().filter(|other| has_it(other)).count() >= needed
}
