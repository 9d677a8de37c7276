//! The verdict of the rollout decider: the next writes.

use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::{Key, Record};
use crate::records::progress::Progress;
use crate::records::rollout::Rollout;
use crate::records::target::TargetState;
use crate::rollout::hook_question::HookQuestion;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::name::{EntityName, TargetName};
use crate::words::time::Timestamp;

/// The records to write, in this order: rollouts, progress, targets. Any prefix of them is safe to commit
/// alone; the next pass continues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutVerdict {
    /// Rollouts that started or changed, oldest first.
    pub rollouts: Vec<Rollout>,
    /// The entity's progress, if it changed.
    pub progress: Option<Progress>,
    /// Events about rollouts and progress; they belong in the same transaction.
    pub events: Vec<EventDraft>,
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

    /// This verdict about `entity` as changesets: the rollout's own records and events first, then each
    /// target's.
    #[must_use]
    pub fn into_verdict(self, entity: &EntityName) -> Verdict {
        let mut head = Changeset { writes: Vec::new(), events: self.events };
        head.writes.extend(
            self.rollouts.into_iter().map(|rollout| Write::put(Record::Rollout(entity.clone(), rollout))),
        );
        head.writes
            .extend(self.progress.map(|progress| Write::put(Record::Progress(entity.clone(), progress))));
        let targets = self.targets.into_iter().map(|change| {
            let write = match change.state {
                Some(state) => Write::put(Record::Target(entity.clone(), change.target, state)),
                None => Write::delete(Key::Target(entity.clone(), change.target)),
            };
            Changeset { writes: alloc::vec![write], events: change.events }
        });
        let head = (!head.writes.is_empty()).then_some(head);
        Verdict { changesets: head.into_iter().chain(targets).collect(), wake: self.wake }
    }
}

/// The change of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetChange {
    /// Name of the target.
    pub target: TargetName,
    /// The assignment and its outcome; `None` removes the record.
    pub state: Option<TargetState>,
    /// Events about the change; they belong in the same transaction.
    pub events: Vec<EventDraft>,
}
