//! The members of an ensemble restarted, or defragmented, one after the other because somebody asked for it: those that do not work first, then
//! those that follow, the leader or the primary last, after another one has taken over. Each works again before it is the turn of the next one.

use alloc::format;
use alloc::vec::Vec;

use super::{EnsembleSight, foreign};
use crate::decide::placement::CandidateNodes;
use crate::decide::placement::independent::{IndependentStep, IndependentWait};
use crate::decide::placement::primary::{Instance, InstanceState, Instances, PrimaryStep, PrimaryWait};
use crate::decide::placement::quorum::{QuorumStep, QuorumWait};
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, OrderedChange};
use crate::records::ensemble_requests::RollingAction;
use crate::records::event::EventDraft;
use crate::records::member::{MemberReport, MemberState, MembershipChange};
use crate::words::counter::MemberNumber;

impl EnsembleSight<'_> {
    /// Records with which members it was done, and orders the next one, if there is one now. Answers what is told of it.
    pub(super) fn roll(
        &self,
        members: &mut EnsembleMembers,
        next: impl FnOnce(&EnsembleMembers) -> Option<MemberNumber>,
    ) -> Vec<EventDraft> {
        let mut events = Vec::new();
        let Some(mut request) = members.requests.rolling.clone() else { return events };
        let is_left = |number: &MemberNumber| {
            let phase = members.members.get(number).map(|member| &member.phase);
            matches!(phase, Some(MemberPhase::Voting | MemberPhase::Serving))
        };
        request.left.retain(is_left);
        request.under_way = request.under_way.filter(|number| request.left.contains(number));
        if let Some((number, member)) =
            request.under_way.and_then(|number| Some((number, members.members.get(&number)?)))
            && self.report(number, member).is_some_and(|report| {
                let made = match request.action {
                    RollingAction::Restart => report.restarted,
                    RollingAction::Defragment => report.defragmented,
                };
                report.state == MemberState::Working && made >= Some(request.annotation.at)
            })
        {
            request.left.remove(&number);
            request.under_way = None;
            let cause = format!("member {number} on {}", member.node);
            let kind = match request.action {
                RollingAction::Restart => "ensemble.member_restarted",
                RollingAction::Defragment => "ensemble.member_defragmented",
            };
            events.push(told(kind, members, cause));
        }
        members.requests.rolling = Some(request.clone());
        if request.under_way.is_none() {
            request.under_way = next(members);
            members.requests.rolling = Some(request.clone());
        }
        events.extend(finish(members));
        events
    }

    /// The member of those that vote whose turn is next; `None` while it is waited for something.
    pub(super) fn next_voter(&self, members: &EnsembleMembers, step: &QuorumStep) -> Option<MemberNumber> {
        let is_at_rest = match step {
            QuorumStep::Rest
            | QuorumStep::Wait(
                QuorumWait::Silent { .. }
                | QuorumWait::NoRoom { .. }
                | QuorumWait::QuorumLost { .. }
                | QuorumWait::Others,
            ) => true,
            QuorumStep::Add(_)
            | QuorumStep::Remove(..)
            | QuorumStep::Wait(QuorumWait::Joining(_) | QuorumWait::Leaving(_)) => false,
        };
        let left = self.left(members).filter(|_| is_at_rest)?;
        // One that does not work takes nothing from the quorum, and may be what the restart is to mend.
        let broken = left.iter().find(|(_, report)| report.state != MemberState::Working);
        let restarts = members.requests.rolling.as_ref()?.action == RollingAction::Restart;
        if let Some((number, _)) = broken.filter(|_| restarts) {
            return Some(*number);
        }
        let voting = members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Voting);
        let all_work = voting.clone().all(|(number, member)| self.works(*number, member));
        if !all_work || foreign::others(members).silent > 0 {
            return None;
        }
        let follower = left.iter().find(|(_, report)| !leads(report));
        let has_leader =
            voting.clone().any(|(number, member)| self.report(*number, member).is_some_and(leads));
        match follower {
            Some((number, _)) => has_leader.then_some(*number),
            None => {
                // It is alone, or the store lets nobody be told to lead: another one does while it is away.
                let goes_as_leader = voting.count() == 1 || members.service.admits_by_itself();
                left.first().map(|(number, _)| *number).filter(|_| goes_as_leader)
            }
        }
    }

    /// The primary or replica that is restarted next; `None` while it is waited for something. The primary is only where it is alone.
    pub(super) fn next_instance(
        &self,
        members: &EnsembleMembers,
        (step, instances): (&PrimaryStep, &Instances),
    ) -> Option<MemberNumber> {
        let is_at_rest = match step {
            PrimaryStep::Rest
            | PrimaryStep::Wait(PrimaryWait::Silent { .. } | PrimaryWait::NoRoom { .. }) => true,
            PrimaryStep::Add(_)
            | PrimaryStep::Remove(..)
            | PrimaryStep::Follow(..)
            | PrimaryStep::Promote(_)
            | PrimaryStep::HandOver(_)
            | PrimaryStep::Cut(_)
            | PrimaryStep::Wait(_) => false,
        };
        let left = self.left(members).filter(|_| is_at_rest)?;
        let primary = members.lead.primary?;
        let replicas = || left.iter().filter(|(number, _)| *number != primary);
        if let Some((number, _)) = replicas().find(|(_, report)| report.state != MemberState::Working) {
            return Some(*number);
        }
        if !are_whole(instances, primary) {
            return None;
        }
        let is_alone = || instances.len() == 1 && left.iter().any(|(number, _)| *number == primary);
        replicas().next().map(|(number, _)| *number).or_else(|| is_alone().then_some(primary))
    }

    /// The replica that the primary hands over to, so that it can be restarted as one; `None` if it is not its turn, or nobody can take over. One
    /// that is to leave would hand back at once.
    pub(super) fn successor_for_restart(
        &self,
        members: &EnsembleMembers,
        (instances, places): (&Instances, &CandidateNodes),
    ) -> Option<MemberNumber> {
        let request = members.requests.rolling.as_ref().filter(|request| request.under_way.is_none())?;
        let primary = members.lead.primary.filter(|_| members.lead.promotion.is_none())?;
        let is_its_turn = request.left.len() == 1 && request.left.contains(&primary);
        if !is_its_turn || !are_whole(instances, primary) {
            return None;
        }
        let stays = |of: &Instance| places.get(&of.node).is_none_or(|place| !place.is_drained);
        let mut others = instances.iter().filter(|(number, of)| **number != primary && stays(of));
        others.next().map(|(number, _)| *number)
    }

    /// The independent member that is restarted next; `None` while it is waited for something.
    pub(super) fn next_independent(
        &self,
        members: &EnsembleMembers,
        step: &IndependentStep,
    ) -> Option<MemberNumber> {
        let left = self.left(members)?;
        if let Some((number, _)) = left.iter().find(|(_, report)| report.state != MemberState::Working) {
            return Some(*number);
        }
        let is_at_rest = match step {
            IndependentStep::Rest
            | IndependentStep::Wait(
                IndependentWait::Silent { .. } | IndependentWait::NoRoom { .. } | IndependentWait::NoneWorks,
            ) => true,
            IndependentStep::Add(_)
            | IndependentStep::Remove(..)
            | IndependentStep::Wait(IndependentWait::Joining(_)) => false,
        };
        let serving = members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Serving);
        let all_work = serving.into_iter().all(|(number, member)| self.works(*number, member));
        left.first().map(|(number, _)| *number).filter(|_| is_at_rest && all_work)
    }

    /// The members whose turn is yet to come and that are heard of; `None` if nothing is asked for.
    fn left(&self, members: &EnsembleMembers) -> Option<Vec<(MemberNumber, &MemberReport)>> {
        let request = members.requests.rolling.as_ref()?;
        let left = request.left.iter().filter_map(|number| {
            let member = members.members.get(number)?;
            Some((*number, self.report(*number, member)?))
        });
        Some(left.collect())
    }

    /// That leadership moves from the last one whose turn it is to one that had its turn; `None` if it is not its turn, or it does not lead.
    pub(super) fn transfer(&self, members: &EnsembleMembers) -> Option<OrderedChange> {
        let request = members.requests.rolling.as_ref().filter(|request| request.under_way.is_none())?;
        if members.service.admits_by_itself() {
            return None;
        }
        let voting = members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Voting);
        let by = match request.left.iter().collect::<Vec<_>>().as_slice() {
            [last] => **last,
            _ => return None,
        };
        let leader = members.members.get(&by)?;
        if !self.report(by, leader).is_some_and(leads)
            || !voting.clone().all(|(of, other)| self.works(*of, other))
        {
            return None;
        }
        let to =
            voting.filter(|(number, _)| **number != by).find_map(|(_, member)| member.store_id.clone())?;
        Some(OrderedChange { by, change: MembershipChange::Transfer { id: to } })
    }

    /// Whether a member is being defragmented, by its agent's word, which takes as long as it takes: that it does not answer meanwhile is no sign
    /// of anything, whether that is still asked for or not.
    pub(super) fn is_at_work(&self, number: MemberNumber, member: &Member) -> bool {
        let is_away = self.nodes.get(&member.node).is_none_or(|node| node.unreachable_since.is_some());
        let is_at_it = |report: &MemberReport| report.defragments && !report.has_ended;
        !is_away && self.report(number, member).is_some_and(is_at_it)
    }

    fn works(&self, number: MemberNumber, member: &Member) -> bool {
        self.report(number, member).is_some_and(|report| report.state == MemberState::Working)
    }
}

/// Whether all replicas have what the primary wrote, and follow it.
fn are_whole(instances: &Instances, primary: MemberNumber) -> bool {
    instances.iter().all(|(number, instance)| {
        let follows = *number == primary || (instance.is_whole && instance.follows == Some(primary));
        instance.state == InstanceState::Up && follows
    })
}

fn leads(report: &MemberReport) -> bool {
    report.membership.as_ref().is_some_and(|membership| membership.is_leader)
}

/// Ends what was done with all; what is told of that.
pub(super) fn finish(members: &mut EnsembleMembers) -> Option<EventDraft> {
    let request = members.requests.rolling.take_if(|request| request.is_done())?;
    let cause = format!("all members, as was asked {}", request.annotation);
    let kind = match request.action {
        RollingAction::Restart => "ensemble.restarted",
        RollingAction::Defragment => "ensemble.defragmented",
    };
    Some(told(kind, members, cause))
}

pub(super) fn told(
    kind: &'static str,
    members: &EnsembleMembers,
    cause: alloc::string::String,
) -> EventDraft {
    EventDraft { kind, subject: format!("ensemble/{}", members.ensemble), before: None, after: None, cause }
}
