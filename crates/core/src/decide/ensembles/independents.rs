//! The members of an ensemble that are independent of each other: what is recorded of them follows what their nodes report, then all changes
//! begin that wait for nothing.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::candidates::without_refusing;
use super::{EnsembleDecision, EnsembleSight, EnsembleStep};
use crate::decide::placement::CandidateNodes;
use crate::decide::placement::independent::{
    IndependentMember, IndependentMembers, IndependentSpec, IndependentState, IndependentStep, next_step,
};
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, RemovalReason};
use crate::records::member::MemberState;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;

impl EnsembleSight<'_> {
    pub(super) fn decide_on_independents(&self, places: &CandidateNodes) -> EnsembleDecision {
        let mut members = self.members.clone();
        self.advance_serving(&mut members);
        members.is_bootstrapped |=
            members.members.values().any(|member| member.phase == MemberPhase::Serving);
        members.refused.retain(|_, refused| refused.until > self.now);
        let spec = IndependentSpec::of(self.ensemble);
        let mut step = IndependentStep::Rest;
        // Each takes the place of another one at most.
        for _ in 0..=members.members.len().saturating_add(spec.wanted()).saturating_mul(2) {
            let places = without_refusing(places, &members);
            step = next_step(&spec, &places, &self.independents(&members), self.now);
            match &step {
                IndependentStep::Add(node) => self.add(&mut members, node),
                IndependentStep::Remove(number, reason) => {
                    self.remove_serving(&mut members, *number, *reason, &places);
                }
                IndependentStep::Rest | IndependentStep::Wait(_) => break,
            }
        }
        let of_restart = self.roll(&mut members, |members| self.next_independent(members, &step));
        let events = super::events(self.members, &members).into_iter().chain(of_restart).collect();
        let wake = self.wake_independents(&spec, &members);
        EnsembleDecision { members, step: EnsembleStep::Independent(step), events, wake }
    }

    /// The members as the placement sees them: without those that are removed.
    pub(super) fn independents(&self, members: &EnsembleMembers) -> IndependentMembers {
        let present =
            members.members.iter().filter(|(_, member)| !matches!(member.phase, MemberPhase::Removed(_)));
        let independent = |(number, member): (&MemberNumber, &Member)| {
            let state = self.independent_state(*number, member);
            (*number, IndependentMember { node: member.node.clone(), state })
        };
        present.map(independent).collect()
    }

    fn independent_state(&self, number: MemberNumber, member: &Member) -> IndependentState {
        // Of a node that has none recorded yet, nothing is looked up.
        if !self.members.members.contains_key(&number) {
            return IndependentState::Joining { since: self.now };
        }
        if !self.nodes.contains_key(&member.node) {
            return IndependentState::Silent { since: Timestamp::EPOCH };
        }
        if member.phase != MemberPhase::Serving {
            return match self.is_refused(number, member) {
                true => IndependentState::Refused,
                false => IndependentState::Joining { since: self.heard_since(member.since) },
            };
        }
        match self.silent_since(number, member) {
            Some(since) => IndependentState::Silent { since },
            None => IndependentState::Working,
        }
    }

    /// When a time that is waited for is over.
    fn wake_independents(&self, spec: &IndependentSpec, members: &EnsembleMembers) -> Option<Timestamp> {
        let due = |member: IndependentMember| match member.state {
            IndependentState::Joining { since } => Some(since.plus(spec.join_within)),
            IndependentState::Silent { since } => Some(since.plus(spec.failover_after)),
            IndependentState::Refused | IndependentState::Working => None,
        };
        let due = self.independents(members).into_values().filter_map(due);
        let refused = members.refused.values().map(|refused| refused.until);
        due.chain(refused).filter(|at| *at > self.now).min()
    }

    /// Takes each member, of those that do not vote, as far as what is reported of it goes.
    pub(super) fn advance_serving(&self, members: &mut EnsembleMembers) {
        let numbers: Vec<MemberNumber> = members.members.keys().copied().collect();
        for number in numbers {
            let Some(member) = members.members.get_mut(&number) else { continue };
            let report = self.report(number, member);
            let state = report.map(|report| report.state);
            match &member.phase {
                MemberPhase::Preparing if state == Some(MemberState::Prepared) => {
                    let peer_url = report.map(|report| report.peer_url.clone()).unwrap_or_default();
                    member.peer_url = peer_url;
                    member.phase = MemberPhase::Joining(BTreeMap::new());
                }
                MemberPhase::Joining(_) if state == Some(MemberState::Working) => {
                    (member.phase, member.since) = (MemberPhase::Serving, self.now);
                }
                MemberPhase::Removed(_)
                    if state == Some(MemberState::Left) || !self.nodes.contains_key(&member.node) =>
                {
                    members.members.remove(&number);
                }
                MemberPhase::Preparing
                | MemberPhase::Bootstrapping
                | MemberPhase::Adding
                | MemberPhase::Joining(_)
                | MemberPhase::Voting
                | MemberPhase::Serving
                | MemberPhase::Leaving(_)
                | MemberPhase::Removed(_) => {}
            }
        }
    }

    /// Removes a member, of those that do not vote: its node is to stop it.
    pub(super) fn remove_serving(
        &self,
        members: &mut EnsembleMembers,
        number: MemberNumber,
        reason: RemovalReason,
        places: &CandidateNodes,
    ) {
        self.note_refusal(members, number, reason);
        if let Some(member) = members.members.get_mut(&number) {
            let reason = self.cause(&member.node, reason, places);
            (member.phase, member.since) = (MemberPhase::Removed(reason), self.now);
        }
    }

    /// Why a member of a node is removed, of those that do not vote.
    pub(super) fn cause(
        &self,
        node: &NodeName,
        reason: RemovalReason,
        places: &CandidateNodes,
    ) -> RemovalReason {
        let is_gone = !self.nodes.contains_key(node);
        let is_drained = places.get(node).is_some_and(|place| place.is_drained);
        match reason {
            RemovalReason::Dead if is_gone => RemovalReason::Decommissioned,
            RemovalReason::Surplus if is_drained => RemovalReason::Drained,
            RemovalReason::Dead
            | RemovalReason::Surplus
            | RemovalReason::Decommissioned
            | RemovalReason::NotCounted
            | RemovalReason::CutOff
            | RemovalReason::Drained
            | RemovalReason::Replaced
            | RemovalReason::NotJoined
            | RemovalReason::Refused
            | RemovalReason::Deleted => reason,
        }
    }
}
