//! The changes of an ensemble with a primary, one after the other, as if each succeeded.

use alloc::string::String;
use alloc::vec::Vec;

use super::step::{MAX_STEPS, PlannedStep};
use super::waits::{Circumstances, describe};
use crate::decide::ensembles::EnsembleSight;
use crate::decide::ensembles::primaries::removal;
use crate::decide::placement::CandidateNodes;
use crate::decide::placement::primary::{
    HistoryPosition, Instance, InstanceState, Instances, PrimarySpec, PrimaryStep, PrimaryWait, next_step,
};
use crate::records::ensemble::RedisSettings;
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::primary::PrimaryRecord;
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;

/// An ensemble as it would be after the changes so far.
struct Play<'a> {
    sight: &'a EnsembleSight<'a>,
    places: &'a CandidateNodes,
    members: &'a EnsembleMembers,
    record: PrimaryRecord,
    instances: Instances,
    last: MemberNumber,
    steps: Vec<PlannedStep>,
}

/// What an ensemble is to be.
pub(super) fn spec(sight: &EnsembleSight<'_>, redis: &RedisSettings, places: &CandidateNodes) -> PrimarySpec {
    let replaced = sight.members.requests.replace.keys().copied().collect();
    PrimarySpec::of(sight.ensemble, &sight.effective(redis, places, sight.members), replaced)
}

/// The changes until nothing is to be changed, or something is waited for that is not a change under way, with what that is.
pub(super) fn steps(
    sight: &EnsembleSight<'_>,
    redis: &RedisSettings,
    places: &CandidateNodes,
) -> (Vec<PlannedStep>, Option<String>) {
    let members = sight.members;
    let spec = spec(sight, redis, places);
    let instances = sight.instances(members, places);
    let (record, last) = (members.lead.clone(), members.last);
    let mut play = Play { sight, places, members, record, instances, last, steps: Vec::new() };
    while play.steps.len() < MAX_STEPS {
        let step = next_step(&spec, places, (&play.record, &play.instances), sight.now);
        match step {
            PrimaryStep::Rest => return (play.steps, None),
            PrimaryStep::Wait(wait) => {
                if !play.goes_on(&wait) {
                    let then = if let PrimaryWait::Silent { until, .. } = &wait {
                        Some(next_step(&spec, places, (&play.record, &play.instances), *until))
                    } else {
                        None
                    };
                    let then = if let Some(PrimaryStep::Wait(then)) = &then { Some(then) } else { None };
                    let line = describe((&wait, then), members, &play.circumstances(&spec));
                    return (play.steps, Some(line));
                }
            }
            PrimaryStep::Add(_)
            | PrimaryStep::Remove(..)
            | PrimaryStep::Follow(..)
            | PrimaryStep::Promote(_)
            | PrimaryStep::HandOver(_)
            | PrimaryStep::Cut(_) => play.make(step),
        }
    }
    (play.steps, None)
}

