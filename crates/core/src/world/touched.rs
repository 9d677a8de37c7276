//! When the board of each entity, or what a decision about it reads besides, changed last.

use crate::words::counter::Revision;
use crate::words::map::{Map, MultiMap};
use crate::words::name::EntityName;

/// By entity: revision of the last change, also in the order of the revisions.
#[derive(Debug, Clone, Default)]
pub struct TouchIndex {
    of: Map<EntityName, Revision>,
    at: MultiMap<Revision, EntityName>,
}

impl TouchIndex {
    /// Revision of the last change of an entity; `None` for an unknown entity.
    #[must_use]
    pub fn get(&self, entity: &EntityName) -> Option<Revision> {
        self.of.get(entity).copied()
    }

    /// The entities that changed after a revision. Costs time in proportion to these.
    pub fn after(&self, revision: Revision) -> impl Iterator<Item = &EntityName> {
        self.at.from(revision.next())
    }

    /// Notes a change.
    pub(super) fn touch(&mut self, entity: &EntityName, revision: Revision) {
        if self.get(entity) != Some(revision) {
            self.forget(entity);
            self.of.insert_mut(entity.clone(), revision);
            self.at.insert(revision, entity);
        }
    }

    /// Forgets a removed entity.
    pub(super) fn forget(&mut self, entity: &EntityName) {
        if let Some(before) = self.get(entity) {
            self.of.remove_mut(entity);
            self.at.remove(&before, entity);
        }
    }
}
