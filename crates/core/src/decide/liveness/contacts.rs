//! Sessions as one server sees them: who is connected to it, and since when others are quiet. Memory only, never stored.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::decide::liveness::context::LivenessContext;
use crate::words::name::{NodeName, ServerName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Open sessions, when closed ones ended, and which nodes' stored presence may be out of step with them.
#[derive(Debug, Clone)]
pub struct Contacts {
    /// When this server began to listen; a node it has not heard since then may have called before.
    pub(super) started: Timestamp,
    pub(super) open: BTreeMap<NodeName, u32>,
    /// Nodes whose newest session is not told yet: whoever a node called last holds it.
    pub(super) untold: BTreeSet<NodeName>,
    pub(super) ended: BTreeMap<NodeName, Timestamp>,
    /// Nodes that some other server held when it went, and when this one, leading, found that.
    pub(super) orphans: BTreeMap<NodeName, Timestamp>,
    /// To be looked at now.
    pub(super) unsettled: BTreeSet<NodeName>,
    /// To be looked at then, unless something happens before: the same nodes twice, by name and by time.
    pub(super) waiting: BTreeMap<NodeName, Timestamp>,
    pub(super) due: BTreeSet<(Timestamp, NodeName)>,
}

impl Contacts {
    /// No sessions yet. Nodes count as quiet from now on only: a server that restarts has heard nobody die.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self {
            started: now,
            open: BTreeMap::new(),
            untold: BTreeSet::new(),
            ended: BTreeMap::new(),
            orphans: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            waiting: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// A session opened. Answers whether the node had none.
    pub fn opened(&mut self, node: &NodeName) -> bool {
        self.ended.remove(node);
        let count = self.open.entry(node.clone()).or_insert(0);
        *count = count.saturating_add(1);
        let first = *count == 1;
        if first {
            self.untold.insert(node.clone());
            self.unsettle(node);
        }
        first
    }

    /// A session ended. Answers whether it was the node's last.
    pub fn closed(&mut self, node: &NodeName, now: Timestamp) -> bool {
        let Some(count) = self.open.get_mut(node) else { return false };
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if last {
            self.open.remove(node);
            self.untold.remove(node);
            self.ended.insert(node.clone(), now);
            self.unsettle(node);
        }
        last
    }

    /// A server takes its place, for the first time or again: each node that it is said to hold must be heard from, or found
    /// silent. What went on while it had no place counts for nothing.
    pub fn begin(&mut self, fleet: &Fleet, me: &ServerName, now: Timestamp) {
        self.started = now;
        self.ended.clear();
        self.untold.extend(self.open.keys().cloned());
        self.due.clear();
        self.unsettled.extend(core::mem::take(&mut self.waiting).into_keys());
        self.unsettled.extend(self.open.keys().cloned());
        let mine = fleet.held.get(&Some(me.clone()));
        self.unsettled.extend(mine.into_iter().flat_map(|held| held.iter().cloned()));
    }

    /// Something happened to a node: it is looked at now.
    pub(super) fn unsettle(&mut self, node: &NodeName) {
        if let Some(due) = self.waiting.remove(node) {
            self.due.remove(&(due, node.clone()));
        }
        self.unsettled.insert(node.clone());
    }

    /// Those whose time has come are looked at now.
    pub(super) fn wake(&mut self, now: Timestamp) {
        while let Some((due, node)) = self.due.pop_first() {
            if due > now {
                self.due.insert((due, node));
                return;
            }
            self.waiting.remove(&node);
            self.unsettled.insert(node);
        }
    }

    /// When the next of those that wait is to be looked at.
    #[must_use]
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Nodes whose stored presence may be out of step and who wait for nothing, in name order.
    pub fn unsettled(&self) -> impl Iterator<Item = &NodeName> {
        self.unsettled.iter()
    }

    /// When a node without a session was last heard from, if it was by this server.
    #[must_use]
    pub fn heard_at(&self, node: &NodeName) -> Option<Timestamp> {
        self.ended.get(node).copied()
    }

    /// Whether the node opened a session that its stored presence does not tell of yet.
    #[must_use]
    pub(super) fn is_untold(&self, node: &NodeName) -> bool {
        self.untold.contains(node)
    }

    /// Whether a node has a session.
    #[must_use]
    pub fn is_connected(&self, node: &NodeName) -> bool {
        self.open.contains_key(node)
    }

    /// How many nodes have a session.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.open.len()
    }

    /// Since when a node without a session counts as quiet: since its session with this server ended; if it never had one,
    /// since its server was found gone, or since this server began, and the time to find a server again is given besides.
    #[must_use]
    pub(super) fn quiet_since(&self, node: &NodeName, watch: &LivenessContext<'_>) -> Timestamp {
        match (self.ended.get(node), self.orphans.get(node)) {
            (Some(ended), None) => *ended,
            (Some(ended), Some(found)) => (*ended).max(found.plus(watch.limits.reconnect)),
            (None, Some(found)) => found.plus(watch.limits.reconnect),
            (None, None) => self.started.plus(watch.limits.reconnect),
        }
    }
}
