//! Index of runs: by when they ended, those that are rolled back while no run undoes them, and those in progress by node.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::words::map::{Map, MultiMap, Set};
use crate::words::name::{EntityName, NodeName};
use crate::words::time::Timestamp;

/// Runs by what is to happen with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunIndex {
    ended: Map<EntityName, Timestamp>,
    by_end: Set<(Timestamp, EntityName)>,
    to_undo: Set<EntityName>,
    open: Map<EntityName, Arc<BTreeSet<NodeName>>>,
    open_on: MultiMap<NodeName, EntityName>,
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

    /// Whether this is a run that has not ended.
    #[must_use]
    pub fn is_open(&self, name: &EntityName) -> bool {
        self.open.contains_key(name)
    }

    /// The runs that have a node and have not ended.
    pub fn open_on(&self, node: &NodeName) -> impl Iterator<Item = &EntityName> {
        self.open_on.get(node)
    }

    /// Sets the nodes of a run; `None` for one that ended, or is gone. Answers the nodes that it has no longer.
    pub(super) fn set_open(
        &mut self,
        name: &EntityName,
        nodes: Option<Arc<BTreeSet<NodeName>>>,
    ) -> Vec<NodeName> {
        let before = self.open.get(name).cloned().unwrap_or_default();
        let now = nodes.clone().unwrap_or_default();
        if before == now {
            return Vec::new();
        }
        let left: Vec<NodeName> = before.difference(&now).cloned().collect();
        for node in &left {
            self.open_on.remove(node, name);
        }
        for node in now.difference(&before) {
            self.open_on.insert(node.clone(), name);
        }
        match nodes {
            Some(nodes) => self.open.insert_mut(name.clone(), nodes),
            None => drop(self.open.remove_mut(name)),
        }
        left
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
