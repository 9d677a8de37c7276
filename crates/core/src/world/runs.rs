//! Index of runs: by when they ended, and those that are rolled back while no run undoes them.

use crate::words::map::{Map, Set};
use crate::words::name::EntityName;
use crate::words::time::Timestamp;

/// Runs that have ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunIndex {
    ended: Map<EntityName, Timestamp>,
    by_end: Set<(Timestamp, EntityName)>,
    to_undo: Set<EntityName>,
}

impl RunIndex {
    /// The runs that have ended, the one that ended first before the others.
    pub fn by_end(&self) -> impl Iterator<Item = (Timestamp, &EntityName)> {
        self.by_end.iter().map(|(at, name)| (*at, name))
    }

    /// A run that is rolled back, and that no run undoes.
    #[must_use]
    pub fn first_to_undo(&self) -> Option<&EntityName> {
        self.to_undo.first()
    }

    pub(super) fn set(&mut self, name: &EntityName, ended: Option<Timestamp>, is_to_undo: bool) {
        if let Some(before) = self.ended.get(name).copied().filter(|before| Some(*before) != ended) {
            self.by_end.remove_mut(&(before, name.clone()));
            self.ended.remove_mut(name);
        }
        if let Some(at) = ended.filter(|_| !self.ended.contains_key(name)) {
            self.by_end.insert_mut((at, name.clone()));
            self.ended.insert_mut(name.clone(), at);
        }
        if is_to_undo {
            self.to_undo.insert_mut(name.clone());
        } else {
            self.to_undo.remove_mut(name);
        }
    }
}
