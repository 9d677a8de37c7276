//! How many nodes of a fleet are how, counted as they change: whoever looks does not count.

use super::fleet::Fleet;
use crate::records::node::PresenceState;
use crate::records::status::Status;
use crate::words::name::NodeName;

/// How many nodes are how; decommissioned ones are not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTally {
    never: u64,
    up: u64,
    suspect: u64,
    unreachable: u64,
    /// Nodes that start nothing new, whyever.
    pub paused: u64,
    /// Nodes of which a status is failed.
    pub failing: u64,
}

/// How one node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeClass {
    contact: PresenceState,
    is_paused: bool,
    is_failing: bool,
}

impl NodeTally {
    /// The tally of a fleet, counted anew.
    #[must_use]
    pub fn of(fleet: &Fleet) -> Self {
        let mut tally = Self::default();
        for counted in fleet.nodes.keys().filter_map(|name| fleet.counted(name)) {
            tally.change(&counted, |count| *count += 1);
        }
        tally
    }

    /// How many nodes are in contact how: those of which there is any.
    pub fn contacts(&self) -> impl Iterator<Item = (PresenceState, u64)> {
        let all = [
            (PresenceState::Never, self.never),
            (PresenceState::Up, self.up),
            (PresenceState::Suspect, self.suspect),
            (PresenceState::Unreachable, self.unreachable),
        ];
        all.into_iter().filter(|(_, count)| *count > 0)
    }

    /// A node is not how it was any more.
    pub(super) fn moved(&mut self, before: Option<NodeClass>, after: Option<NodeClass>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.change(&before, |count| *count = count.saturating_sub(1));
        }
        if let Some(after) = after {
            self.change(&after, |count| *count += 1);
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
    }
}

impl Fleet {
    /// How a node is, if it is counted.
    pub(super) fn counted(&self, name: &NodeName) -> Option<NodeClass> {
        let node = self.active_node(name)?;
        let contact = self.presences.get(name).map_or(PresenceState::Never, |kept| kept.value.contact);
        let report = self.reports.get(name);
        let is_failing = report.is_some_and(|kept| kept.value.statuses.values().any(Status::is_failed));
        Some(NodeClass { contact, is_paused: self.holds(&node.value), is_failing })
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::records::key::{Key, Record};
    use crate::records::node::{Marked, Node, Presence};
    use crate::records::pause::NodePause;
    use crate::records::report::Report;
    use crate::records::status::StatusState;
    use crate::words::counter::{Generation, Revision};
    use crate::words::label::Labels;
    use crate::words::name::{Actor, Category, Namespace, PauseName};
    use crate::words::selector::Selector;
    use crate::words::time::Timestamp;
    use crate::world::World;

    const NODES: [&str; 3] = ["db-1", "web-1", "web-2"];

    fn namespace() -> Namespace {
        Namespace::parse("default").unwrap()
    }

    fn name(which: usize) -> NodeName {
        NodeName::parse(NODES[which]).unwrap()
    }

    fn mark() -> Marked {
        Marked { by: Actor::parse("kim").unwrap(), at: Timestamp::EPOCH, why: "disk".into() }
    }

    /// A change of one kind; `how` says which of its forms.
    fn change(kind: usize, which: usize, how: usize) -> (Key, Option<Record>) {
        let name = name(which);
        let is = |bit: usize| how & bit != 0;
        let gone = is(4) && is(2);
        let put = |record: Record| (record.key(), Some(record));
        match kind {
            0 if gone => (Key::Node(name), None),
            0 => put(Record::Node(Node {
                name,
                labels: Labels::default(),
                joined_at: Timestamp::EPOCH,
                key_fingerprint: "".into(),
                pause: is(1).then(mark),
                cordon: None,
                decommissioned: is(2).then(mark),
            })),
            1 if gone => (Key::Presence(name), None),
            1 => {
                let contact = [
                    PresenceState::Never,
                    PresenceState::Up,
                    PresenceState::Suspect,
                    PresenceState::Unreachable,
                ][how % 4];
                put(Record::Presence(name, Presence { contact, since: Timestamp::EPOCH, server: None }))
            }
            2 if gone => (Key::Report(name), None),
            2 => {
                let state = if is(1) { StatusState::Failed } else { StatusState::Success };
                let status = Status { silent: is(2), ..Status::new(state, Timestamp::EPOCH, "".into()) };
                put(Record::Report(Report {
                    node: name,
                    received_at: Timestamp::EPOCH,
                    agent_version: "1".into(),
                    generation: Generation::ZERO,
                    entities: BTreeMap::new(),
                    statuses: BTreeMap::from([(Category::parse("disk").unwrap(), status)]),
                }))
            }
            _ => {
                let name = PauseName::parse(["all", "some"][which % 2]).unwrap();
                let nodes = Selector::parse(["all", "name in (web-1,web-2)"][which % 2]).unwrap();
                let pause = NodePause { name: name.clone(), nodes, mark: mark(), labels: Labels::default() };
                if is(2) { put(Record::Pause(pause)) } else { (Key::Pause(name), None) }
            }
        }
    }

    proptest! {
        #[test]
        fn a_tally_grown_by_any_changes_is_what_counting_all_nodes_says(
            changes in prop::collection::vec((0..4_usize, 0..3_usize, 0..8_usize), 0..60),
        ) {
            let mut world = World::default();
            let mut kept: Vec<Record> = Vec::new();
            for (number, (kind, which, how)) in changes.into_iter().enumerate() {
                let revision = Revision::new(number as u64 + 1);
                let (key, record) = change(kind, which, how);
                                kept.retain(|record| record.key() != key);
                match record {
                    Some(record) => {
                        kept.push(record.clone());
                        world.put(Some(&namespace()), record, revision);
                    }
                    None => world.delete(Some(&namespace()), &key, revision),
                }
                let fleet = world.fleets.get(&namespace()).unwrap();
                prop_assert_eq!(&fleet.tally, &NodeTally::of(fleet));
            }
            let grown = world.fleets.get(&namespace()).map(|fleet| fleet.tally.clone()).unwrap_or_default();
            let records = kept.into_iter().map(|record| (Some(namespace()), record, Revision::new(1)));
            let loaded = World::load(records, world.revision);
            let loaded = loaded.fleets.get(&namespace()).map(|fleet| fleet.tally.clone()).unwrap_or_default();
            prop_assert_eq!(grown, loaded);
        }
    }
}
