//! Sessions of one server: the nodes connected to it, and when the sessions of others ended. Memory only,
//! never stored.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::decide::liveness::context::LivenessContext;
use crate::words::name::{NodeName, ServerName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Open sessions, the end of closed ones, and the nodes whose stored presence may differ from them.
#[derive(Debug, Clone)]
pub struct Contacts {
    /// Time this server began to listen; a node without a session since then may have had one before.
    pub(super) started: Timestamp,
    pub(super) open: BTreeMap<NodeName, u32>,
    /// Nodes whose newest session is not stored yet: the server that a node connected to last holds it.
    pub(super) unrecorded: BTreeSet<NodeName>,
    pub(super) ended: BTreeMap<NodeName, Timestamp>,
    /// Nodes held by a server that is gone, with the time at which this one, as the leader, noticed.
    pub(super) orphans: BTreeMap<NodeName, Timestamp>,
    /// Nodes to examine now.
    pub(super) unsettled: BTreeSet<NodeName>,
    /// Nodes to examine at that time, unless something happens before; the same nodes by name and by time.
    pub(super) waiting: BTreeMap<NodeName, Timestamp>,
    pub(super) due: BTreeSet<(Timestamp, NodeName)>,
}

impl Contacts {
    /// No sessions yet. Silence of nodes counts from now on only: a restarted server does not know when
    /// sessions ended.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self {
            started: now,
            open: BTreeMap::new(),
            unrecorded: BTreeSet::new(),
            ended: BTreeMap::new(),
            orphans: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            waiting: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// Records an opened session. Returns whether the node had none.
    pub fn opened(&mut self, node: &NodeName) -> bool {
        self.ended.remove(node);
        let count = self.open.entry(node.clone()).or_insert(0);
        *count = count.saturating_add(1);
        let first = *count == 1;
        if first {
            self.unrecorded.insert(node.clone());
            self.unsettle(node);
        }
        first
    }

    /// Records a closed session. Returns whether it was the node's last.
    pub fn closed(&mut self, node: &NodeName, now: Timestamp) -> bool {
        let Some(count) = self.open.get_mut(node) else { return false };
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if last {
            self.open.remove(node);
            self.unrecorded.remove(node);
            self.ended.insert(node.clone(), now);
            self.unsettle(node);
        }
        last
    }

    /// Called when the server registers, for the first time or again: every node that it is stored to hold
    /// must report, or is found silent. Events from before its registration are ignored.
    pub fn begin(&mut self, fleet: &Fleet, me: &ServerName, now: Timestamp) {
        self.started = now;
        self.ended.clear();
        self.unrecorded.extend(self.open.keys().cloned());
        self.due.clear();
        self.unsettled.extend(core::mem::take(&mut self.waiting).into_keys());
        self.unsettled.extend(self.open.keys().cloned());
        let mine = fleet.held.get(&Some(me.clone()));
        self.unsettled.extend(mine.into_iter().flat_map(|held| held.iter().cloned()));
    }

    /// Marks a node to be examined now.
    pub(super) fn unsettle(&mut self, node: &NodeName) {
        if let Some(due) = self.waiting.remove(node) {
            self.due.remove(&(due, node.clone()));
        }
        self.unsettled.insert(node.clone());
    }

    /// Marks the nodes whose time has come to be examined now.
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

    /// Time at which the next waiting node is to be examined.
    #[must_use]
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Nodes whose stored presence may be outdated and that wait for no time, in name order.
    pub fn unsettled(&self) -> impl Iterator<Item = &NodeName> {
        self.unsettled.iter()
    }

    /// Time a node without a session last had one with this server, if it did.
    #[must_use]
    pub fn heard_at(&self, node: &NodeName) -> Option<Timestamp> {
        self.ended.get(node).copied()
    }

    /// Whether the node opened a session that its stored presence does not reflect yet.
    #[must_use]
    pub(super) fn is_unrecorded(&self, node: &NodeName) -> bool {
        self.unrecorded.contains(node)
    }

    /// Whether a node has a session.
    #[must_use]
    pub fn is_connected(&self, node: &NodeName) -> bool {
        self.open.contains_key(node)
    }

    /// Number of nodes with a session.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.open.len()
    }

    /// Start of the silence of a node without a session: the end of its session with this server; if it never
    /// had one, the time its server was found gone, or this server began, plus the time allowed to reconnect.
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
