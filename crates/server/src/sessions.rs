//! Agents' sessions with this server: held in memory, counted per node, told to the liveness decider.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::decide::liveness::Contacts;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use tokio::sync::watch;

/// All sessions of this server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sessions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    // A std mutex: held for a map update, never across an await.
    contacts: Mutex<BTreeMap<Namespace, Contacts>>,
    changes: watch::Sender<u64>,
}

/// One open session; dropping it ends it.
#[derive(Debug)]
pub struct Session {
    sessions: Sessions,
    namespace: Namespace,
    node: NodeName,
}

impl Sessions {
    /// No sessions yet.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let changes = watch::Sender::new(0);
        Self(Arc::new(Shared { clock, contacts: Mutex::default(), changes }))
    }

    /// Opens a session for a node.
    #[must_use]
    pub fn open(&self, namespace: &Namespace, node: &NodeName) -> Session {
        if self.with(namespace, |contacts| contacts.opened(node)) {
            self.0.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
        Session { sessions: self.clone(), namespace: namespace.clone(), node: node.clone() }
    }

    /// Sees every opening and closing that may matter.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Lets `look` see, and settle, the contacts of a namespace.
    pub fn with<T>(&self, namespace: &Namespace, look: impl FnOnce(&mut Contacts) -> T) -> T {
        let mut all = self.0.contacts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.clock.now();
        look(all.entry(namespace.clone()).or_insert_with(|| Contacts::new(now)))
    }

    /// A leader begins: every node thought to be present must be heard from, or found silent.
    pub fn expect_all(&self, world: &World) {
        for (namespace, fleet) in &world.fleets {
            self.with(namespace, |contacts| contacts.expect_all(fleet));
        }
    }

    /// How many nodes hold a session with this server.
    #[must_use]
    pub fn count(&self) -> usize {
        let all = self.0.contacts.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().map(Contacts::connected).sum()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let now = self.sessions.0.clock.now();
        if self.sessions.with(&self.namespace, |contacts| contacts.closed(&self.node, now)) {
            self.sessions.0.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}
