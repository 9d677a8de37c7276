//! The members of an ensemble whose members vote: what is recorded of them follows what their nodes and the store itself report, then the
//! next change begins. A change is recorded before anybody acts on it, and each step may be repeated: the store is always asked what is so.

pub mod accepted;
mod adoption;
pub mod candidates;
pub mod failing;
pub mod foreign;
pub mod health;
mod independents;
mod lead;
mod leftovers;
mod orders;
pub mod osds;
pub mod overtaken;
pub mod passwords;
mod phases;
pub mod plan;
mod primaries;
mod replace;
pub mod reports;
pub mod requests;
pub mod restored;
mod rolling;
pub mod set_back;
mod snapshots;
pub mod strangers;
pub mod verdict;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use self::candidates::{with_snapshot, without_refusing};
use super::placement::CandidateNodes;
use super::placement::independent::IndependentStep;
use super::placement::primary::PrimaryStep;
use super::placement::quorum::{self, QuorumSpec, QuorumStep, ReplaceOrder, Voter, VoterState, Voters};
use crate::records::ensemble::{Ensemble, EnsembleMode, EnsembleService};
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, RefusedMember, RemovalReason};
use crate::records::event::EventDraft;
use crate::records::member::{KnownMember, MemberReport, MemberState, Membership};
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;

/// What is known of an ensemble.
#[derive(Debug, Clone, Copy)]
pub struct EnsembleSight<'a> {
    /// The ensemble.
    pub ensemble: &'a Ensemble,
    /// Its members, as they were recorded last.
    pub members: &'a EnsembleMembers,
    /// By node that has a member: what is heard of it. A node that is absent is gone for good.
    pub nodes: &'a BTreeMap<NodeName, MemberNode<'a>>,
    /// Whether somebody has stopped all changes.
    pub is_stopped: bool,
    /// Since when the control plane listens without a break: silence before that says nothing.
    pub listening_since: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// A node that has a member.
#[derive(Debug, Clone, Copy)]
pub struct MemberNode<'a> {
    /// Since when it is unreachable; `None` if it is not.
    pub unreachable_since: Option<Timestamp>,
    /// Whether it is not heard of at the moment, and may be again before it is unreachable.
    pub is_suspect: bool,
    /// Whether it does not accept its orders, by its own word.
    pub refuses_orders: bool,
    /// What it reported last of its member.
    pub known: Option<&'a KnownMember>,
}

/// What is decided on an ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnsembleDecision {
    /// Its members as they are to be recorded.
    pub members: EnsembleMembers,
    /// The change that began, or what is waited for.
    pub step: EnsembleStep,
    /// What is told of it.
    pub events: Vec<EventDraft>,
    /// When it is to be decided again, if nothing changes until then.
    pub wake: Option<Timestamp>,
}

/// The change that began, or what is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnsembleStep {
    /// Nothing is to be changed: somebody has stopped it.
    Stopped,
    /// Of members that vote.
    Quorum(QuorumStep),
    /// Of a primary and its replicas.
    Primary(PrimaryStep),
    /// Of members that are independent of each other.
    Independent(IndependentStep),
}

