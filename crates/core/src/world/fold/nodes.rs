//! Folds records of nodes: the node, its presence, report, order and logs, and nodes that are expected to
//! join.

use super::kept;
use crate::records::annotation::Annotation;
use crate::records::log::NodeLog;
use crate::records::node::{Cordon, Node, Presence};
use crate::records::order::Order;
use crate::records::report::Report;
use crate::records::versioned::Versioned;
use crate::words::counter::Revision;
use crate::words::name::{Category, EntityName, NodeName};
use crate::world::fleet::Fleet;
use crate::world::version_uses::VersionUser;

impl Fleet {
    pub(super) fn put_node(&mut self, node: Node, revision: Revision) {
        let name = node.name.clone();
        match node.cordon.as_ref().and_then(Cordon::waiting_drain) {
            Some(_) if node.decommissioned.is_none() => self.drains.insert_mut(name.clone()),
            Some(_) | None => drop(self.drains.remove_mut(&name)),
        }
        self.counting(&name, |fleet| fleet.nodes.insert_mut(name.clone(), kept(node, revision)));
        self.node_changed(&name, revision);
        self.candidate_changed(&name, revision);
        self.note_presence(&name);
    }

    pub(super) fn delete_node(&mut self, name: &NodeName, revision: Revision) {
        self.drains.remove_mut(name);
        self.counting(name, |fleet| {
            fleet.nodes.remove_mut(name);
        });
        self.node_changed(name, revision);
        self.candidate_changed(name, revision);
        self.note_presence(name);
    }

    pub(super) fn put_presence(&mut self, name: &NodeName, presence: Presence, revision: Revision) {
        let before = self.presences.get(name).cloned();
        self.counting(name, |fleet| fleet.presences.insert_mut(name.clone(), kept(presence, revision)));
        self.heard_from(name, before.as_ref(), revision);
        self.settle_unseen(name);
        self.note_presence(name);
        self.stores_heard(name, revision);
        self.candidate_changed(name, revision);
    }

    pub(super) fn delete_presence(&mut self, name: &NodeName, revision: Revision) {
        let before = self.presences.get(name).cloned();
        self.counting(name, |fleet| {
            fleet.presences.remove_mut(name);
        });
        self.heard_from(name, before.as_ref(), revision);
        self.settle_unseen(name);
        self.note_presence(name);
        self.stores_heard(name, revision);
        self.candidate_changed(name, revision);
    }

    pub(super) fn put_expected(&mut self, name: NodeName, by: Annotation, revision: Revision) {
        self.expected.insert_mut(name, kept(by, revision));
    }

    pub(super) fn delete_expected(&mut self, name: &NodeName) {
        self.expected.remove_mut(name);
    }

    pub(super) fn put_report(&mut self, report: Report, revision: Revision) {
        let name = report.node.clone();
        let waits = |report: &Report| report.entities.values().any(|entity| !entity.waits_for.is_empty());
        let waited = self.reports.get(&name).is_some_and(|before| waits(&before.value)) || waits(&report);
        let other_ledger = self.ledger(&name).map(|ledger| ledger.id) != report.ledger.as_ref();
        let other_generation = self.held_generation(&name) != report.generation;
        let other_features = self.features(&name) != report.features;
        let refuses = |report: &Report| (report.order_refusal().is_some(), report.set_back().is_some());
        let refused = self.reports.get(&name).map(|before| refuses(&before.value));
        let other_refusal = refused.unwrap_or_default() != refuses(&report);
        self.forget_report(&name);
        if let Some(at) = report.next_silence() {
            self.silences.insert_mut((at, name.clone()));
        }
        let running = report.entities.values().filter_map(|entity| entity.running.as_ref());
        self.version_uses.set(VersionUser::Report(name.clone()), running);
        self.counting(&name, |fleet| fleet.reports.insert_mut(name.clone(), kept(report, revision)));
        if waited {
            self.waits_changed(&name);
        }
        if other_features {
            self.features_changed(&name);
        }
        if other_features || other_refusal {
            self.candidate_changed(&name, revision);
        }
        if other_ledger || other_generation {
            self.order_changed(&name);
        }
        self.observations_changed(&name, revision);
    }

    pub(super) fn delete_report(&mut self, name: &NodeName, revision: Revision) {
        self.forget_report(name);
        self.version_uses.set(VersionUser::Report(name.clone()), core::iter::empty());
        self.counting(name, |fleet| {
            fleet.reports.remove_mut(name);
        });
        self.waits_changed(name);
        self.order_changed(name);
        self.observations_changed(name, revision);
        self.candidate_changed(name, revision);
    }

    /// Removes a report from the indexes before it is replaced or deleted.
    fn forget_report(&mut self, name: &NodeName) {
        let Some(before) = self.reports.get(name).map(|kept| kept.value.clone()) else { return };
        if let Some(at) = before.next_silence() {
            self.silences.remove_mut(&(at, name.clone()));
        }
    }

    pub(super) fn put_order(&mut self, name: &NodeName, order: Order, revision: Revision) {
        self.orders.insert_mut(name.clone(), kept(order, revision));
        self.order_changed(name);
    }

    pub(super) fn delete_order(&mut self, name: &NodeName) {
        self.orders.remove_mut(name);
        self.order_changed(name);
    }

    pub(super) fn put_log(&mut self, log: NodeLog, revision: Revision) {
        let key = (log.node.clone(), log.category.clone(), log.entity.clone());
        self.logs.insert_mut(key, kept(log.without_text(), revision));
    }

    pub(super) fn delete_log(&mut self, node: &NodeName, category: &Category, entity: &EntityName) {
        self.logs.remove_mut(&(node.clone(), category.clone(), entity.clone()));
    }

    /// Changes a node, and its class in the tally accordingly.
    pub(super) fn counting(&mut self, name: &NodeName, change: impl FnOnce(&mut Self)) {
        if self.loading {
            return change(self);
        }
        let before = self.node_class(name);
        change(self);
        let after = self.node_class(name);
        self.tally.moved(before, after);
    }

    /// A node became reachable, or is no longer.
    fn heard_from(&mut self, name: &NodeName, before: Option<&Versioned<Presence>>, revision: Revision) {
        self.presence_changed(name, before);
        self.eligibility_changed(name);
        self.observations_changed(name, revision);
        self.offers_changed(name, None, revision);
    }
}
