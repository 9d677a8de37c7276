//! What a namespace contains: what keeps it from being deleted, and what is deleted with it.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::World;
use super::fleet::Fleet;
use crate::records::key::Key;
use crate::words::counter::Sequence;
use crate::words::name::{Namespace, ProfileName};
use crate::words::precedence::DEFAULTS_PROFILE;

/// Number of objects of a namespace that keep it from being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamespaceContents {
    /// Nodes, without decommissioned ones.
    pub nodes: usize,
    /// Nodes that are expected and have not joined.
    pub expected: usize,
    /// Entities, and deleted ones of which records are left.
    pub entities: usize,
    /// Profiles, without deleted ones.
    pub profiles: usize,
    /// Freezes of the namespace.
    pub freezes: usize,
    /// Pauses of nodes by selector.
    pub pauses: usize,
    /// Slots.
    pub slots: usize,
    /// Saved filters.
    pub filters: usize,
    /// Clusters.
    pub clusters: usize,
    /// Number of ensembles.
    pub ensembles: usize,
    /// Number of schedules.
    pub schedules: usize,
    /// Number of reactions.
    pub reactions: usize,
    /// Number of sinks.
    pub sinks: usize,
    /// Declared params.
    pub params: usize,
    /// Secrets.
    pub secrets: usize,
    /// Tasks, stages and workflows.
    pub definitions: usize,
}

impl NamespaceContents {
    /// Each number with the name of one of its objects.
    #[must_use]
    pub const fn counts(&self) -> [(usize, &'static str); 16] {
        [
            (self.nodes, "node"),
            (self.expected, "expected node"),
            (self.entities, "entity"),
            (self.profiles, "profile"),
            (self.freezes, "freeze"),
            (self.pauses, "pause"),
            (self.slots, "slot"),
            (self.filters, "filter"),
            (self.clusters, "cluster"),
            (self.ensembles, "ensemble"),
            (self.schedules, "schedule"),
            (self.reactions, "reaction"),
            (self.sinks, "sink"),
            (self.params, "declared param"),
            (self.secrets, "secret"),
            (self.definitions, "task, stage or workflow"),
        ]
    }

    /// Whether there is none of them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl World {
    /// Whether a namespace exists: `default`, or one with records.
    #[must_use]
    pub fn has_namespace(&self, namespace: &Namespace) -> bool {
        let holds = |fleet: &Fleet| fleet.records() > 0 || !fleet.events.is_empty();
        namespace.as_str() == "default" || self.fleets.get(namespace).is_some_and(holds)
    }

    /// All namespaces that exist, by name.
    #[must_use]
    pub fn namespaces(&self) -> BTreeSet<Namespace> {
        let default = Namespace::parse("default").ok();
        let with_records = self.fleets.keys().filter(|name| self.has_namespace(name)).cloned();
        with_records.chain(default).collect()
    }
}

impl Fleet {
    /// What keeps the namespace from being deleted.
    #[must_use]
    pub fn contents_left(&self) -> NamespaceContents {
        let active = |name| self.active_node(name).is_some_and(|node| node.value.logical.is_none());
        // It is empty once no declared param has a default, and nobody can delete it.
        let own = |name: &ProfileName| name.as_str() != DEFAULTS_PROFILE;
        NamespaceContents {
            nodes: self.nodes.keys().filter(|name| active(name)).count(),
            expected: self.expected.size(),
            entities: self.entities.size() + self.orphans.size(),
            profiles: self.profiles.keys().filter(|name| own(name) && self.profile(name).is_some()).count(),
            freezes: self.freezes.size(),
            pauses: self.pauses.size(),
            slots: self.slots.size(),
            filters: self.filters.size(),
            clusters: self.clusters.size(),
            ensembles: self.ensembles.size(),
            schedules: self.schedules.size(),
            reactions: self.reactions.size(),
            sinks: self.sinks.size(),
            params: self.params.size(),
            secrets: self.secrets.size(),
            definitions: self.definitions.size(),
        }
    }

