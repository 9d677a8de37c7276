//! The next change of an ensemble with one primary that replicas follow, such as Redis. A member begins as a replica of nobody; only an
//! order makes it the primary. Another one takes over only where no write that was acknowledged can be lost by it: so many replicas have
//! left the former primary that each such write is on one of them, and the one that takes over has the most of the same history.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::{CandidateNodes, EnsembleSize, Placed, RemovalReason, next_node, surplus};
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::{Span, Timestamp};

/// A member, as it tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its node.
    pub node: NodeName,
    /// Its state.
    pub state: InstanceState,
    /// Whom it was ordered to follow, and follows; `None` if it follows nobody.
    pub follows: Option<MemberNumber>,
    /// Whether that connection is up: data comes over it now.
    pub streams: bool,
    /// What it had last as a whole; `None` if it never had.
    pub data: Option<HistoryPosition>,
    /// Whether it has that now: not while it copies anew.
    pub is_whole: bool,
}

/// How far a member has come in which history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryPosition {
    /// Id of the history. Positions of two cannot be compared.
    pub history: String,
    /// The position.
    pub offset: u64,
}

/// State of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    /// It was ordered, and has not answered yet.
    Joining {
        /// When it was ordered.
        since: Timestamp,
    },
    /// It answers.
    Up,
    /// It does not, or nobody knows.
    Silent {
        /// Since when.
        since: Timestamp,
    },
}

/// The members by number.
pub type Instances = BTreeMap<MemberNumber, Instance>;

/// What an ensemble with a primary is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimarySpec {
    /// Its name, which orders the nodes for it.
    pub name: String,
    /// How many members, the primary among them.
    pub size: EnsembleSize,
    /// How long the primary is silent before another one takes over, and a replica before it is replaced.
    pub failover_after: Span,
    /// How long a new member may take until it answers.
    pub join_within: Span,
    /// How many replicas have a write before it counts as acknowledged.
    pub writes_needed: u32,
    /// How long after a failover there is no other, unless a person acknowledged it.
    pub quiet: Span,
}

/// What was decided before, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrimaryRecord {
    /// The member that was ordered to be the primary.
    pub primary: Option<MemberNumber>,
    /// Id of the history that this one wrote last; `None` before it was seen.
    pub history: Option<String>,
    /// When another one took over without a person; `None` if it never was, or was acknowledged.
    pub failed_over: Option<Timestamp>,
}

/// The next change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrimaryStep {
    /// It is as it is to be.
    Rest,
    /// A new member begins on this node, as a replica of nobody.
    Add(NodeName),
    /// This member is removed.
    Remove(MemberNumber, RemovalReason),
    /// This member follows another one, or nobody any more.
    Follow(MemberNumber, Option<MemberNumber>),
    /// This member becomes the primary.
    Promote(MemberNumber),
    /// Nothing is changed now.
    Wait(PrimaryWait),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrimaryWait {
    /// This member begins.
    Joining(MemberNumber),
    /// This member may be back before it is replaced, or another one takes over.
    Silent {
        /// The member.
        member: MemberNumber,
        /// When that is.
        until: Timestamp,
    },
    /// The primary is silent, and these still get data from it: it works, and its agent does not.
    StillStreams(Vec<MemberNumber>),
    /// Another one took over not long ago, which a person has not acknowledged.
    Quiet {
        /// Until when.
        until: Timestamp,
    },
    /// Too few replicas are reached: a write that was acknowledged may be on none of them.
    TooFewReached {
        /// Replicas that are reached.
        reached: usize,
        /// How many are needed.
        needed: usize,
        /// Those that are not reached.
        silent: Vec<MemberNumber>,
    },
    /// None of those that are reached has the history of the primary.
    NoCandidate,
    /// A member on a node that is drained is the primary: a person has it hand over.
    PrimaryDrained(MemberNumber),
    /// A member is removed once as many others as a write needs have what it has.
    Copies(MemberNumber),
    /// No node may have another member.
    NoRoom {
        /// How many are missing.
        missing: usize,
    },
}

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
        Some(InstanceState::Up) => with_primary(spec, places, (number, members), now),
        Some(InstanceState::Silent { since }) if now < since.plus(spec.failover_after) => {
            let until = since.plus(spec.failover_after);
            PrimaryStep::Wait(PrimaryWait::Silent { member: number, until })
        }
        Some(InstanceState::Joining { .. }) => PrimaryStep::Wait(PrimaryWait::Joining(number)),
        Some(InstanceState::Silent { .. }) | None => fail_over(spec, (number, record), members, now),
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
    (primary, members): (MemberNumber, &Instances),
    now: Timestamp,
) -> PrimaryStep {
    let astray = members.iter().find(|(number, member)| {
        **number != primary && member.state == InstanceState::Up && member.follows != Some(primary)
    });
    if let Some((number, _)) = astray {
        return PrimaryStep::Follow(*number, Some(primary));
    }
    if let Some(step) = members.iter().find_map(|(number, member)| joining(spec, *number, member, now)) {
        return step;
    }
    let remove = |number, reason| match has_copies(spec, (primary, members), number) {
        true => PrimaryStep::Remove(number, reason),
        false => PrimaryStep::Wait(PrimaryWait::Copies(number)),
    };
    let placed = |of: &dyn Fn(&MemberNumber, &Instance) -> bool| -> Placed<'_> {
        let all = members.iter().filter(|(number, member)| of(number, member));
        all.map(|(number, member)| (*number, &member.node)).collect()
    };
    let all = placed(&|_, _| true);
    let nodes = places.values().filter(|place| place.matches).count();
    let wanted = spec.size.wanted(nodes, members.len()).max(1);
    if members.len() > wanted {
        // Never the primary; who is silent is of least use.
        let silent = placed(&|number, member| *number != primary && member.is_silent());
        let from = if silent.is_empty() { placed(&|number, _| *number != primary) } else { silent };
        let leaves = surplus(places, &from);
        return leaves.map_or(PrimaryStep::Rest, |number| remove(number, RemovalReason::Surplus));
    }
    let next = next_node(&spec.name, places, &all);
    if let Some((member, since)) = first_silent(members) {
        let until = since.plus(spec.failover_after);
        return match next {
            _ if now < until => PrimaryStep::Wait(PrimaryWait::Silent { member, until }),
            None => PrimaryStep::Wait(PrimaryWait::NoRoom {
                missing: wanted.saturating_sub(members.len()).max(1),
            }),
            Some(_) => remove(member, RemovalReason::Dead),
        };
    }
    let is_drained = |number: &MemberNumber| {
        all.get(number).and_then(|node| places.get(*node)).is_some_and(|place| place.is_drained)
    };
    let to_leave = members.keys().filter(|number| **number != primary && is_drained(number)).count();
    match next {
        _ if members.len() == wanted && to_leave == 0 => match is_drained(&primary) {
            true => PrimaryStep::Wait(PrimaryWait::PrimaryDrained(primary)),
            false => PrimaryStep::Rest,
        },
        Some(node) => PrimaryStep::Add(node.clone()),
        None => PrimaryStep::Wait(PrimaryWait::NoRoom {
            missing: wanted.saturating_sub(members.len()).max(to_leave),
        }),
    }
}

