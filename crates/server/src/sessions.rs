//! Agents' sessions with this server: kept in memory, counted per node, read by the liveness decider.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::decide::liveness::Contacts;
use bellwether_core::words::name::{Namespace, NodeName, ServerName};
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use tokio::sync::{Notify, watch};

/// All sessions with this server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sessions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    // A std mutex: held for a map update, never across an await.
    contacts: Mutex<BTreeMap<Namespace, Contacts>>,
    // Waiters for a node's order: a new order wakes the sessions of that node only.
    notifies: Mutex<BTreeMap<(Namespace, NodeName), Arc<NodeNotify>>>,
    // Waiters for a change of a namespace's catalogue.
    catalogues: Mutex<BTreeMap<Namespace, watch::Sender<u64>>>,
    changes: watch::Sender<u64>,
}

/// Notifies the sessions of one node. There is one per agent: a watch channel would be five times as large.
#[derive(Debug, Default)]
struct NodeNotify {
    wakes: AtomicU64,
    woken: Notify,
}

/// An open session; dropping it closes it.
#[derive(Debug)]
pub struct Session {
    notify: Arc<NodeNotify>,
    /// Number of notifications received.
    heard: u64,
    sessions: Sessions,
    namespace: Namespace,
    node: NodeName,
}

impl Sessions {
    /// No sessions.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let changes = watch::Sender::new(0);
        Self(Arc::new(Shared {
            clock,
            contacts: Mutex::default(),
            notifies: Mutex::default(),
            catalogues: Mutex::default(),
            changes,
        }))
    }

    /// Opens a session for a node.
    #[must_use]
    pub fn open(&self, namespace: &Namespace, node: &NodeName) -> Session {
        if self.with(namespace, |contacts| contacts.opened(node)) {
            self.0.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
        let mut notifies = self.0.notifies.lock().unwrap_or_else(PoisonError::into_inner);
        let notify = notifies.entry((namespace.clone(), node.clone())).or_default().clone();
        let heard = notify.wakes.load(Ordering::Acquire);
        Session { notify, heard, sessions: self.clone(), namespace: namespace.clone(), node: node.clone() }
    }

    /// Wakes the sessions of this node.
    pub fn wake(&self, namespace: &Namespace, node: &NodeName) {
        let notifies = self.0.notifies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = notifies.get(&(namespace.clone(), node.clone())) {
            notify.wake();
        }
    }

    /// Changes whenever the namespace's catalogue does.
    #[must_use]
    pub fn catalogue(&self, namespace: &Namespace) -> watch::Receiver<u64> {
        let mut notifies = self.0.catalogues.lock().unwrap_or_else(PoisonError::into_inner);
        notifies.entry(namespace.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Wakes all waiters for this namespace's catalogue.
    pub fn wake_catalogue(&self, namespace: &Namespace) {
        let notifies = self.0.catalogues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = notifies.get(namespace) {
            notify.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Wakes all waiters: after a gap in the watch, any order may be new.
    pub fn wake_all(&self) {
        let notifies = self.0.notifies.lock().unwrap_or_else(PoisonError::into_inner);
        let catalogues = self.0.catalogues.lock().unwrap_or_else(PoisonError::into_inner);
        notifies.values().for_each(|notify| notify.wake());
        for notify in catalogues.values() {
            notify.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Changes whenever a session opens or closes that may change a presence.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Runs `look` on the contacts of a namespace, which it may change.
    pub fn with<T>(&self, namespace: &Namespace, look: impl FnOnce(&mut Contacts) -> T) -> T {
        let mut all = self.0.contacts.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.clock.now();
        look(all.entry(namespace.clone()).or_insert_with(|| Contacts::new(now)))
    }

    /// Begins a membership: each node whose presence names this server must call again, or it becomes silent.
    pub fn begin(&self, world: &World, me: &ServerName) {
        let now = self.0.clock.now();
        for (namespace, fleet) in &world.fleets {
            self.with(namespace, |contacts| contacts.begin(fleet, me, now));
        }
    }

    /// Number of nodes with a session on this server.
    #[must_use]
    pub fn count(&self) -> usize {
        let all = self.0.contacts.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().map(Contacts::connected).sum()
    }
}

impl NodeNotify {
    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Release);
        self.woken.notify_waiters();
    }
}

impl Session {
    /// Waits until the node's order may be new: until a notification since the session was opened, or since this last
    /// returned. Cancel safe: a notification that was not returned stays pending.
    pub async fn woken(&mut self) {
        loop {
            // Created before the notifications are counted, so that none in between is missed.
            let woken = self.notify.woken.notified();
            let wakes = self.notify.wakes.load(Ordering::Acquire);
            if wakes != self.heard {
                self.heard = wakes;
                return;
            }
            woken.await;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let now = self.sessions.0.clock.now();
        if self.sessions.with(&self.namespace, |contacts| contacts.closed(&self.node, now)) {
            let mut notifies = self.sessions.0.notifies.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (self.namespace.clone(), self.node.clone());
            // Two references are the map's and this session's; a third is another session's.
            if notifies.get(&key).is_some_and(|notify| Arc::strong_count(notify) <= 2) {
                notifies.remove(&key);
            }
            drop(notifies);
            self.sessions.0.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::words::time::Timestamp;
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_notification_wakes_each_session_of_the_node_once_whether_it_waits_already_or_not() {
        let sessions = Sessions::new(Clock::of_runtime(Timestamp::EPOCH));
        let (namespace, [web, db]) =
            ("default".parse().unwrap(), ["web-1", "db-1"].map(|n| n.parse().unwrap()));
        let mut first = sessions.open(&namespace, &web);
        let mut second = sessions.open(&namespace, &web);
        let mut other = sessions.open(&namespace, &db);
        assert!(first.woken().now_or_never().is_none());
        sessions.wake(&namespace, &web);
        first.woken().await;
        assert!(first.woken().now_or_never().is_none(), "it heard that one");
        let mut waits = Box::pin(first.woken());
        assert!(waits.as_mut().now_or_never().is_none());
        sessions.wake(&namespace, &web);
        waits.await;
        second.woken().await;
        assert!(second.woken().now_or_never().is_none(), "two rings before it listened are one");
        assert!(other.woken().now_or_never().is_none(), "it was not for that node");
        sessions.wake_all();
        other.woken().await;
        drop(first);
        sessions.wake(&namespace, &web);
        second.woken().await;
    }
}
