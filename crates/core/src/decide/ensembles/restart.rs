//! The members of an ensemble restarted one after the other because somebody asked for it: those that do not work first, then those that follow,
//! the leader last, after another one leads. Each works again before the next one is stopped.

use alloc::format;
use alloc::vec::Vec;

use super::EnsembleSight;
use crate::decide::placement::quorum::{QuorumStep, QuorumWait};
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, OrderedChange};
use crate::records::event::EventDraft;
use crate::records::member::{MemberReport, MemberState, MembershipChange};
use crate::words::counter::MemberNumber;

impl EnsembleSight<'_> {
    /// Records which members were restarted, and orders the next one, unless something else is under way. Answers what is told of it.
    pub(super) fn restart(&self, members: &mut EnsembleMembers, step: &QuorumStep) -> Vec<EventDraft> {
        let mut events = Vec::new();
        let Some(mut request) = members.requests.restart.clone() else { return events };
        let is_left = |number: &MemberNumber| {
            members.members.get(number).is_some_and(|member| member.phase == MemberPhase::Voting)
        };
        request.left.retain(is_left);
        request.under_way = request.under_way.filter(|number| request.left.contains(number));
        if let Some((number, member)) =
            request.under_way.and_then(|number| Some((number, members.members.get(&number)?)))
            && self.report(number, member).is_some_and(|report| {
                report.state == MemberState::Working && report.restarted >= Some(request.annotation.at)
            })
        {
            request.left.remove(&number);
            request.under_way = None;
            let cause = format!("member {number} on {}", member.node);
            events.push(told("ensemble.member_restarted", members, cause));
        }
        members.requests.restart = Some(request.clone());
        if request.under_way.is_none() {
            request.under_way = self.next_to_restart(members, step);
            members.requests.restart = Some(request.clone());
        }
        if request.left.is_empty() {
            members.requests.restart = None;
            events.push(told(
                "ensemble.restarted",
                members,
                format!("all members, as was asked {}", request.annotation),
            ));
        }
        events
    }

    /// The member that is restarted next; `None` while it is waited for something.
    fn next_to_restart(&self, members: &EnsembleMembers, step: &QuorumStep) -> Option<MemberNumber> {
        let is_at_rest = match step {
            QuorumStep::Rest
            | QuorumStep::Wait(
                QuorumWait::Silent { .. } | QuorumWait::NoRoom { .. } | QuorumWait::QuorumLost { .. },
            ) => true,
            QuorumStep::Add(_)
            | QuorumStep::Remove(..)
            | QuorumStep::Wait(QuorumWait::Joining(_) | QuorumWait::Leaving(_)) => false,
        };
        let request = members.requests.restart.as_ref().filter(|_| is_at_rest)?;
        let left = request.left.iter().filter_map(|number| {
            let member = members.members.get(number)?;
            Some((*number, self.report(*number, member)?))
        });
        let left: Vec<(MemberNumber, &MemberReport)> = left.collect();
        // One that does not work takes nothing from the quorum, and may be what the restart is to mend.
        let broken = left.iter().find(|(_, report)| report.state != MemberState::Working);
        if let Some((number, _)) = broken {
            return Some(*number);
        }
        let voting = members.members.iter().filter(|(_, member)| member.phase == MemberPhase::Voting);
        let all_work = voting.clone().all(|(number, member)| self.works(*number, member));
        if !all_work {
            return None;
        }
        let follower = left.iter().find(|(_, report)| !leads(report));
        let has_leader =
            voting.clone().any(|(number, member)| self.report(*number, member).is_some_and(leads));
        match follower {
            Some((number, _)) => has_leader.then_some(*number),
            // It is alone, and nobody else can lead.
            None => left.first().map(|(number, _)| *number).filter(|_| voting.count() == 1),
        }
    }

    /// That leadership moves from the last one that is to be restarted to one that was; `None` if it is not its turn, or it does not lead.
    pub(super) fn transfer(&self, members: &EnsembleMembers) -> Option<OrderedChange> {
        let request = members.requests.restart.as_ref().filter(|request| request.under_way.is_none())?;
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

    fn works(&self, number: MemberNumber, member: &Member) -> bool {
        self.report(number, member).is_some_and(|report| report.state == MemberState::Working)
    }
}

fn leads(report: &MemberReport) -> bool {
    report.membership.as_ref().is_some_and(|membership| membership.is_leader)
}

fn told(kind: &'static str, members: &EnsembleMembers, cause: alloc::string::String) -> EventDraft {
    EventDraft { kind, subject: format!("ensemble/{}", members.ensemble), before: None, after: None, cause }
}