/// Whether what a replica has is on as many others as a write needs, or on all there are: it takes no acknowledged write away.
fn has_copies(
    spec: &PrimarySpec,
    (primary, members): (MemberNumber, &Instances),
    number: MemberNumber,
) -> bool {
    let Some(data) = members.get(&number).and_then(|member| member.data.as_ref()) else { return true };
    let others = || members.iter().filter(|(other, _)| **other != number && **other != primary);
    let has_it = |member: &Instance| {
        let is_there = member.state == InstanceState::Up && member.is_whole;
        let position = member.data.as_ref().filter(|_| is_there);
        position.is_some_and(|has| has.history == data.history && has.offset >= data.offset)
    };
    let copies = others().filter(|(_, member)| has_it(member)).count();
    copies >= others().count().min(spec.writes_needed as usize)
}

/// The primary was silent for too long: its replicas leave it, then the one that has most takes over.
fn fail_over(
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
    if !streaming.is_empty() {
        return PrimaryStep::Wait(PrimaryWait::StillStreams(streaming));
    }
    if let Some(until) = record.failed_over.map(|at| at.plus(spec.quiet)).filter(|until| now < *until) {
        return PrimaryStep::Wait(PrimaryWait::Quiet { until });
    }
    // Those that ever had data may have an acknowledged write, whatever became of it.
    let holders = || replicas().filter(|(_, member)| member.data.is_some());
    let reached: Vec<(&MemberNumber, &Instance)> =
        holders().filter(|(_, member)| member.is_reached()).collect();
    let all = holders().count();
    let needed = all.saturating_sub(spec.writes_needed as usize).saturating_add(1).min(all).max(1);
    if reached.len() < needed {
        let silent = holders().filter(|(_, member)| !member.is_reached());
        let silent = silent.map(|(number, _)| *number).collect();
        return PrimaryStep::Wait(PrimaryWait::TooFewReached { reached: reached.len(), needed, silent });
    }
    // Measured only once none of them can get more.
    if let Some((number, _)) = reached.iter().find(|(_, member)| member.follows.is_some()) {
        return PrimaryStep::Follow(**number, None);
    }
    let position = |member: &Instance| {
        let data = member.data.as_ref()?;
        record.history.as_ref().is_some_and(|history| *history == data.history).then_some(data.offset)
    };
    let best =
        reached.iter().filter_map(|(number, member)| Some((position(member)?, core::cmp::Reverse(**number))));
    match best.max() {
        Some((_, number)) => PrimaryStep::Promote(number.0),
        None => PrimaryStep::Wait(PrimaryWait::NoCandidate),
    }
}

/// The replica that is silent for longest; the primary is not asked for here.
fn first_silent(members: &Instances) -> Option<(MemberNumber, Timestamp)> {
    let silent = members.iter().filter_map(|(number, member)| match member.state {
        InstanceState::Silent { since } => Some((*number, since)),
        InstanceState::Joining { .. } | InstanceState::Up => None,
    });
    silent.min_by_key(|(number, since)| (*since, *number))
}

impl Instance {
    /// Whether it answers and has its data.
    fn is_reached(&self) -> bool {
        self.state == InstanceState::Up && self.is_whole
    }

    const fn is_silent(&self) -> bool {
        matches!(self.state, InstanceState::Silent { .. })
    }
}

#[cfg(test)]
mod tests;
