//! Folds what each node contributes to waits: from the report of its entities, and its service registrations.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::super::fleet::Fleet;
use super::super::waits::{WaitCause, WaitEntry};
use crate::records::report::Report;
use crate::records::wait_cycle::Waiter;
use crate::words::name::{EntityName, NodeName};

impl Fleet {
    /// The reported entities of a node, its registrations, or the state of its instances changed.
    pub(super) fn waits_changed(&mut self, node: &NodeName) {
        if !self.loading {
            self.waits.put(node, self.facts(node));
        }
    }

    /// Builds the index, once all records and the catalogue are present.
    pub(super) fn build_waits(&mut self) {
        let nodes: Vec<NodeName> = self.nodes.keys().cloned().collect();
        for node in nodes {
            let facts = self.facts(&node);
            self.waits.note(&node, facts);
        }
        self.waits.look();
    }

    fn facts(&self, node: &NodeName) -> BTreeSet<WaitCause> {
        let mut facts = BTreeSet::new();
        if self.active_node(node).is_none() {
            return facts;
        }
        let report = self.reports.get(node).map(|kept| &*kept.value);
        let entities = report.into_iter().flat_map(|report| report.entities.keys());
        facts.extend(entities.filter_map(|entity| entity_waits(report, entity)).map(WaitCause::Waits));
        let registrations = self.registrations.get(node).into_iter().flat_map(|kept| &kept.value.instances);
        for ((service, name), registration) in registrations {
            let instance = self.catalogue.service(service).and_then(|service| service.instance(node, name));
            if instance.is_none_or(|instance| instance.level.serves()) {
                continue;
            }
            let own = WaitEntry {
                who: Waiter::Service(service.clone()),
                waits_for: registration.waits_for.clone(),
            };
            let own = Some(own).filter(|own| !own.waits_for.is_empty());
            facts.extend(own.clone().map(WaitCause::Waits));
            let entity = registration.entity.as_ref().and_then(|entity| entity_waits(report, entity));
            facts.insert(WaitCause::Down {
                service: service.clone(),
                behind: own.into_iter().chain(entity).collect(),
            });
        }
        facts
    }
}

/// The services that an entity waits for on a node with this report; `None` if there are none.
fn entity_waits(report: Option<&Report>, entity: &EntityName) -> Option<WaitEntry> {
    let report = report?.entities.get(entity).filter(|report| !report.waits_for.is_empty())?;
    Some(WaitEntry { who: Waiter::Entity(entity.clone()), waits_for: report.waits_for.clone() })
}
