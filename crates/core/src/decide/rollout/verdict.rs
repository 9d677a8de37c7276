//! The verdict of the rollout decider: the next writes.

use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::{Key, Record};
use crate::records::not_runnable::NotRunnable;
use crate::records::progress::Progress;
use crate::records::rollout::Rollout;
use crate::records::target::TargetState;
use crate::rollout::hook_question::HookQuestion;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::{EntityName, TargetName};
use crate::words::time::Timestamp;

/// Most targets written in one transaction with the rollout: with two events each it is well below the store's limit.
const CAUSES: usize = 16;

/// The records to write, in this order: rollouts, progress, targets. Any prefix of them is safe to commit
/// alone; the next pass continues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutVerdict {
    /// Rollouts that started or changed, oldest first.
    pub rollouts: Vec<Rollout>,
    /// The entity's progress, if it changed.
    pub progress: Option<Progress>,
    /// Events about rollouts and progress; they belong in the same transaction.
    pub events: Vec<OrderedEvent>,
    /// Targets that changed: those that free capacity first, those that use it last.
    pub targets: Vec<TargetChange>,
    /// Questions to the policy's hooks, so that a later decision can continue. Never written.
    pub questions: Vec<HookQuestion>,
    /// Time to decide again even if nothing changes.
    pub wake: Option<Timestamp>,
}

impl RolloutVerdict {
    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rollouts.is_empty() && self.progress.is_none() && self.targets.is_empty()
    }

    /// This verdict about `entity` as changesets: the rollout's own records and events first, with the targets whose
    /// changes they follow from, then each other target's.
    #[must_use]
    pub fn into_verdict(mut self, entity: &EntityName) -> Verdict {
        let rollouts =
            self.rollouts.drain(..).map(|rollout| Write::put(Record::Rollout(entity.clone(), rollout)));
        let progress =
            self.progress.take().map(|progress| Write::put(Record::Progress(entity.clone(), progress)));
        let writes: Vec<Write> = rollouts.chain(progress).collect();
        let (wake, is_empty) = (self.wake, writes.is_empty());
        let causes = if is_empty { Vec::new() } else { self.take_causes() };
        let mut head = Changeset { writes, events: Vec::new() };
        let mut events = self.events;
        for cause in causes {
            events.extend(cause.events.iter().cloned());
            head.writes.extend(cause.writes(entity));
        }
        events.sort_by_key(|ordered| ordered.position);
        head.events = events.into_iter().map(|ordered| ordered.event).collect();
        let targets = self.targets.into_iter().map(|change| {
            let writes = change.writes(entity);
            Changeset { writes, events: change.events.into_iter().map(|ordered| ordered.event).collect() }
        });
        let head = (!is_empty).then_some(head);
        Verdict { changesets: head.into_iter().chain(targets).collect(), wake }
    }

    /// Removes the targets that changed before the rollout did, in that order and at most [`CAUSES`]. One that uses
    /// capacity is among them only if all that free capacity are.
    fn take_causes(&mut self) -> Vec<TargetChange> {
        let Some(last) = self.events.last().map(|ordered| ordered.position) else { return Vec::new() };
        let position = |change: &TargetChange| change.events.first().map(|ordered| ordered.position);
        let is_cause = |change: &TargetChange| position(change).is_some_and(|position| position < last);
        let targets = core::mem::take(&mut self.targets);
        let (mut causes, left): (Vec<_>, Vec<_>) = targets.into_iter().partition(is_cause);
        causes.sort_by_key(|change| (change.uses_capacity(), position(change)));
        let frees = |change: &TargetChange| !change.uses_capacity();
        let most = if left.iter().any(frees) {
            causes.iter().filter(|change| frees(change)).count()
        } else {
            CAUSES
        };
        self.targets = causes.split_off(causes.len().min(most).min(CAUSES));
        self.targets.extend(left);
        self.targets.sort_by(|one, other| {
            (one.uses_capacity(), &one.target).cmp(&(other.uses_capacity(), &other.target))
        });
        causes
    }
}

impl TargetChange {
    /// Whether the target is in flight now.
    pub(super) fn uses_capacity(&self) -> bool {
        self.state.as_ref().is_some_and(TargetState::is_in_flight)
    }

    fn writes(&self, entity: &EntityName) -> Vec<Write> {
        let target = match &self.state {
            Some(state) => Write::put(Record::Target(entity.clone(), self.target.clone(), state.clone())),
            None => Write::delete(Key::Target(entity.clone(), self.target.clone())),
        };
        let stopped = self.stopped.clone().map(|mark| Write::put(Record::NotRunnable(mark)));
        [target].into_iter().chain(stopped).collect()
    }
}

/// The change of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetChange {
    /// Name of the target.
    pub target: TargetName,
    /// The assignment and its outcome; `None` removes the record.
    pub state: Option<TargetState>,
    /// That its node begins no other run, because this one failed there.
    pub stopped: Option<NotRunnable>,
    /// Events about the change; they belong in the same transaction.
    pub events: Vec<OrderedEvent>,
}

/// An event with its position in the order in which the events of a verdict were decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedEvent {
    /// Position among all events of the verdict, from 1.
    pub position: usize,
    /// The event.
    pub event: EventDraft,
}
