//! The next change of an ensemble whose members vote, such as etcd: one at a time, each caught up before the next, and never one by which
//! fewer vote than a quorum needs. A voter that is alive is removed only after its replacement votes; whether one that is dead is removed before
//! or after that depends on the store.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{CandidateNodes, EnsembleSize, Placed, RemovalReason, next_node, surplus};
use crate::records::ensemble::Ensemble;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::{Span, Timestamp};

/// A member, as the store itself tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    /// Its node.
    pub node: NodeName,
    /// Its state.
    pub state: VoterState,
}

/// State of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoterState {
    /// It was ordered, and does not vote yet.
    Joining {
        /// When it was ordered.
        since: Timestamp,
    },
    /// It was ordered, and its node says that it cannot have it as it is.
    Refused,
    /// It votes and works.
    Working,
    /// It votes, and nobody knows whether it works, or it does not.
    Silent {
        /// Since when.
        since: Timestamp,
    },
    /// It is to be removed, and may still vote.
    Leaving,
}

/// The members by number.
pub type Voters = BTreeMap<MemberNumber, Voter>;

/// What an ensemble of voters is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumSpec {
    /// Its name, which orders the nodes for it.
    pub name: String,
    /// How many members.
    pub size: EnsembleSize,
    /// How long one is silent before it is replaced.
    pub failover_after: Span,
    /// How long a new one may take until it votes.
    pub join_within: Span,
    /// When a member that is dead is removed.
    pub replaces: ReplaceOrder,
    /// The members of the store that are not of the ensemble, and vote.
    pub others: OtherVoters,
}

/// Members of the store that are not of the ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OtherVoters {
    /// Those that vote and answer.
    pub working: usize,
    /// Those that vote and do not answer: the store takes no member while there is one.
    pub silent: usize,
    /// Those that do not vote yet: neither while there is one of these.
    pub learners: usize,
}

impl OtherVoters {
    /// Those that vote.
    #[must_use]
    pub const fn all(&self) -> usize {
        self.working.saturating_add(self.silent)
    }

    /// Whether the store takes no other member because of them.
    #[must_use]
    pub const fn hinder(&self) -> bool {
        self.silent > 0 || self.learners > 0
    }
}

/// When a member that is dead is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaceOrder {
    /// Before another one is added: the store refuses every add while a voter is unreachable.
    RemoveFirst,
    /// After another one has joined, which the store takes at any time with a quorum. So at no time more members have to work than without
    /// that change, and one that comes back meanwhile is no loss.
    JoinFirst,
}

impl QuorumSpec {
    /// What the placement of an ensemble is decided on.
    #[must_use]
    pub fn of(ensemble: &Ensemble) -> Self {
        Self {
            name: ensemble.name.to_string(),
            size: ensemble.size,
            failover_after: ensemble.failover_after,
            join_within: ensemble.join_within,
            replaces: match ensemble.service.admits_by_itself() {
                true => ReplaceOrder::JoinFirst,
                false => ReplaceOrder::RemoveFirst,
            },
            others: OtherVoters::default(),
        }
    }
}

/// The next change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuorumStep {
    /// It is as it is to be.
    Rest,
    /// A new member joins on this node.
    Add(NodeName),
    /// This member is removed.
    Remove(MemberNumber, RemovalReason),
    /// Nothing is changed now.
    Wait(QuorumWait),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuorumWait {
    /// This member joins.
    Joining(MemberNumber),
    /// This member is removed.
    Leaving(MemberNumber),
    /// Too few work, so that nothing can be changed; a person may recover it.
    QuorumLost {
        /// Members that work.
        working: usize,
        /// Members that vote.
        voters: usize,
        /// Those that do not work.
        silent: Vec<MemberNumber>,
    },
    /// This member may be back before it is replaced.
    Silent {
        /// The member.
        member: MemberNumber,
        /// When it is replaced.
        until: Timestamp,
    },
    /// Members of the store that are not of the ensemble have to work, or to be gone, before another one may join or leave.
    Others,
    /// No node may have another member.
    NoRoom {
        /// How many are missing.
        missing: usize,
    },
}

