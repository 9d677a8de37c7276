//! Sessions as this server sees them: who is connected, and since when the others are quiet. Memory only, never stored.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::records::node::Contact;
use crate::words::name::NodeName;
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// Open sessions, when closed ones ended, and which nodes' stored presence may be out of step with them.
#[derive(Debug, Clone)]
pub struct Contacts {
    started: Timestamp,
    open: BTreeMap<NodeName, u32>,
    ended: BTreeMap<NodeName, Timestamp>,
    unsettled: BTreeSet<NodeName>,
}

impl Contacts {
    /// No sessions yet. Nodes count as quiet from now on only: a server that restarts has heard nobody die.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self { started: now, open: BTreeMap::new(), ended: BTreeMap::new(), unsettled: BTreeSet::new() }
    }

    /// A session opened. Answers whether the node had none.
    pub fn opened(&mut self, node: &NodeName) -> bool {
        self.ended.remove(node);
        let count = self.open.entry(node.clone()).or_insert(0);
        *count = count.saturating_add(1);
        let first = *count == 1;
        if first {
            self.unsettled.insert(node.clone());
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
            self.ended.insert(node.clone(), now);
            self.unsettled.insert(node.clone());
        }
        last
    }

    /// A leader begins: every node that is thought to be present must be heard from, or found silent.
    pub fn expect_all(&mut self, fleet: &Fleet) {
        self.unsettled.extend(fleet.present.iter().cloned());
    }

    /// Nodes whose stored presence may be out of step, in name order.
    pub fn unsettled(&self) -> impl Iterator<Item = &NodeName> {
        self.unsettled.iter()
    }

    /// Lets go of nodes whose stored presence says what their sessions say. A node that was heard from within `recent` is
    /// kept in view even if its session has ended: short sessions count too.
    pub fn settle(&mut self, fleet: &Fleet, recent: Span, now: Timestamp) {
        let (open, ended) = (&self.open, &mut self.ended);
        self.unsettled.retain(|node| {
            if fleet.active_node(node).is_none() {
                return false;
            }
            let connected = open.contains_key(node);
            let heard = ended.get(node).is_some_and(|end| now.since(*end) < recent);
            match fleet.presences.get(node).map(|kept| kept.value.contact) {
                Some(Contact::Up) => !connected,
                Some(Contact::Suspect) => true,
                Some(Contact::Unreachable | Contact::Never) | None => {
                    let keep = connected || heard;
                    if !keep {
                        ended.remove(node);
                    }
                    keep
                }
            }
        });
    }

    /// When a node without a session was last heard from, if it was by this server.
    #[must_use]
    pub fn heard_at(&self, node: &NodeName) -> Option<Timestamp> {
        self.ended.get(node).copied()
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

    /// Since when a node without a session is quiet.
    #[must_use]
    pub fn quiet_since(&self, node: &NodeName) -> Timestamp {
        self.ended.get(node).copied().unwrap_or(self.started)
    }
}
