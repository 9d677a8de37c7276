//! The servers of a client, in the order in which a person gave them, and the one in use. Owns the choice; never calls a server.
//!
//! An agent chooses among the servers that it knows by an order of its own (`bellwether_core::local::servers`), which spreads
//! a fleet. A client of a person stays with the first that answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The servers of a client; clones share which one is in use.
#[derive(Debug, Clone)]
pub(super) struct Servers {
    addresses: Arc<[String]>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Index of the server in use.
    current: AtomicUsize,
    /// Whether a server has answered.
    has_answered: AtomicBool,
    /// Whether the server in use may know less than one that answered before.
    may_be_behind: AtomicBool,
}

impl Servers {
    /// At least one server; the first is in use.
    pub(super) fn new(first: String, others: Vec<String>) -> Self {
        let mut addresses = vec![first];
        for other in others {
            if !addresses.contains(&other) {
                addresses.push(other);
            }
        }
        Self { addresses: addresses.into(), state: Arc::default() }
    }

    /// Number of servers.
    pub(super) fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Address of the server in use.
    pub(super) fn current(&self) -> &str {
        let at = self.state.current.load(Ordering::Relaxed);
        self.addresses.get(at).map_or("", String::as_str)
    }

    /// Changes to the next server, unless another request has done so already.
    pub(super) fn failed(&self, server: &str) {
        let Some(at) = self.addresses.iter().position(|address| address == server) else { return };
        let next = (at + 1).checked_rem(self.addresses.len()).unwrap_or_default();
        let moved =
            self.state.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if moved && next != at && self.state.has_answered.load(Ordering::Relaxed) {
            self.state.may_be_behind.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a read must include everything that was committed before: an answer of another server may have told of it.
    pub(super) fn may_be_behind(&self) -> bool {
        self.state.may_be_behind.load(Ordering::Relaxed)
    }

    /// Records an answer, and whether it includes everything that was committed before.
    pub(super) fn answered(&self, is_current: bool) {
        self.state.has_answered.store(true, Ordering::Relaxed);
        if is_current {
            self.state.may_be_behind.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Servers {
        Servers::new("a".to_owned(), ["b", "a", "c"].map(str::to_owned).to_vec())
    }

    #[test]
    fn the_next_server_is_used_after_a_failure_and_clones_know_it() {
        let servers = three();
        let clone = servers.clone();
        assert_eq!((servers.len(), servers.current()), (3, "a"));
        servers.failed("a");
        // Two requests that failed at one server move on once.
        clone.failed("a");
        assert_eq!((servers.current(), clone.current()), ("b", "b"));
        servers.failed("b");
        servers.failed("c");
        assert_eq!(clone.current(), "a");
    }

    #[test]
    fn reads_after_a_change_of_servers_catch_up_once() {
        let servers = three();
        servers.failed("a");
        assert!(!servers.may_be_behind(), "nobody has told anything yet");
        servers.answered(false);
        servers.failed("b");
        assert!(servers.may_be_behind());
        servers.answered(false);
        assert!(servers.may_be_behind(), "a change says nothing of what is read next");
        servers.answered(true);
        assert!(!servers.may_be_behind());
    }

    #[test]
    fn a_single_server_stays_in_use() {
        let servers = Servers::new("a".to_owned(), vec![]);
        servers.answered(true);
        servers.failed("a");
        assert_eq!((servers.current(), servers.may_be_behind()), ("a", false));
    }
}
