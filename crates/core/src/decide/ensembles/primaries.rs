//! The members of an ensemble with one primary that replicas follow: what is recorded of them follows what their nodes report, then the
//! next change begins. Who is to be the primary, and who follows whom, is recorded before anybody acts on it.

use alloc::string::String;

use super::candidates::without_refusing;
use super::lead::is_held;
use super::{EnsembleDecision, EnsembleSight, EnsembleStep, replace};
use crate::decide::placement::primary::{
    HistoryPosition, Instance, InstanceState, Instances, PrimarySpec, PrimaryStep, PrimaryWait, next_step,
};
use crate::decide::placement::{CandidateNode, CandidateNodes, Placed, wanted};
use crate::records::ensemble::{EnsembleService, RedisSettings};
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase, RemovalReason};
use crate::records::member::{MemberState, Replication};
use crate::records::primary::{PrimaryRecord, Promotion};
use crate::words::counter::MemberNumber;
use crate::words::time::Timestamp;

impl EnsembleSight<'_> {
    pub(super) fn decide_on_instances(
        &self,
        redis: &RedisSettings,
        places: &CandidateNodes,
    ) -> EnsembleDecision {
        let mut members = self.members.clone();
        self.advance_instances(&mut members);
        self.note_quorum(&mut members);
        members.refused.retain(|_, refused| refused.until > self.now);
        replace::withdraw(&mut members);
        let cut = core::mem::take(&mut members.lead.cut);
        members.lead.cut = cut.into_iter().filter(|number| self.stays_cut(&members, *number)).collect();
        let places = without_refusing(places, &members);
        let instances = self.instances(&members, &places);
        let spec_of = |redis: &RedisSettings, members: &EnsembleMembers| {
            PrimarySpec::of(self.ensemble, redis, members.requests.replace.keys().copied().collect())
        };
        let spec = spec_of(&self.effective(redis, &places, &members), &members);
        let places = replace::leaving_instances(places, &members, &instances, (&spec, self.now));
        let redis = self.effective(redis, &places, &members);
        let spec = spec_of(&redis, &members);
        members.service = EnsembleService::Redis(redis);
        let step = next_step(&spec, &places, (&members.lead, &instances), self.now);
        match &step {
            PrimaryStep::Add(node) => {
                self.add(&mut members, node);
                replace::release(&mut members);
            }
            PrimaryStep::Remove(number, reason) => {
                self.remove_instance(&mut members, (*number, *reason), (&places, &instances));
            }
            PrimaryStep::Follow(numbers, of) => follow(&mut members.lead, numbers, *of),
            PrimaryStep::Promote(number) => promote(&mut members.lead, *number, &instances),
            // To whom it was ordered to hand over before, it may be about to.
            PrimaryStep::HandOver(to) => drop(members.lead.handover.get_or_insert(*to)),
            PrimaryStep::Cut(number) => drop(members.lead.cut.insert(*number)),
            PrimaryStep::Rest | PrimaryStep::Wait(_) => {}
        }
        members.lead.tells_position = matches!(step, PrimaryStep::Wait(PrimaryWait::Copies(_)));
        members.lead.is_held = is_held(&step);
        let mut events = self.roll(&mut members, |members| self.next_instance(members, (&step, &instances)));
        if let Some(to) = self.successor_for_restart(&members, (&instances, &places)) {
            members.lead.handover.get_or_insert(to);
        }
        events.splice(..0, super::events(self.members, &members));
        events.extend(self.cut_off_changed(&members, &instances));
        events.extend(self.primary_held(&members, &step));
        events.extend(self.primary_changed(&members));
        let wake = self.wake_instances(&spec, &members, &instances);
        EnsembleDecision { members, step: EnsembleStep::Primary(step), events, wake }
    }

    /// A primary that is alone cannot have replicas: as many are asked for as there are to be, at most.
    pub(super) fn effective(
        &self,
        redis: &RedisSettings,
        places: &CandidateNodes,
        members: &EnsembleMembers,
    ) -> RedisSettings {
        let wanted = self.wanted_instances(places, members);
        let others = u32::try_from(wanted.saturating_sub(1)).unwrap_or(u32::MAX);
        RedisSettings { min_replicas: redis.min_replicas.min(others), ..redis.clone() }
    }

    /// How many members there are to be now.
    pub(super) fn wanted_instances(&self, places: &CandidateNodes, members: &EnsembleMembers) -> usize {
        let left = members.members.iter();
        let left = left.filter(|(_, member)| !matches!(member.phase, MemberPhase::Removed(_)));
        let placed: Placed<'_> = left.map(|(number, member)| (*number, &member.node)).collect();
        wanted(self.ensemble.size, places, &placed)
    }

    /// The members as the placement sees them: without those that are removed.
    pub(super) fn instances(&self, members: &EnsembleMembers, places: &CandidateNodes) -> Instances {
        let present =
            members.members.iter().filter(|(_, member)| !matches!(member.phase, MemberPhase::Removed(_)));
        let instance = |(number, member): (&MemberNumber, &Member)| {
            (*number, self.instance(members, (*number, member), places))
        };
        present.map(instance).collect()
    }

    fn instance(
        &self,
        members: &EnsembleMembers,
        (number, member): (MemberNumber, &Member),
        places: &CandidateNodes,
    ) -> Instance {
        let lead = &members.lead;
        let said = self.said(number, member);
        let state = self.instance_state(members, (number, member), places);
        let is_up = state == InstanceState::Up;
        let in_line = |said: &Replication| {
            let is = |history: &Option<String>| history.as_ref() == Some(&said.history);
            let continues = lead.handover == Some(number) && said.former == lead.history;
            is(&lead.history) || is(&lead.former) || continues
        };
        // Of one that was ordered to follow and is not heard of nobody knows what it got.
        let is_whole = said.is_some_and(|said| said.is_whole && in_line(said));
        // One that answers with keys of another history was started anew, and may have got them before anybody saw it.
        let has_keys = !is_whole && said.is_some_and(|said| said.keys.is_some_and(|keys| keys > 0));
        let is_unheard = !is_up && lead.follows.contains_key(&number);
        let may_have = lead.had_data.contains(&number) || is_unheard || has_keys;
        let known = self.known(number, member).and_then(|known| known.report.replication.as_ref());
        let position = |said: &Replication| HistoryPosition {
            history: said.history.clone(),
            former: said.former.clone(),
            offset: said.offset,
        };
        let nothing = || HistoryPosition { history: String::new(), former: None, offset: None };
        Instance {
            node: member.node.clone(),
            state,
            is_primary: said.is_some_and(|said| said.is_primary),
            follows: said.and_then(|said| said.follows.as_ref()).map(|url| number_of(members, url)),
            streams: match said {
                Some(said) => said.streams,
                None => self.is_streamed_to(members, member),
            },
            data: may_have.then(|| known.map_or_else(nothing, position)),
            is_whole,
            may_be_cut: self.is_given_up(members, number) && !lead.cut.contains(&number),
            blocked_since: said.filter(|said| said.cannot_store).map(|_| {
                match lead.primary == Some(number) {
                    true => self.heard_since(lead.blocked_since.unwrap_or(self.now)),
                    false => self.now,
                }
            }),
            refuses_orders: self.nodes.get(&member.node).is_some_and(|node| node.refuses_orders),
            cut_since: lead.cut_off.get(&number).map(|since| self.heard_since(*since)),
            keys: said.and_then(|said| said.keys),
        }
    }

    /// Whether somebody decided that a member is not to come back.
    fn is_given_up(&self, members: &EnsembleMembers, number: MemberNumber) -> bool {
        let member = members.members.get(&number);
        let is_gone = member.is_some_and(|member| !self.nodes.contains_key(&member.node));
        is_gone || members.requests.replace.contains_key(&number)
    }

    /// Whether one that the others let in no more stays shut out: one that is heard of again does as it is told, and others may have to wait until
    /// it has the data.
    fn stays_cut(&self, members: &EnsembleMembers, number: MemberNumber) -> bool {
        let member = members.members.get(&number);
        let is_silent = member.is_some_and(|member| self.silent_since(number, member).is_some());
        is_silent && self.is_given_up(members, number)
    }

    fn instance_state(
        &self,
        members: &EnsembleMembers,
        (number, member): (MemberNumber, &Member),
        places: &CandidateNodes,
    ) -> InstanceState {
        if member.phase != MemberPhase::Serving {
            let is_elsewhere = || places.values().any(CandidateNode::is_eligible);
            let is_refused = member.phase == MemberPhase::Preparing && self.is_refused(number, member);
            let since = match is_refused && is_elsewhere() {
                true => Timestamp::EPOCH,
                false => self.heard_since(member.since),
            };
            return InstanceState::Joining { since };
        }
        let lead = &members.lead;
        if let Some(since) = self.silent_since(number, member) {
            let has_ended = self.report(number, member).is_some_and(|report| report.has_ended);
            let was_primary = lead.primary == Some(number) && lead.promotion.is_none();
            let is_gone = !self.nodes.contains_key(&member.node);
            let any_since = members.quorum_since.filter(|_| !is_gone).unwrap_or(Timestamp::EPOCH);
            let since = since.max(any_since);
            return if has_ended && was_primary {
                InstanceState::Ended
            } else {
                InstanceState::Silent { since }
            };
        }
        let said = self.said(number, member);
        let Some(said) = said.filter(|_| lead.primary == Some(number)) else {
            // Its agent says that it works, and has said nothing else yet.
            return if said.is_some() {
                InstanceState::Up
            } else {
                InstanceState::Silent { since: self.now }
            };
        };
        let waits = InstanceState::Joining { since: self.now };
        match &lead.promotion {
            Some(promotion) => {
                let may = promotion.history.as_ref().is_none_or(|history| *history == said.history);
                if may && !said.is_primary { waits } else { InstanceState::Restarted }
            }
            None if said.is_primary && lead.history.as_ref() == Some(&said.history) => InstanceState::Up,
            None => {
                let to = lead.handover.and_then(|to| Some((to, members.members.get(&to)?)));
                let hands_over = to.is_some_and(|(to, member)| {
                    // One that has taken over, and was started anew before it was seen, has another history.
                    let is_whole = |of: &Replication| lead.history.as_ref() == Some(&of.history);
                    let may = self.said(to, member).is_none_or(is_whole);
                    may && said.follows.as_ref() == Some(&member.peer_url)
                });
                if hands_over { waits } else { InstanceState::Restarted }
            }
        }
    }

    /// What a member that works says of its replication.
    pub(super) fn said(&self, number: MemberNumber, member: &Member) -> Option<&Replication> {
        let report = self.report(number, member).filter(|report| report.state == MemberState::Working)?;
        report.replication.as_ref()
    }

    /// Whether the primary sends data to a member.
    fn is_streamed_to(&self, members: &EnsembleMembers, member: &Member) -> bool {
        let primary = members.lead.primary.and_then(|number| Some((number, members.members.get(&number)?)));
        let said = primary.and_then(|(number, primary)| self.said(number, primary));
        said.is_some_and(|said| said.replicas.contains(&member.peer_url))
    }

    /// Takes each member as far as what is reported of it goes.
    fn advance_instances(&self, members: &mut EnsembleMembers) {
        self.advance_serving(members);
        self.note_lead(members);
    }

    fn remove_instance(
        &self,
        members: &mut EnsembleMembers,
        (number, reason): (MemberNumber, RemovalReason),
        (places, instances): (&CandidateNodes, &Instances),
    ) {
        let reason = removal(members, number, reason);
        let silent = instances.get(&number).filter(|instance| instance.state != InstanceState::Up);
        if let Some(instance) = silent.filter(|_| reason == RemovalReason::Replaced) {
            let placed: Placed<'_> = instances.iter().map(|(number, of)| (*number, &of.node)).collect();
            let until = self.now.plus(self.ensemble.join_within);
            replace::note(members, (places, &placed), instance.node.clone(), until);
        }
        self.remove_serving(members, number, reason, places);
        members.lead.follows.remove(&number);
        members.lead.had_data.remove(&number);
        members.lead.cut.remove(&number);
        members.lead.cut_off.remove(&number);
        members.lead.handover = members.lead.handover.filter(|to| *to != number);
    }

    /// When a time that is waited for is over.
    fn wake_instances(
        &self,
        spec: &PrimarySpec,
        members: &EnsembleMembers,
        instances: &Instances,
    ) -> Option<Timestamp> {
        let due = instances.iter().filter_map(|(number, instance)| match instance.state {
            InstanceState::Joining { since } => Some(since.plus(spec.join_within)),
            InstanceState::Silent { since } => Some(since.plus(spec.patience(*number))),
            InstanceState::Up | InstanceState::Restarted | InstanceState::Ended => None,
        });
        let primary = members.lead.primary.and_then(|number| Some((number, instances.get(&number)?)));
        let blocked = primary.and_then(|(number, of)| Some(of.blocked_since?.plus(spec.patience(number))));
        let cut_off =
            instances.iter().filter_map(|(number, of)| Some(of.cut_since?.plus(spec.patience(*number))));
        let refused = members.refused.values().map(|refused| refused.until);
        let quiet = members.lead.failed_over.map(|at| at.plus(spec.quiet));
        due.chain(refused).chain(quiet).chain(blocked).chain(cut_off).filter(|at| *at > self.now).min()
    }
}

