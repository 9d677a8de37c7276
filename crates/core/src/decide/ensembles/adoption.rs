//! How an ensemble goes on in a store that it adopted: members that are not of it are recognized, are removed only because a person asked, once as many
//! work without them as a quorum needs, and one of ours changes the store through another member while none of ours serves.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::EnsembleSight;
use super::foreign::others;
use crate::decide::placement::quorum::{QuorumStep, QuorumWait, Voter, VoterState, Voters, quorum};
use crate::decide::placement::{CandidateNodes, Placed, next_node};
use crate::records::ensemble_adoption::{Adoption, ForeignMember};
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, OrderedChange};
use crate::records::member::{MemberState, Membership, MembershipChange};
use crate::records::probes::StoreMember;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;

impl EnsembleSight<'_> {
    /// Records which members the store has that are not of the ensemble, as one that reads them from a quorum says. What nobody tells of stays as it
    /// was recorded.
    pub(super) fn recognize(&self, members: &mut EnsembleMembers) {
        let Some(mut adoption) = members.adoption.clone() else { return };
        if adoption.cluster_id.is_none() {
            adoption.cluster_id = self.first_cluster(members);
            members.adoption = Some(adoption.clone());
        }
        let Some((_, told)) = self.executor(members, None) else { return };
        let present: BTreeSet<&String> = self.lists(members).flat_map(|list| list.members.keys()).collect();
        adoption.foreign.retain(|id, _| told.members.contains_key(id) || present.contains(id));
        for (id, entry) in &told.members {
            let before = adoption.foreign.get(id);
            if is_own(members, id) || before.is_none() && is_expected(members, entry) {
                adoption.foreign.remove(id);
                continue;
            }
            let found = self.found(entry, before);
            adoption.foreign.insert(id.clone(), found);
        }
        let Adoption { foreign, removals, .. } = &mut adoption;
        removals.retain(|id, _| foreign.contains_key(id));
        members.adoption = Some(adoption);
    }

    fn found(&self, entry: &StoreMember, before: Option<&ForeignMember>) -> ForeignMember {
        let found = ForeignMember {
            name: entry.name.clone().unwrap_or_default(),
            peer_url: entry.address.clone().unwrap_or_default(),
            votes: entry.votes,
            answers: entry.connected == Some(true),
            since: self.now,
        };
        let is_same =
            |before: &&ForeignMember| (before.votes, before.answers) == (found.votes, found.answers);
        let since = before.filter(is_same).map_or(self.now, |before| before.since);
        ForeignMember { since, ..found }
    }

    /// The id of the store, as the first member to join it reads it.
    fn first_cluster(&self, members: &EnsembleMembers) -> Option<String> {
        let mut told = members.members.iter();
        told.find_map(|(number, member)| self.report(*number, member)?.outside.as_ref()?.cluster_id.clone())
    }

    /// All lists of members that are reported.
    fn lists<'a>(&'a self, members: &'a EnsembleMembers) -> impl Iterator<Item = &'a Membership> {
        members.members.iter().filter_map(|(number, member)| self.list(members, *number, member))
    }

    /// The members of the store that was adopted, as a member reads them, whether it serves or not.
    fn list(&self, members: &EnsembleMembers, number: MemberNumber, member: &Member) -> Option<&Membership> {
        let report = self.report(number, member)?;
        let cluster_id = members.adoption.as_ref()?.cluster_id.as_ref();
        let read = report.membership.as_ref().or(report.outside.as_ref())?;
        (cluster_id.is_some() && read.cluster_id.as_ref() == cluster_id).then_some(read)
    }

    /// A member that changes the store that was adopted while none of the ensemble serves: through another member. Itself only if there is no
    /// other one.
    pub(super) fn outsider(
        &self,
        members: &EnsembleMembers,
        last: Option<MemberNumber>,
    ) -> Option<(MemberNumber, &Membership)> {
        members.adoption.as_ref()?;
        let able = members.members.iter().filter_map(|(number, member)| {
            let is_there = !matches!(member.phase, MemberPhase::Removed(_));
            let list = self.list(members, *number, member).filter(|_| is_there)?;
            Some((*number, list))
        });
        able.min_by_key(|(number, _)| (Some(*number) == last, *number))
    }

    /// The node of a member that is prepared although others are silent, since nobody else could read the store, or tell it of those that leave.
    pub(super) fn envoy<'a>(
        &self,
        members: &EnsembleMembers,
        step: &QuorumStep,
        (places, voters): (&'a CandidateNodes, &Voters),
    ) -> Option<&'a NodeName> {
        if members.adoption.is_none() || self.executor(members, None).is_some() {
            return None;
        }
        let is_over = |voter: &Voter| match voter.state {
            VoterState::Silent { since } => since.plus(self.ensemble.failover_after) <= self.now,
            VoterState::Joining { .. } | VoterState::Refused | VoterState::Working | VoterState::Leaving => {
                false
            }
        };
        let is_due = match step {
            QuorumStep::Wait(QuorumWait::Leaving(_)) => true,
            // The others may work by now.
            QuorumStep::Wait(QuorumWait::QuorumLost { .. } | QuorumWait::Others) => {
                voters.values().all(is_over)
            }
            QuorumStep::Rest | QuorumStep::Add(_) | QuorumStep::Remove(..) | QuorumStep::Wait(_) => false,
        };
        // One on a node that was decommissioned will never read it.
        let may_read =
            |member: &Member| member.phase == MemberPhase::Preparing && self.nodes.contains_key(&member.node);
        let has_any = members.members.values().any(may_read);
        if !is_due || has_any {
            return None;
        }
        let placed: Placed<'_> = voters.iter().map(|(number, voter)| (*number, &voter.node)).collect();
        next_node(self.ensemble.name.as_str(), places, &placed)
    }

    /// The members that the next change is decided on. The store takes no other one while one is silent: one that is prepared meanwhile only reads it,
    /// and changes it for those that cannot.
    pub(super) fn without_envoy(&self, members: &EnsembleMembers, mut voters: Voters) -> Voters {
        let has_silent = voters.values().any(|voter| matches!(voter.state, VoterState::Silent { .. }));
        if members.adoption.is_some() && (has_silent || others(members).hinder()) {
            let reads = |number: &MemberNumber| {
                let prepared = members.members.get(number);
                let prepared = prepared.filter(|member| member.phase == MemberPhase::Preparing);
                prepared.is_some_and(|member| self.list(members, *number, member).is_some())
            };
            voters.retain(|number, _| !reads(number));
        }
        voters
    }

    /// Whether the store takes another member: all that vote work, of the ensemble and of others.
    pub(super) fn takes_another(&self, members: &EnsembleMembers) -> bool {
        let mut voting = members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Voting);
        let all_work = voting.all(|(number, member)| self.silent_since(*number, member).is_none());
        all_work && !others(members).hinder()
    }

    /// The removal of a member that is not of the ensemble, if somebody asked for one that can be made now.
    pub(super) fn foreign_removal(&self, members: &EnsembleMembers) -> Option<OrderedChange> {
        let adoption = members.adoption.as_ref()?;
        let mut asked = adoption.removals.keys().filter_map(|id| Some((id, adoption.foreign.get(id)?)));
        let (id, _) = asked.find(|(id, foreign)| self.keeps_foreign(members, id, foreign).is_none())?;
        let by = self.serving(members).first().copied().or_else(|| Some(self.executor(members, None)?.0))?;
        Some(OrderedChange { by, change: MembershipChange::RemoveForeign { id: id.clone() } })
    }

    /// Why a member that is not of the ensemble cannot be removed from the store now, in words that fit after "it "; `None` if it can.
    pub(super) fn keeps_foreign(
        &self,
        members: &EnsembleMembers,
        id: &str,
        foreign: &ForeignMember,
    ) -> Option<String> {
        let serving = self.serving(members);
        let Some((_, told)) = self.executor(members, None) else {
            return Some("stays until a node that has a member of the ensemble reads the store".to_string());
        };
        if serving.is_empty() && foreign.answers {
            return Some(
                "stays until a member of the ensemble votes and works, which has all data".to_string(),
            );
        }
        let is_voter = foreign.votes || told.members.get(id).is_some_and(|entry| entry.votes);
        if !is_voter {
            return None;
        }
        let others = others(members);
        let voters = told.members.values().filter(|entry| entry.votes).count();
        let working = serving.len().saturating_add(others.working);
        let left = working.saturating_sub(usize::from(foreign.answers));
        let needed = quorum(voters.saturating_sub(1));
        (left < needed).then(|| {
            format!(
                "stays until more members work: without it, {left} of {} that vote would, and a quorum is {needed}",
                voters.saturating_sub(1)
            )
        })
    }

    /// The members of the ensemble that vote and work, the leader first.
    fn serving(&self, members: &EnsembleMembers) -> Vec<MemberNumber> {
        let voting = members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Voting);
        let works = voting.filter_map(|(number, member)| {
            let report =
                self.report(*number, member).filter(|report| report.state == MemberState::Working)?;
            Some((report.membership.as_ref().is_some_and(|list| list.is_leader), *number))
        });
        let mut serving: Vec<_> = works.collect();
        serving.sort_unstable_by_key(|(leads, number)| (!*leads, *number));
        serving.into_iter().map(|(_, number)| number).collect()
    }
}

/// Whether the store has or had this id for a member of the ensemble.
fn is_own(members: &EnsembleMembers, id: &String) -> bool {
    let is_known = members.members.values().any(|member| member.store_id.as_ref() == Some(id));
    is_known || members.former_ids.contains(id)
}

/// Whether an entry may be the one that a member of the ensemble is being added as, or was.
fn is_expected(members: &EnsembleMembers, entry: &StoreMember) -> bool {
    members.members.values().any(|member| {
        member.store_id.is_none()
            && !member.peer_url.is_empty()
            && entry.address.as_ref() == Some(&member.peer_url)
    })
}
