//! Index of the newest events in memory by what they are about, to find the event that led to another one.

use alloc::string::{String, ToString};

use crate::records::event::Event;
use crate::words::counter::Sequence;
use crate::words::map::Map;

/// By subject and kind: the number of the newest event in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventIndex {
    newest: Map<(String, String), Sequence>,
}

impl EventIndex {
    /// The newest event about this subject of a kind for which `is` holds.
    #[must_use]
    pub fn newest(&self, subject: &str, is: impl Fn(&str) -> bool) -> Option<Sequence> {
        let from = (subject.to_string(), String::new());
        let about = self.newest.range(from..).take_while(|((of, _), _)| of == subject);
        about.filter(|((_, kind), _)| is(kind)).map(|(_, number)| *number).max()
    }

    /// The newest event of such a kind about a part of an object; `prefix` is the subject of the object and a slash.
    #[must_use]
    pub fn newest_below(&self, prefix: &str, is: impl Fn(&str) -> bool) -> Option<Sequence> {
        let from = (prefix.to_string(), String::new());
        let below = self.newest.range(from..).take_while(|((of, _), _)| of.starts_with(prefix));
        below.filter(|((_, kind), _)| is(kind)).map(|(_, number)| *number).max()
    }

    /// Adds an event that is newer than all others.
    pub(super) fn insert(&mut self, event: &Event) {
        self.newest.insert_mut((event.subject.clone(), event.kind.clone()), event.sequence);
    }

    /// Removes an event, unless there is a newer one of its kind.
    pub(super) fn remove(&mut self, event: &Event) {
        let key = (event.subject.clone(), event.kind.clone());
        if self.newest.get(&key) == Some(&event.sequence) {
            self.newest.remove_mut(&key);
        }
    }
}
