//! What a decider wants: writes with their events, in safe order, and when to look again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::decide::rollout;
use crate::records::event::EventDraft;
use crate::records::key::{Key, Record};
use crate::words::name::EntityName;
use crate::words::time::Timestamp;

/// What a decider wants done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// In order; each is committed whole, and every prefix of them is safe alone.
    pub changesets: Vec<Changeset>,
    /// When to look again even if nothing changes.
    pub wake: Option<Timestamp>,
}

/// Writes and the events that tell of them: one commit, or none of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changeset {
    /// What changes.
    pub writes: Vec<Write>,
    /// What is told about it.
    pub events: Vec<EventDraft>,
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Keep this.
    Put(Box<Record>),
    /// Forget that.
    Delete(Key),
}

impl Write {
    /// Keep this.
    #[must_use]
    pub fn put(record: Record) -> Self {
        Self::Put(Box::new(record))
    }

    /// The record it changes.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Put(record) => record.key(),
            Self::Delete(key) => key.clone(),
        }
    }
}

impl Verdict {
    /// Both verdicts, this one's atoms first; the earlier wake counts.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.changesets.extend(other.changesets);
        self.wake = [self.wake, other.wake].into_iter().flatten().min();
        self
    }
}

/// A rollout decider's verdict about `entity` as atoms: the rollout's own records and events first, then each target's.
#[must_use]
pub fn of_rollout(entity: &EntityName, verdict: rollout::RolloutVerdict) -> Verdict {
    let mut head = Changeset { writes: Vec::new(), events: verdict.events };
    head.writes.extend(
        verdict.rollouts.into_iter().map(|rollout| Write::put(Record::Rollout(entity.clone(), rollout))),
    );
    head.writes
        .extend(verdict.progress.map(|progress| Write::put(Record::Progress(entity.clone(), progress))));
    let targets = verdict.targets.into_iter().map(|change| {
        let write = match change.state {
            Some(state) => Write::put(Record::Target(entity.clone(), change.target, state)),
            None => Write::Delete(Key::Target(entity.clone(), change.target)),
        };
        Changeset { writes: alloc::vec![write], events: change.events }
    });
    let head = (!head.writes.is_empty()).then_some(head);
    Verdict { changesets: head.into_iter().chain(targets).collect(), wake: verdict.wake }
}