/// The smallest number of voters that is more than half of them.
#[must_use]
pub const fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// The next change of an ensemble.
#[must_use]
pub fn next_step(spec: &QuorumSpec, places: &CandidateNodes, members: &Voters, now: Timestamp) -> QuorumStep {
    if let Some(step) = under_way(spec, places, members, now) {
        return step;
    }
    let step = settled(spec, places, members, now);
    let is_hindered = match &step {
        QuorumStep::Add(_) => spec.others.hinder(),
        QuorumStep::Remove(number, _) => spec.others.all() > 0 && is_needed(spec, members, *number),
        QuorumStep::Rest | QuorumStep::Wait(_) => false,
    };
    if is_hindered { QuorumStep::Wait(QuorumWait::Others) } else { step }
}

/// Whether fewer would work without a member than a quorum needs.
fn is_needed(spec: &QuorumSpec, members: &Voters, number: MemberNumber) -> bool {
    let left = members.iter().filter(|(other, voter)| **other != number && !voter.is_silent());
    let working = left.count().saturating_add(spec.others.working);
    working < quorum(members.len().saturating_add(spec.others.all()).saturating_sub(1))
}

/// The next change while none is under way.
fn settled(spec: &QuorumSpec, places: &CandidateNodes, members: &Voters, now: Timestamp) -> QuorumStep {
    let placed = placed(members);
    let silent: Vec<MemberNumber> =
        members.iter().filter(|(_, voter)| voter.is_silent()).map(|(number, _)| *number).collect();
    let (voters, working) = (members.len(), members.len().saturating_sub(silent.len()));
    let all = voters.saturating_add(spec.others.all());
    let all_working = working.saturating_add(spec.others.working);
    if all > 0 && all_working < quorum(all) {
        return QuorumStep::Wait(QuorumWait::QuorumLost { working: all_working, voters: all, silent });
    }
    let wanted = wanted(spec, places, members);
    if voters > wanted {
        let step = shrink(places, &placed, &silent);
        return replaced(spec, places, members, step);
    }
    let missing = wanted.saturating_sub(working);
    if let Some(step) = replace(spec, places, members, missing, now) {
        return step;
    }
    let next = next_node(&spec.name, places, &placed);
    let to_leave = to_leave(places, members);
    match next {
        _ if voters == wanted && to_leave == 0 => QuorumStep::Rest,
        // One on a drained node leaves once its replacement votes: then there is one too many.
        Some(node) => QuorumStep::Add(node.clone()),
        None => QuorumStep::Wait(QuorumWait::NoRoom { missing: wanted.saturating_sub(voters).max(to_leave) }),
    }
}

/// How many members there are to be now, at least one.
#[must_use]
pub fn wanted(spec: &QuorumSpec, places: &CandidateNodes, members: &Voters) -> usize {
    let placed = placed(members);
    match (spec.size, spec.replaces) {
        // Of an even number, which bears no more failures than one fewer, one has taken the place of another that is yet to leave.
        (EnsembleSize::Quorum, ReplaceOrder::JoinFirst) => {
            let nodes = places.values().filter(|place| place.matches).count();
            let kept = placed.len().saturating_sub(usize::from(placed.len().is_multiple_of(2)));
            spec.size.wanted(nodes, kept).max(1)
        }
        (EnsembleSize::Number(_), _) | (EnsembleSize::Quorum, ReplaceOrder::RemoveFirst) => {
            super::wanted(spec.size, places, &placed)
        }
    }
}

/// How many members are on nodes that they are to leave.
fn to_leave(places: &CandidateNodes, members: &Voters) -> usize {
    let is_drained = |voter: &&Voter| places.get(&voter.node).is_some_and(|place| place.is_drained);
    members.values().filter(is_drained).count()
}

/// Which node each has.
fn placed(members: &Voters) -> Placed<'_> {
    members.iter().map(|(number, voter)| (*number, &voter.node)).collect()
}

/// The change that has begun: it is finished, or withdrawn, before another one begins.
fn under_way(
    spec: &QuorumSpec,
    places: &CandidateNodes,
    members: &Voters,
    now: Timestamp,
) -> Option<QuorumStep> {
    members.iter().find_map(|(number, voter)| match voter.state {
        VoterState::Leaving => Some(QuorumStep::Wait(QuorumWait::Leaving(*number))),
        VoterState::Joining { since } if now >= since.plus(spec.join_within) => {
            Some(QuorumStep::Remove(*number, RemovalReason::NotJoined))
        }
        // Its node is taken as it is now; what it lacks may come while no other one may have a member.
        VoterState::Refused if next_node(&spec.name, places, &placed(members)).is_some() => {
            Some(QuorumStep::Remove(*number, RemovalReason::Refused))
        }
        VoterState::Joining { .. } | VoterState::Refused => {
            Some(QuorumStep::Wait(QuorumWait::Joining(*number)))
        }
        VoterState::Working | VoterState::Silent { .. } => None,
    })
}

