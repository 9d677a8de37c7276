//! The next step of a change of the members in the store, by the members that it has, and what is reported of a member that runs.

use alloc::format;
use alloc::string::{String, ToString};

use crate::records::member::{MemberState, Membership, MembershipChange};
use crate::words::counter::MemberNumber;

/// What a running member says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberAnswer {
    /// It does not answer, or cannot read from a quorum, for this reason.
    Silent(String),
    /// It does not vote yet: it answers no reads from a quorum.
    Learner,
    /// Another member answers at its address.
    Other(String),
    /// It serves, and has read these members from a quorum.
    Serving(Membership),
}

/// The next step of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeStep {
    /// It is made.
    Done,
    /// A member that does not vote is added with this peer URL.
    Add(String),
    /// The member with this id is made one that votes.
    Promote(String),
    /// The member with this id leads from now on.
    Transfer(String),
    /// The member with the second id leads instead of the one with the first, which is to be removed.
    TakeLead(String, String),
    /// The member with this id is removed.
    Remove(String),
    /// The store does not have the member that was to be removed.
    Removed(MemberNumber),
    /// It cannot be made, for this reason.
    Wait(String),
}

/// The next step of a change, by the members that were read from a quorum after it was ordered.
#[must_use]
pub fn next(change: &MembershipChange, membership: &Membership) -> ChangeStep {
    let with_url = |url: &str| {
        let has_url = |entry: &&String| {
            membership.members.get(*entry).is_some_and(|member| member.address.as_deref() == Some(url))
        };
        membership.members.keys().find(has_url)
    };
    match change {
        MembershipChange::Add { peer_url, .. } if with_url(peer_url).is_some() => ChangeStep::Done,
        MembershipChange::Add { peer_url, .. } => ChangeStep::Add(peer_url.clone()),
        MembershipChange::Promote { id } => match membership.members.get(id) {
            Some(entry) if entry.votes => ChangeStep::Done,
            // The store refuses it until that one has caught up.
            Some(_) => ChangeStep::Promote(id.clone()),
            None => ChangeStep::Wait(format!("cannot promote {id}: the store has no such member")),
        },
        MembershipChange::Transfer { id } if membership.is_leader && *id != membership.own_id => {
            ChangeStep::Transfer(id.clone())
        }
        MembershipChange::Transfer { .. } => ChangeStep::Done,
        MembershipChange::RemoveForeign { id } if !membership.members.contains_key(id) => ChangeStep::Done,
        MembershipChange::RemoveForeign { id } if membership.leader.as_ref() == Some(id) => {
            ChangeStep::TakeLead(id.clone(), membership.own_id.clone())
        }
        MembershipChange::RemoveForeign { id } => ChangeStep::Remove(id.clone()),
        MembershipChange::Remove { member, id, peer_url } => {
            let listed = match id {
                Some(id) => membership.members.contains_key(id).then_some(id),
                None => with_url(peer_url),
            };
            match listed {
                Some(id) if *id == membership.own_id => {
                    ChangeStep::Wait(format!("does not remove itself from the store, as member {member}"))
                }
                Some(id) => ChangeStep::Remove(id.clone()),
                None => ChangeStep::Removed(*member),
            }
        }
    }
}

/// The state of a member whose program runs, and why it is not well. One that has served before and does not now has failed.
#[must_use]
pub fn state(answer: &MemberAnswer, has_served: bool) -> (MemberState, String) {
    match answer {
        MemberAnswer::Serving(_) => (MemberState::Working, String::new()),
        MemberAnswer::Learner => (MemberState::Starting, "catches up, and does not vote yet".to_string()),
        MemberAnswer::Other(who) => {
            (MemberState::Failed, format!("is not what answers at its address: {who}"))
        }
        MemberAnswer::Silent(reason) if has_served => {
            (MemberState::Failed, format!("does not serve any more: {reason}"))
        }
        MemberAnswer::Silent(reason) => (MemberState::Starting, format!("does not serve yet: {reason}")),
    }
}

#[cfg(test)]
mod tests;
