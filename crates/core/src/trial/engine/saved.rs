//! Keeping an engine over restarts: what changed since the last save, and an engine made of what was saved. Where it is kept
//! is up to an [`EngineStore`].

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::entity::{EngineEntity, UnsavedRecord};
use crate::records::entity::TargetSource;
use crate::records::external::due;
use crate::records::key::{Key, Record};
use crate::rollout::environment::{RolloutEnvironment, Watch};
use crate::words::name::{EntityName, Namespace};
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;
use crate::world::fold::observations::of_entity;

/// Keeps the records of an engine, such as in a file or a database. The records are entities, their progress, rollouts,
/// targets, reports about targets and answers of hooks; labels, freezes and needs are the caller's, which sets them again.
pub trait EngineStore {
    /// Why it cannot load or save.
    type Error;

    /// Returns every record that was saved and not deleted since, in any order.
    ///
    /// # Errors
    /// Its own.
    fn load(&mut self) -> Result<Vec<(Namespace, Record)>, Self::Error>;

    /// Saves all of these changes, or none of them. Each key occurs once.
    ///
    /// # Errors
    /// Its own; the engine saves the same changes again the next time.
    fn save(&mut self, changes: &[(Namespace, EngineChange)]) -> Result<(), Self::Error>;
}

/// A change of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineChange {
    /// Creates or replaces the record.
    Put(Box<Record>),
    /// Deletes the record of this key.
    Delete(Key),
}

impl EngineEntity {
    /// The entity of this name in a loaded fleet.
    pub(super) fn loaded(fleet: &Fleet, name: &EntityName, now: Timestamp) -> Option<Self> {
        let board = fleet.boards.get(name)?.clone();
        let TargetSource::External(staleness) = board.entity().source else { return None };
        let history = fleet.rollouts.iter().filter(|((entity, _), _)| entity == name);
        let history = history.map(|((_, number), kept)| (*number, (*kept.value).clone()));
        let externals = of_entity(&fleet.externals, name);
        let externals = externals.map(|(target, kept)| (target.clone(), (*kept.value).clone()));
        let mut entity = Self {
            history: history.collect(),
            externals: externals.collect(),
            staleness,
            saved_entity: Some(board.entity().clone()),
            saved_progress: Some(board.progress().clone()),
            ..Self::new(name.clone())
        };
        entity.overdue =
            entity.externals.iter().map(|(name, known)| (due(known, staleness), name.clone())).collect();
        entity.environment = RolloutEnvironment {
            watch: Watch { since: now, grace: Span::ZERO, detection: Span::ZERO },
            answers: fleet.answers.get(name).map_or_else(Arc::default, |kept| kept.value.clone()),
            ..RolloutEnvironment::default()
        };
        entity.board = board;
        Some(entity)
    }

    /// The changes since the last save.
    pub(super) fn changes(&self, name: &EntityName) -> impl Iterator<Item = EngineChange> {
        let put = |record| EngineChange::Put(Box::new(record));
        let entity = Some(self.board.entity()).filter(|entity| self.saved_entity.as_ref() != Some(entity));
        let progress =
            Some(self.board.progress()).filter(|progress| self.saved_progress.as_ref() != Some(progress));
        let entity = entity.map(|entity| put(Record::Entity(entity.clone())));
        let progress = progress.map(|progress| put(Record::Progress(name.clone(), progress.clone())));
        let others = self.unsaved.iter().map(|unsaved| self.change(name, unsaved));
        entity.into_iter().chain(progress).chain(others)
    }

    /// The change of one record: a deletion if there is none any more.
    fn change(&self, name: &EntityName, unsaved: &UnsavedRecord) -> EngineChange {
        let (key, record) = match unsaved {
            UnsavedRecord::Rollout(number) => {
                let rollout = self.history.get(number).cloned();
                let record = rollout.map(|rollout| Record::Rollout(name.clone(), rollout));
                (Key::Rollout(name.clone(), *number), record)
            }
            UnsavedRecord::Target(target) => {
                let state = self.board.target(target).and_then(|target| target.state).cloned();
                let record = state.map(|state| Record::Target(name.clone(), target.clone(), state));
                (Key::Target(name.clone(), target.clone()), record)
            }
            UnsavedRecord::External(target) => {
                let external = self.externals.get(target).cloned();
                let record =
                    external.map(|known| Record::ExternalTarget(name.clone(), target.clone(), known));
                (Key::ExternalTarget(name.clone(), target.clone()), record)
            }
            UnsavedRecord::Answers => {
                let record = Record::HookAnswers(name.clone(), (*self.environment.answers).clone());
                (Key::HookAnswers(name.clone()), Some(record))
            }
        };
        record.map_or(EngineChange::Delete(key), |record| EngineChange::Put(Box::new(record)))
    }

    pub(super) fn saved(&mut self) {
        self.unsaved.clear();
        self.saved_entity = Some(self.board.entity().clone());
        self.saved_progress = Some(self.board.progress().clone());
    }
}
