//! How the members that are recorded follow what is reported: a member is prepared, added, joins, votes, leaves and is forgotten, each
//! once somebody who saw it says so.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::{EnsembleSight, foreign};
use crate::decide::placement::quorum::{VoterState, quorum};
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, RemovalReason};
use crate::records::member::{MemberState, Membership, store_name};
use crate::records::probes::StoreMember;
use crate::words::counter::MemberNumber;
use crate::words::time::{Span, Timestamp};

/// Most ids of former members that are kept, the latest: an older list than that is in no report.
const FORMER_IDS: usize = 64;

/// Time after which no list of members is from before a member voted: agents report a change within seconds.
const SETTLED: Span = Span::from_secs(60);

impl EnsembleSight<'_> {
    /// Takes each member as far as what is reported of it goes.
    pub(super) fn advance(&self, members: &mut EnsembleMembers) {
        let numbers: Vec<MemberNumber> = members.members.keys().copied().collect();
        for number in numbers {
            while let Some(member) = members.members.get(&number) {
                let next = match self.after(members, number, member) {
                    Some(Advance::To(next)) => next,
                    Some(Advance::Forgotten) => {
                        members.members.remove(&number);
                        break;
                    }
                    None => break,
                };
                members.is_bootstrapped |= next.phase == MemberPhase::Voting;
                if let (MemberPhase::Removed(_), Some(id)) = (&next.phase, &next.store_id) {
                    members.former_ids.push(id.clone());
                }
                members.members.insert(number, next);
            }
        }
        let older = members.former_ids.len().saturating_sub(FORMER_IDS);
        members.former_ids.drain(..older);
    }

    /// What comes after the phase that a member is in; `None` while nobody saw it.
    fn after(&self, members: &EnsembleMembers, number: MemberNumber, member: &Member) -> Option<Advance> {
        let report = self.report(number, member);
        let state = report.map(|report| report.state);
        match &member.phase {
            MemberPhase::Preparing => {
                let ready = report.filter(|report| report.state == MemberState::Prepared)?;
                if members.adoption.is_some() {
                    return self.joins_adopted(members, member, &ready.peer_url);
                }
                let phase =
                    if founds(members, number) { MemberPhase::Bootstrapping } else { MemberPhase::Adding };
                Some(Advance::To(Member { phase, peer_url: ready.peer_url.clone(), ..member.clone() }))
            }
            // Also one that was to be withdrawn, if it serves after all.
            MemberPhase::Leaving(_) | MemberPhase::Bootstrapping
                if !members.has_store() && state == Some(MemberState::Working) =>
            {
                let working = report?;
                let id = working.membership.as_ref()?.own_id.clone();
                Some(self.votes(member, id))
            }
            MemberPhase::Adding if members.service.admits_by_itself() => {
                self.joins_by_itself(members, number, member)
            }
            MemberPhase::Adding => {
                let (_, list) = self.executor(members, None)?;
                let (id, _) = entry(members, list, &member.peer_url)?;
                let phase = MemberPhase::Joining(initial(members, list, number)?);
                Some(Advance::To(Member { phase, store_id: Some(id.clone()), ..member.clone() }))
            }
            MemberPhase::Joining(_) => {
                let id = member.store_id.clone()?;
                let (_, list) = self.executor(members, None)?;
                list.members.get(&id).filter(|entry| entry.votes)?;
                // It is listed before it has taken part in a quorum, and would count as one that does not work: the first to go.
                if state != Some(MemberState::Working) {
                    return None;
                }
                Some(self.votes(member, id))
            }
            MemberPhase::Voting if self.is_uncounted(members, number, member) => {
                Some(self.since_now(member, MemberPhase::Leaving(RemovalReason::NotCounted)))
            }
            MemberPhase::Bootstrapping | MemberPhase::Voting | MemberPhase::Serving => None,
            MemberPhase::Leaving(reason) => {
                let phase = if self.is_out(members, number, member) {
                    MemberPhase::Removed(*reason)
                } else if self.is_needed(members, number, member) {
                    MemberPhase::Voting
                } else {
                    return None;
                };
                Some(self.since_now(member, phase))
            }
            MemberPhase::Removed(reason) => self.after_removal(members, (number, member), *reason),
        }
    }

    /// What becomes of one that is removed.
    fn after_removal(
        &self,
        members: &EnsembleMembers,
        (number, member): (MemberNumber, &Member),
        reason: RemovalReason,
    ) -> Option<Advance> {
        // Its node heard too late that it was withdrawn, and it was let in: it serves until the store does not count it any more.
        if self.was_let_in(members, number, member) || self.may_be_let_in(members, number, member) {
            return Some(self.since_now(member, MemberPhase::Leaving(reason)));
        }
        let has_left = self.report(number, member).is_some_and(|report| report.state == MemberState::Left);
        let is_clean = has_left || !self.nodes.contains_key(&member.node);
        let is_out = !self.is_listed(members, number, member);
        (is_clean && is_out && !self.may_be_added(members, member)).then_some(Advance::Forgotten)
    }

    /// A member is added to the store that was adopted, once that was read; never in the place of one of its members.
    fn joins_adopted(&self, members: &EnsembleMembers, member: &Member, peer_url: &str) -> Option<Advance> {
        let (_, list) = self.executor(members, None)?;
        let is_new = list.members.values().all(|entry| entry.address.as_deref() != Some(peer_url));
        let next = Member { phase: MemberPhase::Adding, peer_url: peer_url.into(), ..member.clone() };
        (is_new && self.takes_another(members)).then_some(Advance::To(next))
    }

    /// A member joins that nobody adds: it is told of those that the store has.
    fn joins_by_itself(
        &self,
        members: &EnsembleMembers,
        number: MemberNumber,
        member: &Member,
    ) -> Option<Advance> {
        let (_, list) = self.executor(members, None)?;
        let mut all = initial(members, list, number)?;
        all.insert(number, member.peer_url.clone());
        let store_id = Some(store_name(&members.ensemble, number));
        Some(Advance::To(Member { phase: MemberPhase::Joining(all), store_id, ..member.clone() }))
    }

    fn votes(&self, member: &Member, id: String) -> Advance {
        let member = Member { store_id: Some(id), ..member.clone() };
        self.since_now(&member, MemberPhase::Voting)
    }

    fn since_now(&self, member: &Member, phase: MemberPhase) -> Advance {
        Advance::To(Member { phase, since: self.now, ..member.clone() })
    }

    /// Whether a member that was to leave works and votes, and those that would be left are no quorum any more: the store refuses to remove
    /// it, and one that does not work has to be removed before it.
    fn is_needed(&self, members: &EnsembleMembers, number: MemberNumber, member: &Member) -> bool {
        let works = self.report(number, member).is_some_and(|report| report.state == MemberState::Working);
        let Some((_, list)) = self.executor(members, Some(number)).filter(|_| works) else { return false };
        let id = member.store_id.as_ref();
        let votes = id.and_then(|id| list.members.get(id)).is_some_and(|entry| entry.votes);
        let voters = list.members.values().filter(|entry| entry.votes).count();
        let states = self.voters(members).into_values();
        let working = states.filter(|voter| voter.state == VoterState::Working).count();
        let working = working.saturating_add(foreign::others(members).working);
        votes && working < quorum(voters.saturating_sub(1))
    }

    /// Whether the store does not count a member that voted: somebody else removed it, or founded the store anew from one that was left. All
    /// members that work say so, and it has voted for so long that none of their lists is from before that. It does not follow that it
    /// is out: one of them is asked to make sure.
    fn is_uncounted(&self, members: &EnsembleMembers, number: MemberNumber, member: &Member) -> bool {
        self.uncounted_from(members, number, member).is_some_and(|from| from <= self.now)
    }

    /// When it follows that a member is not counted, if nobody says otherwise until then; `None` while somebody does.
    pub(super) fn uncounted_from(
        &self,
        members: &EnsembleMembers,
        number: MemberNumber,
        member: &Member,
    ) -> Option<Timestamp> {
        let id = member.store_id.as_ref().filter(|_| member.phase == MemberPhase::Voting)?;
        let voting = members.members.iter().filter(|(_, other)| other.phase == MemberPhase::Voting);
        let mut lists =
            voting.filter_map(|(of, other)| self.report(*of, other)?.membership.as_ref()).peekable();
        let own = self.report(number, member).and_then(|report| report.membership.as_ref());
        let is_missing =
            own.is_none() && lists.peek().is_some() && lists.all(|list| !list.members.contains_key(id));
        is_missing.then(|| self.heard_since(member.since).plus(SETTLED))
    }

    /// Whether the store does not know a member that leaves: one that was ordered to remove it says so, and nothing else does; or it is the
    /// first of an ensemble that never served, and its own node says that it has gone, or the node is gone for good.
    fn is_out(&self, members: &EnsembleMembers, number: MemberNumber, member: &Member) -> bool {
        if !members.has_store() {
            let state = self.report(number, member).map(|report| report.state);
            return state == Some(MemberState::Left) || !self.nodes.contains_key(&member.node);
        }
        if self.was_let_in(members, number, member) || self.may_be_let_in(members, number, member) {
            return false;
        }
        // Of a store that was adopted, also one that does not serve reads through others.
        let is_able = |other: &Member| other.phase == MemberPhase::Voting || members.adoption.is_some();
        let others = members.members.iter().filter(|(_, other)| is_able(other));
        let mut reports = others.filter_map(|(other, of)| self.report(*other, of));
        reports.any(|report| report.removed == Some(number))
    }

    /// Whether the store has a member that is to leave, and takes whoever runs, whatever was said of its removal before.
    fn was_let_in(&self, members: &EnsembleMembers, number: MemberNumber, member: &Member) -> bool {
        members.is_bootstrapped
            && members.service.admits_by_itself()
            && (self.is_listed(members, number, member) || self.lists_itself(number, member))
    }

    /// Whether a member that is heard of says itself that the store has it: the lists of others may be older.
    fn lists_itself(&self, number: MemberNumber, member: &Member) -> bool {
        let list = self.report(number, member).and_then(|report| report.membership.as_ref());
        list.zip(member.store_id.as_ref()).is_some_and(|(list, id)| list.members.contains_key(id))
    }

    /// Whether such a store may have taken a member since it was removed, which goes on until it is told otherwise: nobody is heard of who could say.
    fn may_be_let_in(&self, members: &EnsembleMembers, number: MemberNumber, member: &Member) -> bool {
        let has_left = self.report(number, member).is_some_and(|report| report.state == MemberState::Left);
        members.is_bootstrapped
            && members.service.admits_by_itself()
            && self.nodes.contains_key(&member.node)
            && !has_left
            && self.executor(members, Some(number)).is_none()
    }

    /// Whether somebody who has heard nothing of its removal may still add a member that was never in the store, as far as is known.
    fn may_be_added(&self, members: &EnsembleMembers, member: &Member) -> bool {
        let was_to_be_added = member.store_id.is_none() && !member.peer_url.is_empty();
        let is_unheard = |(number, other): (&MemberNumber, &Member)| {
            other.store_id.is_some()
                && self.nodes.contains_key(&other.node)
                && self.report(*number, other).is_none()
        };
        was_to_be_added && members.has_store() && members.members.iter().any(is_unheard)
    }

    /// Whether the store has a member that was removed, as one that works says.
    pub(super) fn is_listed(&self, members: &EnsembleMembers, number: MemberNumber, member: &Member) -> bool {
        let Some((_, list)) = self.executor(members, Some(number)) else { return false };
        let by_id = member.store_id.as_ref().is_some_and(|id| list.members.contains_key(id));
        by_id || entry(members, list, &member.peer_url).is_some()
    }
}

