//! Number of nodes of a fleet in each state, updated as they change, so that a reader need not count.

use crate::records::node::PresenceState;

/// Number of nodes in each state; decommissioned ones are not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTally {
    never: u64,
    up: u64,
    suspect: u64,
    unreachable: u64,
    /// Nodes that start nothing new, for any reason.
    pub paused: u64,
    /// Nodes with at least one failed status.
    pub failing: u64,
    /// Nodes in contact that do not accept their orders.
    pub refusing: u64,
    /// Service instances with a failing check, on nodes that report and are not drained.
    pub failing_instances: u64,
}

/// The states of one node that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeClass {
    pub(super) contact: PresenceState,
    pub(super) is_paused: bool,
    pub(super) is_failing: bool,
    pub(super) is_refusing: bool,
    pub(super) failing_instances: u64,
}

impl NodeTally {
    /// Number of nodes in each presence state, without those of zero.
    pub fn contacts(&self) -> impl Iterator<Item = (PresenceState, u64)> {
        let all = [
            (PresenceState::Never, self.never),
            (PresenceState::Up, self.up),
            (PresenceState::Suspect, self.suspect),
            (PresenceState::Unreachable, self.unreachable),
        ];
        all.into_iter().filter(|(_, count)| *count > 0)
    }

    /// Moves a node from one class to another; `None` is a node that is not counted.
    pub(super) fn moved(&mut self, before: Option<NodeClass>, after: Option<NodeClass>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.change(&before, |count| *count = count.saturating_sub(1));
            self.failing_instances = self.failing_instances.saturating_sub(before.failing_instances);
        }
        if let Some(after) = after {
            self.change(&after, |count| *count += 1);
            self.failing_instances += after.failing_instances;
        }
    }

    fn change(&mut self, counted: &NodeClass, by_one: impl Fn(&mut u64)) {
        by_one(match counted.contact {
            PresenceState::Never => &mut self.never,
            PresenceState::Up => &mut self.up,
            PresenceState::Suspect => &mut self.suspect,
            PresenceState::Unreachable => &mut self.unreachable,
        });
        if counted.is_paused {
            by_one(&mut self.paused);
        }
        if counted.is_failing {
            by_one(&mut self.failing);
        }
        if counted.is_refusing {
            by_one(&mut self.refusing);
        }
    }
}