/// One that is silent is removed first, since it votes against nobody.
fn shrink(places: &CandidateNodes, placed: &Placed<'_>, silent: &[MemberNumber]) -> QuorumStep {
    let of_silent = placed.iter().filter(|(number, _)| silent.contains(number));
    let of_silent: Placed<'_> = of_silent.map(|(number, node)| (*number, *node)).collect();
    let from = if of_silent.is_empty() { placed } else { &of_silent };
    let Some(number) = surplus(places, from) else { return QuorumStep::Rest };
    let place = placed.get(&number).and_then(|node| places.get(*node));
    let is_drained = place.is_some_and(|place| place.is_drained);
    QuorumStep::Remove(number, if is_drained { RemovalReason::Drained } else { RemovalReason::Surplus })
}

/// The same with the reason for which there is one too many, if another one has joined in the place of one that is silent: as many work as are
/// wanted.
fn replaced(spec: &QuorumSpec, places: &CandidateNodes, members: &Voters, step: QuorumStep) -> QuorumStep {
    let QuorumStep::Remove(number, RemovalReason::Surplus) = step else { return step };
    let working = members.values().filter(|voter| !voter.is_silent()).count();
    let of = members.get(&number).filter(|voter| voter.is_silent());
    match (spec.replaces, of) {
        (ReplaceOrder::JoinFirst, Some(voter)) if working == wanted(spec, places, members) => {
            let is_known = places.contains_key(&voter.node);
            let reason = if is_known { RemovalReason::Dead } else { RemovalReason::Decommissioned };
            QuorumStep::Remove(number, reason)
        }
        (ReplaceOrder::JoinFirst | ReplaceOrder::RemoveFirst, _) => step,
    }
}

/// What becomes of the members that are silent; `None` if none is. So many are missing while they are.
fn replace(
    spec: &QuorumSpec,
    places: &CandidateNodes,
    members: &Voters,
    missing: usize,
    now: Timestamp,
) -> Option<QuorumStep> {
    let silent = members.iter().filter_map(|(number, voter)| match voter.state {
        VoterState::Silent { since } => Some((since.plus(spec.failover_after), *number)),
        VoterState::Joining { .. } | VoterState::Refused | VoterState::Working | VoterState::Leaving => None,
    });
    let mut silent: Vec<(Timestamp, MemberNumber)> = silent.collect();
    silent.sort_unstable();
    silent.first()?;
    // Its own node is one for its replacement, if that may have a new member: only the data were lost.
    let has_room = |member: MemberNumber| {
        let others = members.iter().filter(|(number, _)| **number != member);
        let others: Placed<'_> = others.map(|(number, voter)| (*number, &voter.node)).collect();
        next_node(&spec.name, places, &others).is_some()
    };
    let is_known =
        |member: MemberNumber| members.get(&member).is_some_and(|voter| places.contains_key(&voter.node));
    let reason = |member| {
        if is_known(member) { RemovalReason::Dead } else { RemovalReason::Decommissioned }
    };
    let other = match spec.replaces {
        ReplaceOrder::JoinFirst => {
            let mut places = places.clone();
            let gone = silent.iter().filter(|(until, _)| now >= *until).filter_map(|(_, of)| members.get(of));
            for voter in gone {
                places.entry(voter.node.clone()).or_default().is_drained = true;
            }
            next_node(&spec.name, &places, &placed(members)).cloned()
        }
        ReplaceOrder::RemoveFirst => None,
    };
    let step = silent.into_iter().find_map(|(until, member)| match &other {
        _ if now < until => Some(QuorumStep::Wait(QuorumWait::Silent { member, until })),
        Some(node) => Some(QuorumStep::Add(node.clone())),
        None => has_room(member).then_some(QuorumStep::Remove(member, reason(member))),
    });
    // Without a node for another one nothing is gained by a removal.
    Some(step.unwrap_or(QuorumStep::Wait(QuorumWait::NoRoom { missing })))
}

impl Voter {
    const fn is_silent(&self) -> bool {
        matches!(self.state, VoterState::Silent { .. })
    }
}

#[cfg(test)]
mod tests;
