//! Which nodes must be examined, and when, after every comparison with the stored presences.

use alloc::vec::Vec;

use super::contacts::Contacts;
use super::context::LivenessContext;
use super::finding::{PresenceFinding, look};
use crate::records::node::PresenceState;
use crate::words::name::{NodeName, ServerName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

impl Contacts {
    /// Stops tracking nodes whose stored presence matches their sessions, and those that another server
    /// holds. A node that had a session a short while ago stays tracked even if it ended: short sessions
    /// count too.
    ///
    /// A leader takes responsibility for the nodes of servers that are gone, counting from `now`; other
    /// servers leave them to it.
    pub fn settle(&mut self, fleet: &Fleet, watch: &LivenessContext<'_>, now: Timestamp) {
        self.take_on_orphans(fleet, watch, now);
        self.wake(now);
        for node in core::mem::take(&mut self.unsettled) {
            if !self.is_open(fleet, &node, watch, now) {
                continue;
            }
            match look(fleet, self, &node, watch, now) {
                PresenceFinding::Waits(due) => {
                    self.due.insert((due, node.clone()));
                    self.waiting.insert(node, due);
                }
                PresenceFinding::Unchanged | PresenceFinding::Changes(..) => {
                    self.unsettled.insert(node);
                }
            }
        }
    }

    /// Whether a node must be examined still; if not, forgets what was tracked about it.
    fn is_open(
        &mut self,
        fleet: &Fleet,
        node: &NodeName,
        watch: &LivenessContext<'_>,
        now: Timestamp,
    ) -> bool {
        if fleet.active_node(node).is_none() {
            return false;
        }
        let connected = self.open.contains_key(node);
        let heard = self.ended.get(node).is_some_and(|end| now.since(*end) < watch.limits.suspect);
        let kept = fleet.presences.get(node);
        let mine = kept.is_some_and(|kept| kept.value.server.as_ref() == Some(watch.me));
        if mine && kept.is_some_and(|kept| kept.value.contact == PresenceState::Up) {
            self.unrecorded.remove(node);
        }
        let orphan = self.orphans.contains_key(node);
        let elsewhere = !mine && !orphan && !connected && !heard;
        let open = !elsewhere
            && match kept.map(|kept| kept.value.contact) {
                Some(PresenceState::Up) => !connected || self.unrecorded.contains(node) || orphan,
                Some(PresenceState::Suspect) => true,
                Some(PresenceState::Unreachable | PresenceState::Never) | None => connected || heard,
            };
        if !open && !connected && !heard {
            self.ended.remove(node);
        }
        open
    }

    /// Updates the nodes of servers that are gone. Costs time in proportion to the number of servers while
    /// none is gone.
    fn take_on_orphans(&mut self, fleet: &Fleet, watch: &LivenessContext<'_>, now: Timestamp) {
        let gone = |server: &Option<ServerName>| server.as_ref().is_none_or(|name| !watch.lives(name));
        let is_orphan = |node: &NodeName| {
            watch.leads
                && fleet.presences.get(node).is_some_and(|kept| match kept.value.contact {
                    PresenceState::Up | PresenceState::Suspect => gone(&kept.value.server),
                    PresenceState::Unreachable | PresenceState::Never => false,
                })
        };
        let found: Vec<NodeName> =
            self.orphans.extract_if(.., |node, _| !is_orphan(node)).map(|(node, _)| node).collect();
        for node in found {
            self.unsettle(&node);
        }
        if !watch.leads {
            return;
        }
        let held = fleet.held.iter().filter(|(server, _)| gone(server));
        let fresh: Vec<NodeName> = held
            .flat_map(|(_, nodes)| nodes.iter())
            .filter(|node| !self.orphans.contains_key(*node))
            .cloned()
            .collect();
        for node in fresh {
            self.unsettle(&node);
            self.orphans.insert(node, now);
        }
    }
}