/// What becomes of a member.
enum Advance {
    /// It is recorded like this.
    To(Member),
    /// Nothing is left of it.
    Forgotten,
}

/// The store's entry with this URL of which it is not known yet whose it is: the id is of no member, and of none that was removed.
fn entry<'a>(
    members: &EnsembleMembers,
    list: &'a Membership,
    peer_url: &str,
) -> Option<(&'a String, &'a StoreMember)> {
    let is_of = |(id, entry): &(&String, &StoreMember)| {
        let is_known = members.members.values().any(|member| member.store_id.as_ref() == Some(*id));
        let is_foreign = members.adoption.as_ref().is_some_and(|adoption| adoption.foreign.contains_key(*id));
        let is_free = !is_known && !is_foreign && !members.former_ids.contains(*id);
        entry.address.as_deref() == Some(peer_url) && is_free
    };
    list.members.iter().find(is_of)
}

/// The members that a new one starts with, as the store has them; `None` if it has one that is not of this ensemble. A store that was adopted may:
/// who joins that reads the others itself.
fn initial(
    members: &EnsembleMembers,
    list: &Membership,
    new: MemberNumber,
) -> Option<BTreeMap<MemberNumber, String>> {
    let number = |(id, entry): (&String, &StoreMember)| {
        let url = entry.address.clone()?;
        let by_id = members.members.iter().find(|(_, member)| member.store_id.as_ref() == Some(id));
        let number = by_id.map(|(number, _)| *number);
        let is_new = || members.members.get(&new).is_some_and(|member| member.peer_url == url);
        Some((number.or_else(|| is_new().then_some(new))?, url))
    };
    let own = list.members.iter().map(number);
    if members.adoption.is_some() {
        return Some(own.flatten().collect());
    }
    own.collect()
}

/// Whether a member founds its store: none was founded, and no other member may be doing so.
fn founds(members: &EnsembleMembers, number: MemberNumber) -> bool {
    // Those that are removed before any served were never started, or have gone by their own word.
    let mut others = members.members.iter().filter(|(other, _)| **other != number);
    !members.is_bootstrapped && others.all(|(_, other)| matches!(other.phase, MemberPhase::Removed(_)))
}
