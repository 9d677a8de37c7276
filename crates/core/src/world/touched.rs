//! When what is decided on changed last: the board of each entity, the data stores of each cluster, with what a decision about it reads
//! besides.

use crate::words::counter::Revision;
use crate::words::map::{Map, MultiMap};

/// By name: revision of the last change, also in the order of the revisions.
#[derive(Debug, Clone)]
pub struct TouchIndex<K: Ord + Clone> {
    of: Map<K, Revision>,
    at: MultiMap<Revision, K>,
}

impl<K: Ord + Clone> Default for TouchIndex<K> {
    fn default() -> Self {
        Self { of: Map::default(), at: MultiMap::default() }
    }
}

impl<K: Ord + Clone> TouchIndex<K> {
    /// Revision of the last change of one; `None` for an unknown name.
    #[must_use]
    pub fn get(&self, name: &K) -> Option<Revision> {
        self.of.get(name).copied()
    }

    /// Those that changed after a revision. Costs time in proportion to these.
    pub fn after(&self, revision: Revision) -> impl Iterator<Item = &K> {
        self.at.from(revision.next())
    }

    /// Notes a change.
    pub(super) fn touch(&mut self, name: &K, revision: Revision) {
        if self.get(name) != Some(revision) {
            self.forget(name);
            self.of.insert_mut(name.clone(), revision);
            self.at.insert(revision, name);
        }
    }

    /// Forgets a removed one.
    pub(super) fn forget(&mut self, name: &K) {
        if let Some(before) = self.get(name) {
            self.of.remove_mut(name);
            self.at.remove(&before, name);
        }
    }
}
