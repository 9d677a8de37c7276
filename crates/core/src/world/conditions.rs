//! What is true and should not be: conditions of clusters, stores that do not work, nodes that nobody reaches.

use alloc::vec::Vec;

use super::fleet::Fleet;
use crate::records::cluster_view::{ClusterView, ConditionKind};
use crate::records::node::PresenceState;
use crate::records::probes::StoreState;
use crate::records::reaction::ConditionSubject;
use crate::words::filter::field::Field;
use crate::words::filter::{FieldValue, Filter, FilterSubject, KnownValue};
use crate::words::name::{ClusterName, NodeName};
use crate::words::time::Timestamp;

/// The condition of a node that nobody reaches.
pub const NODE_UNREACHABLE: &str = "node_unreachable";

/// Whether a condition can have this name.
#[must_use]
pub fn is_condition(name: &str) -> bool {
    names().any(|known| known == name)
}

/// The names of all conditions.
pub fn names() -> impl Iterator<Item = &'static str> {
    ConditionKind::ALL.into_iter().map(ConditionKind::as_str).chain([NODE_UNREACHABLE])
}

/// How the subject of a condition of this name is written; `None` if no condition has this name.
#[must_use]
pub fn subject_form(name: &str) -> Option<&'static str> {
    scope(name).map(|scope| match scope {
        ConditionScope::Node => "node/NODE",
        ConditionScope::Store => "store/NODE/PROBE",
        ConditionScope::Cluster => "cluster/CLUSTER/PROBE",
    })
}

/// Whether the subject of a condition of this name is a node, or on one.
#[must_use]
pub fn has_node(name: &str) -> bool {
    scope(name).is_some_and(|scope| scope != ConditionScope::Cluster)
}

/// The names of the conditions that a filter may match.
pub fn matching(on: &Filter) -> impl Iterator<Item = &'static str> {
    names().filter(|name| {
        on.may_match(|field| match field.name() {
            "condition" => KnownValue::Is(name),
            "node" if scope(name) == Some(ConditionScope::Cluster) => KnownValue::Absent,
            "probe" if scope(name) == Some(ConditionScope::Node) => KnownValue::Absent,
            "node" | "probe" => KnownValue::Present,
            _ => KnownValue::Unknown,
        })
    })
}

/// What conditions of a name are true of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionScope {
    Node,
    Store,
    Cluster,
}

fn scope(name: &str) -> Option<ConditionScope> {
    if name == NODE_UNREACHABLE {
        return Some(ConditionScope::Node);
    }
    let kind = ConditionKind::ALL.into_iter().find(|kind| kind.as_str() == name)?;
    Some(if is_of_each(kind) { ConditionScope::Store } else { ConditionScope::Cluster })
}

/// Whether a condition is one of each data store, not of all of a cluster together.
const fn is_of_each(kind: ConditionKind) -> bool {
    matches!(kind, ConditionKind::StoreDown | ConditionKind::StoreUnknown)
}

/// A condition that is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrueCondition<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is true of.
    pub subject: &'a ConditionSubject,
    /// The cluster that it is about.
    pub cluster: Option<&'a ClusterName>,
    /// Since when it is true, by the server's clock.
    pub since: Timestamp,
}

impl FilterSubject for TrueCondition<'_> {
    fn value(&self, field: &Field) -> Option<FieldValue<'_>> {
        let text = match field.name() {
            "condition" => Some(self.name),
            "cluster" => self.cluster.map(ClusterName::as_str),
            "node" => self.subject.node().map(NodeName::as_str),
            "probe" => self.subject.probe().map(|probe| probe.as_str()),
            _ => None,
        };
        text.map(FieldValue::Text)
    }
}

impl Fleet {
    /// The conditions that are true, by subject.
    pub fn true_conditions(&self) -> impl Iterator<Item = TrueCondition<'_>> {
        self.conditions.all().map(|((subject, name), since)| TrueCondition {
            name,
            subject,
            cluster: self.cluster_of_subject(subject),
            since: *since,
        })
    }

    /// The cluster that a subject is, or is in.
    #[must_use]
    pub fn cluster_of_subject<'a>(&'a self, subject: &'a ConditionSubject) -> Option<&'a ClusterName> {
        match subject {
            ConditionSubject::Cluster(cluster, _) => Some(cluster),
            ConditionSubject::Node(node) | ConditionSubject::Store(node, _) => self.membership.of(node),
        }
    }

    /// Something changed that reactions are decided on.
    pub(super) fn reactions_may_change(&mut self) {
        self.reaction_changes += 1;
    }

    /// The presence of a node changed.
    pub(super) fn note_presence(&mut self, node: &NodeName) {
        // That a logical node is silent is a condition of its host: its cluster looks for another one.
        let is_machine = self.active_node(node).is_some_and(|kept| kept.value.logical.is_none());
        let presence = self.presences.get(node).filter(|_| is_machine);
        let lost = presence.filter(|kept| kept.value.contact == PresenceState::Unreachable);
        let now: Vec<_> = lost.map(|kept| (NODE_UNREACHABLE, kept.value.since)).into_iter().collect();
        self.note_conditions(&ConditionSubject::Node(node.clone()), &now);
    }

    /// The data stores of a node changed; `before` are those it had.
    pub(super) fn note_stores(&mut self, node: &NodeName, before: &[crate::words::name::ProbeName]) {
        let stores = self.probes.get(node).map(|kept| kept.value.clone());
        let probes = stores.iter().flat_map(|probes| probes.stores.keys()).chain(before);
        let subjects: alloc::collections::BTreeSet<_> = probes.cloned().collect();
        for probe in subjects {
            let store = stores.as_ref().and_then(|probes| probes.stores.get(&probe));
            let now = store.and_then(|store| match store.state {
                StoreState::Up => None,
                StoreState::Down => Some((ConditionKind::StoreDown.as_str(), store.since)),
                StoreState::Unknown => Some((ConditionKind::StoreUnknown.as_str(), store.since)),
            });
            let now: Vec<_> = now.into_iter().collect();
            self.note_conditions(&ConditionSubject::Store(node.clone(), probe), &now);
        }
    }

    /// The view of a cluster changed. Which stores are down is a condition of each of them.
    pub(super) fn note_view(&mut self, before: Option<&ClusterView>, now: Option<&ClusterView>) {
        let of = |view: Option<&ClusterView>| {
            let ids = view.into_iter().flat_map(|view| view.conditions.keys());
            ids.map(|id| id.probe.clone()).collect::<Vec<_>>()
        };
        let probes: alloc::collections::BTreeSet<_> = of(before).into_iter().chain(of(now)).collect();
        let Some(cluster) = now.or(before).map(|view| view.cluster.clone()) else { return };
        for probe in probes {
            let conditions = now.into_iter().flat_map(|view| &view.conditions);
            let own = conditions.filter(|(id, _)| id.probe == probe && !is_of_each(id.kind));
            let now: Vec<_> = own.map(|(id, of)| (id.kind.as_str(), of.since)).collect();
            self.note_conditions(&ConditionSubject::Cluster(cluster.clone(), probe), &now);
        }
    }

    fn note_conditions(&mut self, subject: &ConditionSubject, now: &[(&'static str, Timestamp)]) {
        if self.conditions.set(subject, now) {
            self.reactions_may_change();
        }
    }
}

#[cfg(test)]
mod tests;