    /// At most `limit` records of a namespace that is to be deleted: those of what is gone already, and events last, the
    /// oldest first.
    #[must_use]
    pub fn remains(&self, limit: usize) -> Vec<Key> {
        let nodes = self.nodes.keys().cloned().map(Key::Node);
        let presences = self.presences.keys().cloned().map(Key::Presence);
        let reports = self.reports.keys().cloned().map(Key::Report);
        let orders = self.orders.keys().cloned().map(Key::Order);
        let logs = self.logs.keys().cloned().map(|(node, category, entity)| Key::Log(node, category, entity));
        let registrations = self.registrations.keys().cloned().map(Key::Registrations);
        let node_params = self.node_params.keys().cloned().map(Key::NodeParams);
        let facts = self.facts.keys().cloned().map(Key::Facts);
        let probes = self.probes.keys().cloned().map(Key::Probes);
        let node_members = self.node_members.keys().cloned().map(Key::NodeMembers);
        let roles = self.cluster_roles.keys().cloned().map(Key::ClusterRoles);
        let discoveries = self.cluster_discoveries.keys().cloned().map(Key::ClusterDiscovery);
        let members = self.ensemble_members.keys().cloned().map(Key::EnsembleMembers);
        let runs = self.runs.keys().cloned().map(Key::Run);
        let jobs = self.jobs.keys().cloned().map(|(run, node)| Key::Jobs(run, node));
        let lists = self.task_lists.keys().cloned().map(|(run, node)| Key::TaskList(run, node));
        let marks = self.not_runnable.keys().cloned().map(Key::NotRunnable);
        let sink_states = self.sink_states.keys().cloned().map(Key::SinkState);
        let services = self.services.keys().cloned().map(Key::Service);
        let wait_cycles = self.wait_cycles.iter().map(|_| Key::WaitCycles);
        let profiles = self.profiles.keys().cloned().map(Key::Profile);
        let revisions = self.profile_revisions.keys().cloned();
        let revisions = revisions.map(|(profile, number)| Key::ProfileRevision(profile, number));
        let oldest = self.oldest_event.get();
        // Zero before the first event: there is none then.
        let stored = (oldest.max(1)..=self.last_event().get()).filter(|_| oldest > 0);
        let events = stored.map(|number| Key::Event(Sequence::new(number)));
        let of_nodes = nodes.chain(presences).chain(reports).chain(orders).chain(logs).chain(registrations);
        let of_nodes = of_nodes
            .chain(node_params)
            .chain(facts)
            .chain(probes)
            .chain(node_members)
            .chain(runs)
            .chain(roles)
            .chain(discoveries)
            .chain(members)
            .chain(jobs)
            .chain(lists)
            .chain(sink_states)
            .chain(marks);
        of_nodes
            .chain(services)
            .chain(wait_cycles)
            .chain(profiles)
            .chain(revisions)
            .chain(events)
            .take(limit)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::annotation::Annotation;
    use crate::records::event::Event;
    use crate::records::key::Record;
    use crate::words::counter::Revision;
    use crate::words::time::Timestamp;

    #[test]
    fn a_namespace_ends_with_its_last_record() {
        let (mut world, namespace) = (World::default(), Namespace::parse("shop").unwrap());
        let by = Annotation::of("ann".parse().unwrap(), Timestamp::EPOCH);
        world.put(&namespace, Record::Expected("web-1".parse().unwrap(), by), Revision::new(1));
        for number in 1..=3 {
            let event = Event {
                sequence: Sequence::new(number),
                time: Timestamp::EPOCH,
                actor: "ann".parse().unwrap(),
                kind: "node.expected".into(),
                subject: "node/web-1".into(),
                before: None,
                after: None,
                cause: "".into(),
                caused_by: None,
            };
            world.put(&namespace, Record::Event(event), Revision::new(1 + number));
        }
        let fleet = world.fleets.get(&namespace).unwrap();
        assert_eq!(fleet.contents_left(), NamespaceContents { expected: 1, ..Default::default() });
        let expected = Key::Expected("web-1".parse().unwrap());
        assert!(!fleet.remains(99).contains(&expected), "what keeps it is not deleted with it");
        world.delete(&namespace, &expected, Revision::new(5));
        while world.has_namespace(&namespace) {
            let fleet = world.fleets.get(&namespace).unwrap();
            assert!(fleet.contents_left().is_empty());
            let remains = fleet.remains(2);
            assert!((1..=2).contains(&remains.len()));
            for key in remains {
                world.delete(&namespace, &key, Revision::new(6));
            }
        }
        assert!(world.has_namespace(&Namespace::parse("default").unwrap()));
    }
}