impl EnsembleSight<'_> {
    /// The members as they are to be recorded now. What was written is decided on again, until nothing changes any more.
    #[must_use]
    pub fn decide(&self, places: &CandidateNodes) -> EnsembleDecision {
        if self.is_stopped || self.ensemble.mode == EnsembleMode::Unmanaged {
            let mut members = EnsembleMembers { change: None, ..self.members.clone() };
            self.note_quorum(&mut members);
            // Who else is in the store is what a person needs to know who takes it over.
            self.recognize(&mut members);
            let events = foreign::events(self.members, &members);
            return EnsembleDecision { members, step: EnsembleStep::Stopped, events, wake: None };
        }
        match &self.ensemble.service {
            EnsembleService::Etcd(_) | EnsembleService::Ceph(_) => self.decide_on_voters(places),
            EnsembleService::Redis(redis) => self.decide_on_instances(redis, places),
            EnsembleService::Independent(_) => self.decide_on_independents(places),
        }
    }

    fn decide_on_voters(&self, places: &CandidateNodes) -> EnsembleDecision {
        let mut members = self.members.clone();
        self.recognize(&mut members);
        self.advance(&mut members);
        self.note_quorum(&mut members);
        members.refused.retain(|_, refused| refused.until > self.now);
        replace::withdraw(&mut members);
        let voters = self.without_envoy(&members, self.voters(&members));
        let places = with_snapshot(without_refusing(places, &members), &members);
        let places = replace::leaving(places, &members, &voters);
        let spec = QuorumSpec { others: foreign::others(&members), ..QuorumSpec::of(self.ensemble) };
        let step = quorum::next_step(&spec, &places, &voters, self.now);
        let step = replace::named(step, &members);
        match &step {
            QuorumStep::Add(node) => {
                self.add(&mut members, node);
                replace::release(&mut members);
            }
            QuorumStep::Remove(number, reason) => {
                self.note_refusal(&mut members, *number, *reason);
                // Where another one joins first, that has its place already.
                if *reason == RemovalReason::Replaced && spec.replaces == ReplaceOrder::RemoveFirst {
                    let until = self.now.plus(self.ensemble.join_within);
                    let placed = replace::placed(&voters);
                    let silent = voters.get(number).filter(|voter| voter.state != VoterState::Working);
                    if let Some(voter) = silent {
                        replace::note(&mut members, (&places, &placed), voter.node.clone(), until);
                    }
                }
                remove(&mut members, *number, *reason, self.now);
            }
            QuorumStep::Rest | QuorumStep::Wait(_) => {}
        }
        if let Some(node) = self.envoy(&members, &step, (&places, &voters)) {
            self.add(&mut members, node);
        }
        let of_restart = self.roll(&mut members, |members| self.next_voter(members, &step));
        let change = self.foreign_removal(&members).or_else(|| self.change(&members));
        let change = self.after_leftovers(&members, change);
        members.change = change.or_else(|| self.transfer(&members));
        let of_snapshots = self.snapshot(&mut members);
        let events =
            events(self.members, &members).into_iter().chain(of_restart).chain(of_snapshots).collect();
        let wake = self.wake(&members);
        EnsembleDecision { members, step: EnsembleStep::Quorum(step), events, wake }
    }

    /// The members as the placement sees them: without those that the store does not know any more.
    #[must_use]
    pub fn voters(&self, members: &EnsembleMembers) -> Voters {
        let quorum_since = members.quorum_since.unwrap_or(Timestamp::EPOCH);
        let voter = |(number, member): (&MemberNumber, &Member)| {
            let state = match member.phase {
                MemberPhase::Preparing if self.is_refused(*number, member) => VoterState::Refused,
                MemberPhase::Preparing | MemberPhase::Adding | MemberPhase::Joining(_) => {
                    VoterState::Joining { since: self.heard_since(member.since) }
                }
                // Whether it has begun to serve is known on its node alone: until that is heard, no other one may be the first.
                MemberPhase::Bootstrapping if self.is_out_of_contact(member) => {
                    VoterState::Joining { since: self.now }
                }
                MemberPhase::Bootstrapping => VoterState::Joining { since: self.heard_since(member.since) },
                MemberPhase::Voting => match self.silent_since(*number, member) {
                    Some(_) if self.is_at_work(*number, member) => VoterState::Silent { since: self.now },
                    Some(since) if self.nodes.contains_key(&member.node) => {
                        let since = since.max(quorum_since);
                        VoterState::Silent {
                            since: replace::silent_since(self.ensemble, members, *number, since),
                        }
                    }
                    Some(since) => VoterState::Silent { since },
                    None => VoterState::Working,
                },
                MemberPhase::Leaving(_) => VoterState::Leaving,
                MemberPhase::Serving | MemberPhase::Removed(_) => return None,
            };
            Some((*number, Voter { node: member.node.clone(), state }))
        };
        members.members.iter().filter_map(voter).collect()
    }

    /// Notes since when a quorum of the members works, as far as is known; where they do not vote, since when any of them does. Who was away while
    /// none did has not failed on its own, and gets its time from then on; what was reported before an outage is no sign that a quorum worked
    /// meanwhile.
    fn note_quorum(&self, members: &mut EnsembleMembers) {
        let votes = members.service.has_voters();
        let phase = if votes { MemberPhase::Voting } else { MemberPhase::Serving };
        let serving = members.members.iter().filter(|(_, member)| member.phase == phase);
        let others = foreign::others(members);
        let needed = match votes {
            true => quorum::quorum(serving.clone().count().saturating_add(others.all())),
            false => 1,
        };
        // One that is not heard of for a moment works as before.
        let works = |(number, member): &(&MemberNumber, &Member)| {
            let is_working = |known: &KnownMember| known.report.state == MemberState::Working;
            !self.is_out_of_contact(member) && self.known(**number, member).is_some_and(is_working)
        };
        let working = serving.filter(works).count().saturating_add(others.working);
        members.quorum_since = (working >= needed).then(|| members.quorum_since.unwrap_or(self.now));
    }

    /// Whether its node says that it cannot have a member as it is.
    fn is_refused(&self, number: MemberNumber, member: &Member) -> bool {
        self.report(number, member).is_some_and(|report| report.state == MemberState::Refused)
    }

    /// Notes that a member did not come to be on its node, if that node says why: the next one is tried elsewhere first.
    fn note_refusal(&self, members: &mut EnsembleMembers, number: MemberNumber, reason: RemovalReason) {
        let has_failed = matches!(reason, RemovalReason::Refused | RemovalReason::NotJoined);
        let Some(member) = members.members.get(&number).filter(|_| has_failed) else { return };
        let Some(report) = self.report(number, member).filter(|report| !report.reason.is_empty()) else {
            return;
        };
        let refused =
            RefusedMember { reason: report.reason.clone(), until: self.now.plus(self.ensemble.join_within) };
        let node = member.node.clone();
        members.refused.insert(node, refused);
    }

    /// Since when a member that votes does not serve, as far as is known; `None` if it serves.
    fn silent_since(&self, number: MemberNumber, member: &Member) -> Option<Timestamp> {
        let Some(node) = self.nodes.get(&member.node) else { return Some(Timestamp::EPOCH) };
        if let Some(since) = node.unreachable_since {
            return Some(self.heard_since(since));
        }
        // It is no working one to count on, and none to replace either.
        if node.is_suspect {
            return Some(self.now);
        }
        match self.known(number, member) {
            Some(known) if known.report.state == MemberState::Working => None,
            Some(known) => Some(self.heard_since(known.since)),
            None => Some(self.heard_since(member.since)),
        }
    }

    fn is_out_of_contact(&self, member: &Member) -> bool {
        self.nodes.get(&member.node).is_some_and(|node| node.unreachable_since.is_some())
    }

    /// A time from which something is counted: not before the control plane listened.
    fn heard_since(&self, since: Timestamp) -> Timestamp {
        since.max(self.listening_since)
    }

    /// What a node reported last of this member, and not of another one that it had.
    fn known(&self, number: MemberNumber, member: &Member) -> Option<&KnownMember> {
        let known = self.nodes.get(&member.node)?.known?;
        let is_of = known.report.number == number && known.report.identity == self.members.identity;
        is_of.then_some(known)
    }

    /// What a member reports, if its node is reachable: what it said before it fell silent may not hold any more.
    fn report(&self, number: MemberNumber, member: &Member) -> Option<&MemberReport> {
        let node = self.nodes.get(&member.node)?;
        if node.unreachable_since.is_some() || node.is_suspect {
            return None;
        }
        self.known(number, member).map(|known| &known.report)
    }

    /// The member that carries out changes in the store, with the list of members that it has: one that votes and works, the leader if
    /// it is known, and never the one that is removed.
    fn executor(
        &self,
        members: &EnsembleMembers,
        except: Option<MemberNumber>,
    ) -> Option<(MemberNumber, &Membership)> {
        let works = |(number, member): (&MemberNumber, &Member)| {
            let serves = matches!(member.phase, MemberPhase::Voting | MemberPhase::Leaving(_));
            if !serves || Some(*number) == except {
                return None;
            }
            let report =
                self.report(*number, member).filter(|report| report.state == MemberState::Working)?;
            let leaves = member.phase != MemberPhase::Voting;
            Some((leaves, *number, report.membership.as_ref()?))
        };
        // One that is to leave, too, if no other one works.
        let working = members.members.iter().filter_map(works);
        let best = working.min_by_key(|(leaves, number, list)| (*leaves, !list.is_leader, *number));
        best.map(|(_, number, list)| (number, list)).or_else(|| self.outsider(members, except))
    }

    fn add(&self, members: &mut EnsembleMembers, node: &NodeName) {
        members.last = members.last.next();
        let member = Member {
            node: node.clone(),
            phase: MemberPhase::Preparing,
            since: self.now,
            store_id: None,
            peer_url: String::new(),
        };
        members.members.insert(members.last, member);
    }

    /// When a time that is waited for is over.
    fn wake(&self, members: &EnsembleMembers) -> Option<Timestamp> {
        let due = |voter: Voter| match voter.state {
            VoterState::Joining { since } => Some(since.plus(self.ensemble.join_within)),
            VoterState::Silent { since } => Some(since.plus(self.ensemble.failover_after)),
            VoterState::Refused | VoterState::Working | VoterState::Leaving => None,
        };
        let refused = members.refused.values().map(|refused| refused.until);
        let uncounted = members
            .members
            .iter()
            .filter_map(|(number, member)| self.uncounted_from(members, *number, member));
        let due = self.voters(members).into_values().filter_map(due).chain(refused).chain(uncounted);
        due.chain(self.snapshot_wake(members)).filter(|at| *at > self.now).min()
    }
}