/// Why a member is removed: one that is cut off leaves as from a drained node.
pub(super) fn removal(
    members: &EnsembleMembers,
    number: MemberNumber,
    reason: RemovalReason,
) -> RemovalReason {
    let is_cut = members.lead.cut_off.contains_key(&number);
    replace::reason(members, number, if is_cut { RemovalReason::CutOff } else { reason })
}

/// The member with this URL; zero, which none has, if it is none of them.
fn number_of(members: &EnsembleMembers, url: &str) -> MemberNumber {
    let found = members.members.iter().find(|(_, member)| member.peer_url == url);
    found.map_or(MemberNumber::ZERO, |(number, _)| *number)
}

fn follow(lead: &mut PrimaryRecord, numbers: &[MemberNumber], of: Option<MemberNumber>) {
    for number in numbers {
        match of {
            Some(of) => lead.follows.insert(*number, of),
            None => lead.follows.remove(number),
        };
    }
}

/// A member is to become the primary. One that takes over must have the history that it was chosen for; the first one, and the one that was
/// the primary before, have what they have.
fn promote(lead: &mut PrimaryRecord, number: MemberNumber, instances: &Instances) {
    let is_other = lead.primary.is_some_and(|primary| primary != number);
    let data = instances.get(&number).and_then(|instance| instance.data.as_ref()).filter(|_| is_other);
    lead.promotion = Some(Promotion {
        history: data.map(|data| data.history.clone()),
        is_failover: is_other,
        named_in: None,
    });
    lead.primary = Some(number);
    lead.handover = None;
    lead.follows.remove(&number);
    lead.cut_off.clear();
}
