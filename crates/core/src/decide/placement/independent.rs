//! The next change of an ensemble whose members are independent of each other, such as copies of a program. A member that works is removed
//! by our own hand only once there are as many others that work as are wanted, or if there are more than that.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use super::{CandidateNode, CandidateNodes, Placed, next_node, surplus};
use crate::records::ensemble::{Ensemble, EnsembleSize};
use crate::records::ensemble_members::RemovalReason;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::{Span, Timestamp};

/// What an ensemble of independent members is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndependentSpec {
    /// Its name, which orders the nodes for it.
    pub name: String,
    /// How many members.
    pub size: EnsembleSize,
    /// How long a member may not work before another one takes its place.
    pub failover_after: Span,
    /// How long a new member may take until it works.
    pub join_within: Span,
}

/// A member, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndependentMember {
    /// Its node.
    pub node: NodeName,
    /// Its state.
    pub state: IndependentState,
}

/// State of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndependentState {
    /// It was ordered, and does not work yet.
    Joining {
        /// When it was ordered.
        since: Timestamp,
    },
    /// Its node cannot have it.
    Refused,
    /// It works.
    Working,
    /// It does not work, or nobody knows.
    Silent {
        /// Since when.
        since: Timestamp,
    },
}

/// The members by number.
pub type IndependentMembers = BTreeMap<MemberNumber, IndependentMember>;

/// The next change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndependentStep {
    /// It is as it is to be.
    Rest,
    /// A new member begins on this node.
    Add(NodeName),
    /// This member is removed.
    Remove(MemberNumber, RemovalReason),
    /// Nothing is changed now.
    Wait(IndependentWait),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndependentWait {
    /// This member is about to work.
    Joining(MemberNumber),
    /// This member may work again before another one takes its place.
    Silent {
        /// The member.
        member: MemberNumber,
        /// When that is.
        until: Timestamp,
    },
    /// None of the members works: none is replaced before one does.
    NoneWorks,
    /// No node may have another member.
    NoRoom {
        /// How many are missing.
        missing: usize,
    },
}

impl IndependentSpec {
    /// What the placement of an ensemble is decided on.
    #[must_use]
    pub fn of(ensemble: &Ensemble) -> Self {
        Self {
            name: ensemble.name.to_string(),
            size: ensemble.size,
            failover_after: ensemble.failover_after,
            join_within: ensemble.join_within,
        }
    }

    /// How many members there are to be.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.size.wanted(0, 0)
    }
}

impl IndependentMember {
    fn works(&self) -> bool {
        self.state == IndependentState::Working
    }
}

/// The next change: what makes room or gives up what is lost first, then what is missing, then what is too many.
#[must_use]
pub fn next_step(
    spec: &IndependentSpec,
    places: &CandidateNodes,
    members: &IndependentMembers,
    now: Timestamp,
) -> IndependentStep {
    let all: Placed<'_> = members.iter().map(|(number, member)| (*number, &member.node)).collect();
    let next = next_node(&spec.name, places, &all);
    if let Some((number, reason)) = given_up(spec, members, next.is_some(), now) {
        return IndependentStep::Remove(number, reason);
    }
    let wanted = spec.wanted();
    let is_drained = |member: &IndependentMember| places.get(&member.node).is_some_and(is_drained);
    let staying = members.values().filter(|member| !is_drained(member)).count();
    let missing = wanted.saturating_sub(staying);
    if let Some(node) = next.filter(|_| missing > 0) {
        return IndependentStep::Add(node.clone());
    }
    if let Some((number, reason)) = leaver(places, members, wanted, staying) {
        return IndependentStep::Remove(number, reason);
    }
    // One that was drained goes on where nobody can take its place.
    waiting(spec, members, missing, now)
}

const fn is_drained(place: &CandidateNode) -> bool {
    place.is_drained
}

/// A member that does not come to work, or has not worked for too long, where another node may have one in its place.
fn given_up(
    spec: &IndependentSpec,
    members: &IndependentMembers,
    has_other: bool,
    now: Timestamp,
) -> Option<(MemberNumber, RemovalReason)> {
    // Where none works, more likely something else has failed than all of them.
    let may_be_lost = members.len() == 1 || members.values().any(IndependentMember::works);
    members.iter().find_map(|(number, member)| {
        let reason = match member.state {
            IndependentState::Refused if has_other => RemovalReason::Refused,
            IndependentState::Joining { since } if has_other && now >= since.plus(spec.join_within) => {
                RemovalReason::NotJoined
            }
            // Of a node that is gone for good.
            IndependentState::Silent { since: Timestamp::EPOCH } => RemovalReason::Dead,
            IndependentState::Silent { since }
                if has_other && may_be_lost && now >= since.plus(spec.failover_after) =>
            {
                RemovalReason::Dead
            }
            IndependentState::Refused
            | IndependentState::Joining { .. }
            | IndependentState::Silent { .. }
            | IndependentState::Working => return None,
        };
        Some((*number, reason))
    })
}

/// A member that is not needed: its node is drained, and enough others work; or there are more than are wanted.
fn leaver(
    places: &CandidateNodes,
    members: &IndependentMembers,
    wanted: usize,
    staying: usize,
) -> Option<(MemberNumber, RemovalReason)> {
    let works = members.values().filter(|member| member.works()).count();
    let drained = members.iter().find(|(_, member)| {
        let is_drained = places.get(&member.node).is_some_and(is_drained);
        let (others, needed) = match member.works() {
            true => (works.saturating_sub(1), wanted),
            false => (members.len().saturating_sub(1), wanted),
        };
        is_drained && others >= needed
    });
    if let Some((number, _)) = drained {
        return Some((*number, RemovalReason::Drained));
    }
    if staying <= wanted {
        return None;
    }
    let placed = |is: &dyn Fn(&IndependentMember) -> bool| -> Placed<'_> {
        let all = members.iter().filter(|(_, member)| is(member));
        all.map(|(number, member)| (*number, &member.node)).collect()
    };
    // Who does not work is of least use.
    let idle = placed(&|member| !member.works());
    let number = surplus(places, &if idle.is_empty() { placed(&|_| true) } else { idle });
    number.map(|number| (number, RemovalReason::Surplus))
}

fn waiting(
    spec: &IndependentSpec,
    members: &IndependentMembers,
    missing: usize,
    now: Timestamp,
) -> IndependentStep {
    let mut late = 0;
    for (number, member) in members {
        match member.state {
            IndependentState::Joining { .. } => {
                return IndependentStep::Wait(IndependentWait::Joining(*number));
            }
            IndependentState::Refused => late += 1,
            IndependentState::Silent { since } if now >= since.plus(spec.failover_after) => late += 1,
            IndependentState::Silent { .. } | IndependentState::Working => {}
        }
    }
    let silent = members.iter().find_map(|(number, member)| match member.state {
        IndependentState::Silent { since } => Some((*number, since)),
        IndependentState::Joining { .. } | IndependentState::Refused | IndependentState::Working => None,
    });
    if late > 1 && late == members.len() {
        return IndependentStep::Wait(IndependentWait::NoneWorks);
    }
    if missing + late > 0 {
        return IndependentStep::Wait(IndependentWait::NoRoom { missing: missing + late });
    }
    match silent {
        None => IndependentStep::Rest,
        Some((member, since)) => {
            let until = since.plus(spec.failover_after);
            IndependentStep::Wait(IndependentWait::Silent { member, until })
        }
    }
}

#[cfg(test)]
mod tests;