impl Play<'_> {
    fn circumstances(&self, spec: &PrimarySpec) -> Circumstances {
        let is_dead = |(number, instance): &(&MemberNumber, &Instance)| match instance.state {
            InstanceState::Silent { since } => since.plus(spec.patience(**number)) <= self.sight.now,
            InstanceState::Joining { .. }
            | InstanceState::Up
            | InstanceState::Restarted
            | InstanceState::Ended => false,
        };
        let dead = self.instances.iter().filter(is_dead).map(|(number, _)| *number).collect();
        Circumstances::new(self.sight, self.places, dead)
    }

    fn make(&mut self, step: PrimaryStep) {
        match step {
            PrimaryStep::Add(node) => {
                self.last = self.last.next();
                self.instances.insert(self.last, fresh(node.clone()));
                self.up(self.last);
                self.steps.push(PlannedStep::Add(self.last, node));
            }
            PrimaryStep::Remove(number, reason) => {
                if let Some(instance) = self.instances.remove(&number) {
                    let reason = removal(self.members, number, reason);
                    let reason = self.sight.cause(&instance.node, reason, self.places);
                    self.steps.push(PlannedStep::Remove(number, instance.node, reason));
                }
            }
            PrimaryStep::Follow(numbers, of) => {
                for number in numbers {
                    self.follow(number, of);
                    let node = self.node(number);
                    self.steps.extend(node.map(|node| PlannedStep::Follow(number, node, of)));
                }
            }
            PrimaryStep::Promote(number) => {
                let is_again = self.record.primary == Some(number);
                self.lead(number);
                let node = self.node(number);
                self.steps.extend(node.map(|node| PlannedStep::Promote(number, node, is_again)));
            }
            PrimaryStep::HandOver(to) => {
                let from = self.record.primary;
                self.lead(to);
                if let Some(from) = from {
                    self.follow(from, Some(to));
                }
                self.steps.extend(self.node(to).map(|node| PlannedStep::HandOver(to, node)));
            }
            PrimaryStep::Cut(number) => {
                if let Some(instance) = self.instances.get_mut(&number) {
                    (instance.streams, instance.may_be_cut) = (false, false);
                }
            }
            PrimaryStep::Rest | PrimaryStep::Wait(_) => {}
        }
    }

    /// Whether what is waited for is a change under way; then it is made.
    fn goes_on(&mut self, wait: &PrimaryWait) -> bool {
        match wait {
            PrimaryWait::Joining(number) if self.record.primary == Some(*number) => {
                self.lead(*number);
                let node = self.node(*number);
                self.steps.extend(node.map(|node| PlannedStep::Promote(*number, node, true)));
                true
            }
            PrimaryWait::Joining(number) => {
                self.up(*number);
                self.steps.extend(self.node(*number).map(|node| PlannedStep::Join(*number, node)));
                true
            }
            PrimaryWait::Copies(number) => match self.instances.get_mut(number) {
                Some(instance) => instance.data.take().is_some(),
                None => false,
            },
            PrimaryWait::Syncing { member, .. } => {
                let primary = self.record.primary;
                let Some(instance) = self.instances.get_mut(member) else { return false };
                (instance.follows, instance.streams, instance.is_whole) = (primary, true, true);
                true
            }
            PrimaryWait::Silent { .. }
            | PrimaryWait::Blocked { .. }
            | PrimaryWait::Alone { .. }
            | PrimaryWait::LeaverStreams(_)
            | PrimaryWait::StillStreams(_)
            | PrimaryWait::Quiet { .. }
            | PrimaryWait::TooFewReached { .. }
            | PrimaryWait::NoCandidate
            | PrimaryWait::OthersHaveMore(_)
            | PrimaryWait::NoSuccessor(_)
            | PrimaryWait::NoRoom { .. } => false,
        }
    }

    fn node(&self, number: MemberNumber) -> Option<NodeName> {
        self.instances.get(&number).map(|instance| instance.node.clone())
    }

    /// A member answers, and follows the primary if there is one.
    fn up(&mut self, number: MemberNumber) {
        if let Some(instance) = self.instances.get_mut(&number) {
            instance.state = InstanceState::Up;
        }
        if self.record.primary.is_some() {
            self.follow(number, self.record.primary);
        }
    }

    /// A member follows another one, and has what that has.
    fn follow(&mut self, number: MemberNumber, of: Option<MemberNumber>) {
        let data = of.and_then(|of| self.instances.get(&of)).and_then(|of| of.data.clone());
        let Some(instance) = self.instances.get_mut(&number) else { return };
        (instance.follows, instance.streams, instance.is_primary) = (of, of.is_some(), false);
        instance.cut_since = instance.cut_since.filter(|_| of.is_none());
        match (of, &mut instance.data) {
            (Some(_), _) if data.is_some() => (instance.data, instance.is_whole) = (data, true),
            // Its position stands still, and is told.
            (None, Some(data)) => drop(data.offset.get_or_insert(0)),
            (_, _) => {}
        }
    }

    fn lead(&mut self, number: MemberNumber) {
        let history = self.record.history.clone().unwrap_or_default();
        if let Some(instance) = self.instances.get_mut(&number) {
            let offset = instance.data.as_ref().and_then(|data| data.offset);
            instance.data = Some(HistoryPosition { history: history.clone(), former: None, offset });
            (instance.state, instance.is_primary, instance.is_whole) = (InstanceState::Up, true, true);
            (instance.follows, instance.streams, instance.blocked_since) = (None, false, None);
            instance.cut_since = None;
        }
        self.record.history = Some(history);
        (self.record.primary, self.record.promotion, self.record.handover) = (Some(number), None, None);
    }
}

/// A member that has just begun.
const fn fresh(node: NodeName) -> Instance {
    Instance {
        node,
        state: InstanceState::Up,
        is_primary: false,
        follows: None,
        streams: false,
        data: None,
        is_whole: false,
        may_be_cut: false,
        blocked_since: None,
        refuses_orders: false,
        cut_since: None,
        keys: None,
    }
}
