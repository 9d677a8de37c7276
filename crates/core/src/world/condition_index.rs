//! Index of what is true and should not be: conditions of clusters, stores that do not work, nodes that nobody reaches. It is as long as
//! the list of troubles, not as the fleet.

use alloc::vec::Vec;

use crate::records::reaction::ConditionSubject;
use crate::words::map::Map;
use crate::words::time::Timestamp;

/// Conditions that are true, each with since when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConditionIndex {
    all: Map<(ConditionSubject, &'static str), Timestamp>,
}

impl ConditionIndex {
    /// All conditions, by subject.
    pub(super) fn all(&self) -> impl Iterator<Item = (&(ConditionSubject, &'static str), &Timestamp)> {
        self.all.iter()
    }

    /// Sets what is true of a subject; whether something changed.
    pub(super) fn set(&mut self, subject: &ConditionSubject, now: &[(&'static str, Timestamp)]) -> bool {
        let mut changed = false;
        let from = (subject.clone(), "");
        let before: Vec<_> = self
            .all
            .range(from..)
            .take_while(|((of, _), _)| of == subject)
            .map(|(key, at)| (key.clone(), *at))
            .collect();
        for (key, _) in before.iter().filter(|((_, name), _)| now.iter().all(|(other, _)| other != name)) {
            changed |= self.all.remove_mut(key);
        }
        for (name, since) in now {
            let key = (subject.clone(), *name);
            if self.all.get(&key) != Some(since) {
                self.all.insert_mut(key, *since);
                changed = true;
            }
        }
        changed
    }
}
