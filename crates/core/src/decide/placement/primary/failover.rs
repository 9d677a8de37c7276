//! Another member takes over from a primary that is gone.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::instance::{HistoryPosition, Instance, InstanceState, Instances};
use super::step::{PrimarySpec, PrimaryStep, PrimaryWait};
use crate::records::primary::PrimaryRecord;
use crate::words::counter::MemberNumber;
use crate::words::time::Timestamp;

/// The primary was silent for too long, or was started anew: its replicas leave it, then the one that has most takes over.
pub(super) fn fail_over(
    spec: &PrimarySpec,
    (primary, record): (MemberNumber, &PrimaryRecord),
    members: &Instances,
    now: Timestamp,
) -> PrimaryStep {
    let replicas = || members.iter().filter(|(number, _)| **number != primary);
    let streaming = replicas().filter(|(_, member)| {
        member.state == InstanceState::Up && member.follows == Some(primary) && member.streams
    });
    let streaming: Vec<MemberNumber> = streaming.map(|(number, _)| *number).collect();
    let restarted = members.get(&primary).filter(|member| member.state == InstanceState::Restarted);
    let has_ended = members.get(&primary).is_some_and(|member| member.state == InstanceState::Ended);
    // One that is not to come back is left, whatever it still does.
    let is_given_up = members.get(&primary).is_some_and(|member| member.may_be_cut);
    // One that takes no writes, and does not do as it is told, either: what it has acknowledged is on those that it needed for that.
    let is_stuck = members.get(&primary).is_some_and(Instance::is_stuck);
    let is_left = has_ended || is_given_up || is_stuck;
    if !streaming.is_empty() && restarted.is_none() && !is_left {
        return PrimaryStep::Wait(PrimaryWait::StillStreams(streaming));
    }
    let holders = || holders(primary, members);
    let (reached, needed) = reach(spec, primary, members);
    let has_own = restarted.is_some_and(|member| member.data.is_some());
    let all_answer = holders().all(|(_, member)| member.state == InstanceState::Up);
    if has_own && all_answer && reached.len() < needed {
        // Others were started anew, too, or there are none. What it acknowledged is on its own disk, unless that has lost some of it.
        let own = restarted.and_then(|member| member.keys);
        let has_more = |member: &Instance| match (member.keys, own) {
            (Some(keys), Some(own)) => keys > own,
            (None, _) | (_, None) => true,
        };
        // Also one that was never seen with data: it may have got them right before.
        let answers = |member: &Instance| member.state == InstanceState::Up && !member.is_reached();
        let more = replicas().filter(|(_, member)| answers(member) && has_more(member));
        let more: Vec<MemberNumber> = more.map(|(number, _)| *number).collect();
        return match more.is_empty() {
            true => PrimaryStep::Promote(primary),
            false => PrimaryStep::Wait(PrimaryWait::OthersHaveMore(more)),
        };
    }
    if reached.len() < needed {
        return PrimaryStep::Wait(too_few((reached.len(), needed), (primary, has_own), members));
    }
    // Only where an acknowledgement lets another one take over.
    let quiet_until = record.failed_over.map(|at| at.plus(spec.quiet));
    if let Some(until) = quiet_until.filter(|until| now < *until && !is_given_up) {
        return PrimaryStep::Wait(PrimaryWait::Quiet { until });
    }
    // Measured only once none of them can get more.
    let attached = reached.iter().filter(|(_, member)| member.follows.is_some() || member.is_primary);
    let attached: Vec<MemberNumber> = attached.map(|(number, _)| **number).collect();
    if !attached.is_empty() {
        return PrimaryStep::Follow(attached, None);
    }
    let best = reached.iter().filter_map(|(number, member)| {
        Some((rank(record, **number, member.data.as_ref()?)?, Reverse(**number)))
    });
    match best.max() {
        Some((_, number)) => PrimaryStep::Promote(number.0),
        None => PrimaryStep::Wait(PrimaryWait::NoCandidate),
    }
}

/// Too few of those that may have what was acknowledged are reached.
fn too_few(
    (reached, needed): (usize, usize),
    (primary, is_back): (MemberNumber, bool),
    members: &Instances,
) -> PrimaryWait {
    let unreached = holders(primary, members).filter(|(_, member)| !member.is_reached());
    let (anew, silent): (Vec<_>, Vec<_>) =
        unreached.partition(|(_, member)| member.state == InstanceState::Up);
    let numbers =
        |members: Vec<(&MemberNumber, &Instance)>| members.into_iter().map(|(number, _)| *number).collect();
    PrimaryWait::TooFewReached { reached, needed, silent: numbers(silent), anew: numbers(anew), is_back }
}

/// The replicas that ever had data: they may have an acknowledged write, whatever became of it.
fn holders(primary: MemberNumber, members: &Instances) -> impl Iterator<Item = (&MemberNumber, &Instance)> {
    members.iter().filter(move |(number, member)| **number != primary && member.data.is_some())
}

/// Those of them that answer and have their data, and how many it takes so that each acknowledged write is on one.
pub(super) fn reach<'a>(
    spec: &PrimarySpec,
    primary: MemberNumber,
    members: &'a Instances,
) -> (Vec<(&'a MemberNumber, &'a Instance)>, usize) {
    let all = holders(primary, members).count();
    let needed = all.saturating_sub(spec.writes_needed as usize).saturating_add(1).min(all).max(1);
    (holders(primary, members).filter(|(_, member)| member.is_reached()).collect(), needed)
}

/// How far a member has come in what the primary wrote; `None` if it has another history.
fn rank(record: &PrimaryRecord, number: MemberNumber, data: &HistoryPosition) -> Option<(u8, u64)> {
    let is = |history: &Option<String>| history.as_ref() == Some(&data.history);
    let continues = record.handover == Some(number)
        && data.former.is_some()
        && data.former.as_ref() == record.history.as_ref();
    let generation = if continues {
        2
    } else if is(&record.history) {
        1
    } else if is(&record.former) {
        0
    } else {
        return None;
    };
    Some((generation, data.offset?))
}