/// A member that the store never knew is only cleaned up; of others the store is told first.
fn remove(members: &mut EnsembleMembers, number: MemberNumber, reason: RemovalReason, now: Timestamp) {
    if let Some(member) = members.members.get_mut(&number) {
        member.phase = match member.phase {
            MemberPhase::Preparing => MemberPhase::Removed(reason),
            MemberPhase::Bootstrapping
            | MemberPhase::Adding
            | MemberPhase::Joining(_)
            | MemberPhase::Voting
            | MemberPhase::Serving
            | MemberPhase::Leaving(_)
            | MemberPhase::Removed(_) => MemberPhase::Leaving(reason),
        };
        member.since = now;
    }
}

/// What changed of the members.
fn events(before: &EnsembleMembers, after: &EnsembleMembers) -> Vec<EventDraft> {
    let mut numbers: Vec<&MemberNumber> = before.members.keys().chain(after.members.keys()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let told = |number: &MemberNumber| {
        let states = [before, after].map(|of| of.members.get(number).map(|member| member.phase.as_str()));
        let [former, present] = states;
        if former == present {
            return None;
        }
        let member = after.members.get(number).or_else(|| before.members.get(number))?;
        let why = match &member.phase {
            MemberPhase::Leaving(reason) | MemberPhase::Removed(reason) => format!(": {}", reason.describe()),
            MemberPhase::Voting if former == Some("leaving") => {
                ": it stays until one that does not work is removed".to_string()
            }
            MemberPhase::Preparing
            | MemberPhase::Bootstrapping
            | MemberPhase::Adding
            | MemberPhase::Joining(_)
            | MemberPhase::Voting
            | MemberPhase::Serving => String::new(),
        };
        Some(EventDraft {
            kind: "ensemble.member_changed",
            subject: format!("ensemble/{}", after.ensemble),
            before: former.map(ToString::to_string),
            after: present.map(ToString::to_string),
            cause: format!("member {number} on {}{why}", member.node),
        })
    };
    numbers.into_iter().filter_map(told).chain(foreign::events(before, after)).collect()
}

#[cfg(test)]
mod tests;
