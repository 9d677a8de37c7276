//! Folds one change into the world: records into their maps, and what follows into the indexes.

mod indexes;
mod node_class;
pub(crate) mod observations;
mod registrations;
mod waits;
mod whole;

use alloc::sync::Arc;

use super::fleet::{EVENTS_IN_MEMORY, Fleet};
use crate::records::event::Event;
use crate::records::key::{Key, Record};
use crate::records::log::NodeLog;
use crate::records::node::{Node, Presence};
use crate::records::report::Report;
use crate::records::versioned::Versioned;
use crate::words::counter::Revision;
use crate::words::name::NodeName;

fn kept<T>(value: T, revision: Revision) -> Versioned<T> {
    Versioned { value: Arc::new(value), revision }
}

impl Fleet {
    fn put(&mut self, record: Record, revision: Revision) {
        match record {
            Record::Node(node) => self.node_put(node, revision),
            Record::Presence(name, presence) => {
                let before = self.presences.get(&name).cloned();
                self.counting(&name, |fleet| {
                    fleet.presences.insert_mut(name.clone(), kept(presence, revision))
                });
                self.heard_from(&name, before.as_ref(), revision);
            }
            Record::Report(report) => self.report_changed(report, revision),
            Record::Order(name, order) => {
                self.orders.insert_mut(name.clone(), kept(order, revision));
                self.order_changed(&name);
            }
            Record::Entity(entity) => {
                let name = entity.name.clone();
                self.entities.insert_mut(name.clone(), kept(entity, revision));
                self.entity_changed(&name, revision);
            }
            Record::Progress(name, progress) => {
                self.progresses.insert_mut(name.clone(), kept(progress, revision));
                self.progress_changed(&name, revision);
            }
            Record::Rollout(name, rollout) => {
                let key = (name.clone(), rollout.number);
                self.rollouts.insert_mut(key, kept(rollout, revision));
                self.progress_changed(&name, revision);
            }
            Record::Target(entity, target, state) => {
                self.targets.insert_mut((entity.clone(), target.clone()), revision);
                self.target_changed(&entity, &target, Some(state), revision);
            }
            Record::ExternalTarget(entity, target, external) => {
                let before = self.externals.get(&(entity.clone(), target.clone())).cloned();
                self.externals.insert_mut((entity.clone(), target.clone()), kept(external, revision));
                self.external_changed((&entity, &target), before.as_ref(), revision);
            }
            record @ (Record::Registrations(_)
            | Record::Service(_)
            | Record::WaitCycles(_)
            | Record::Controllers(..)
            | Record::HookAnswers(..)
            | Record::Freeze(_)
            | Record::Pause(_)
            | Record::Slot(_)
            | Record::Profile(_)
            | Record::ProfileRevision(_)
            | Record::Expected(..)
            | Record::Log(_)) => {
                self.put_aside(record, revision);
            }
            Record::Event(event) => self.remember_event(event),
            Record::Token(_)
            | Record::JoinToken(_)
            | Record::GlobalFreeze(_)
            | Record::Server(_)
            | Record::Leader(_) => {}
        }
    }

    fn node_put(&mut self, node: Node, revision: Revision) {
        let name = node.name.clone();
        self.counting(&name, |fleet| fleet.nodes.insert_mut(name.clone(), kept(node, revision)));
        self.node_changed(&name, revision);
    }

    /// Changes something of a node, and how it is counted with it.
    fn counting(&mut self, name: &NodeName, change: impl FnOnce(&mut Self)) {
        if self.loading {
            return change(self);
        }
        let before = self.node_class(name);
        change(self);
        let after = self.node_class(name);
        self.tally.moved(before, after);
    }

    /// A node is heard from again, or no longer.
    fn heard_from(&mut self, name: &NodeName, before: Option<&Versioned<Presence>>, revision: Revision) {
        self.presence_changed(name, before);
        self.sightings_changed(name, revision);
        self.offers_changed(name, None, revision);
    }

    /// Takes in a record that stands beside nodes and rollouts.
    fn put_aside(&mut self, record: Record, revision: Revision) {
        match record {
            Record::Registrations(registrations) => {
                let name = registrations.node.clone();
                let before = self.registrations.get(&name).cloned();
                self.registrations.insert_mut(name.clone(), kept(registrations, revision));
                self.offers_changed(&name, before.as_ref(), revision);
            }
            Record::WaitCycles(wait_cycles) => self.wait_cycles = Some(kept(wait_cycles, revision)),
            Record::Service(service) => {
                let name = service.name.clone();
                self.services.insert_mut(name.clone(), kept(service, revision));
                self.service_heard(&name, revision);
            }
            Record::Controllers(name, controllers) => {
                self.controllers.insert_mut(name.clone(), kept(controllers, revision));
                self.note_orphans(&name);
            }
            Record::HookAnswers(name, answers) => {
                let before = self.answers.get(&name).cloned();
                self.answers.insert_mut(name.clone(), kept(answers, revision));
                self.answers_changed(&name, before.as_ref(), revision);
            }
            Record::Expected(name, by) => {
                self.expected.insert_mut(name, kept(by, revision));
            }
            Record::Log(log) => self.log_kept(log, revision),
            Record::Freeze(freeze) => {
                self.freezes.insert_mut(freeze.name.clone(), kept(freeze, revision));
            }
            Record::Pause(pause) => {
                self.pause_changed(pause.name.clone(), Some(kept(pause, revision)), revision)
            }
            Record::Slot(slot) => {
                self.slots.insert_mut(slot.name.clone(), kept(slot, revision));
            }
            Record::Profile(profile) => {
                self.profiles.insert_mut(profile.name.clone(), kept(profile, revision));
            }
            Record::ProfileRevision(profile_revision) => {
                let key = (profile_revision.profile.clone(), profile_revision.number);
                self.profile_revisions.insert_mut(key, kept(profile_revision, revision));
            }
            Record::Node(_)
            | Record::Presence(..)
            | Record::Report(_)
            | Record::Order(..)
            | Record::Entity(_)
            | Record::Progress(..)
            | Record::Rollout(..)
            | Record::Target(..)
            | Record::ExternalTarget(..)
            | Record::Event(_)
            | Record::Token(_)
            | Record::JoinToken(_)
            | Record::GlobalFreeze(_)
            | Record::Server(_)
            | Record::Leader(_) => {}
        }
    }

    fn log_kept(&mut self, log: NodeLog, revision: Revision) {
        let key = (log.node.clone(), log.category.clone(), log.entity.clone());
        self.logs.insert_mut(key, kept(log.without_text(), revision));
    }

    fn report_changed(&mut self, report: Report, revision: Revision) {
        let name = report.node.clone();
        let waits = |report: &Report| report.entities.values().any(|entity| !entity.lacks.is_empty());
        let waited = self.reports.get(&name).is_some_and(|before| waits(&before.value)) || waits(&report);
        self.forget_report(&name);
        if let Some(at) = report.next_silence() {
            self.silences.insert_mut((at, name.clone()));
        }
        self.counting(&name, |fleet| fleet.reports.insert_mut(name.clone(), kept(report, revision)));
        if waited {
            self.waits_changed(&name);
        }
        self.sightings_changed(&name, revision);
    }

    fn report_gone(&mut self, name: &NodeName, revision: Revision) {
        self.forget_report(name);
        self.counting(name, |fleet| {
            fleet.reports.remove_mut(name);
        });
        self.waits_changed(name);
        self.sightings_changed(name, revision);
    }

    /// Takes a report out of the indexes before it is replaced or goes.
    fn forget_report(&mut self, name: &NodeName) {
        let Some(before) = self.reports.get(name).map(|kept| kept.value.clone()) else { return };
        if let Some(at) = before.next_silence() {
            self.silences.remove_mut(&(at, name.clone()));
        }
    }

    fn remember_event(&mut self, event: Event) {
        if self.oldest_event.get() == 0 {
            self.oldest_event = event.sequence;
        }
        self.events.insert_mut(event.sequence, Arc::new(event));
        if self.events.size() <= EVENTS_IN_MEMORY {
            return;
        }
        if let Some(first) = self.events.first().map(|(sequence, _)| *sequence) {
            self.events.remove_mut(&first);
        }
    }

    fn delete(&mut self, key: &Key, revision: Revision) {
        match key {
            Key::Node(name) => {
                self.counting(name, |fleet| {
                    fleet.nodes.remove_mut(name);
                });
                self.node_changed(name, revision);
            }
            Key::Presence(name) => {
                let before = self.presences.get(name).cloned();
                self.counting(name, |fleet| {
                    fleet.presences.remove_mut(name);
                });
                self.heard_from(name, before.as_ref(), revision);
            }
            Key::Report(name) => self.report_gone(name, revision),
            Key::Order(name) => {
                self.orders.remove_mut(name);
                self.order_changed(name);
            }
            Key::Entity(name) => {
                self.entities.remove_mut(name);
                self.entity_changed(name, revision);
            }
            Key::Progress(name) => {
                self.progresses.remove_mut(name);
                self.progress_changed(name, revision);
            }
            Key::Rollout(name, number) => {
                self.rollouts.remove_mut(&(name.clone(), *number));
                self.progress_changed(name, revision);
            }
            Key::Target(entity, target) => {
                self.targets.remove_mut(&(entity.clone(), target.clone()));
                self.target_changed(entity, target, None, revision);
            }
            Key::ExternalTarget(entity, target) => {
                let before = self.externals.get(&(entity.clone(), target.clone())).cloned();
                self.externals.remove_mut(&(entity.clone(), target.clone()));
                self.external_changed((entity, target), before.as_ref(), revision);
            }
            Key::Expected(_)
            | Key::Registrations(_)
            | Key::Service(_)
            | Key::WaitCycles
            | Key::Log(..)
            | Key::Controllers(_)
            | Key::HookAnswers(_)
            | Key::Freeze(_)
            | Key::Pause(_)
            | Key::Slot(_)
            | Key::Profile(_)
            | Key::ProfileRevision(..) => {
                self.delete_aside(key, revision);
            }
            Key::Event(sequence) => {
                self.events.remove_mut(sequence);
                self.oldest_event = self.oldest_event.max(sequence.next());
            }
            Key::Token(_) | Key::JoinToken(_) | Key::GlobalFreeze(_) | Key::Server(_) | Key::Leader => {}
        }
    }

    /// Forgets a record that stands beside nodes and rollouts.
    fn delete_aside(&mut self, key: &Key, revision: Revision) {
        match key {
            Key::Registrations(name) => {
                let before = self.registrations.get(name).cloned();
                self.registrations.remove_mut(name);
                self.offers_changed(name, before.as_ref(), revision);
            }
            Key::Service(name) => {
                self.services.remove_mut(name);
            }
            Key::WaitCycles => self.wait_cycles = None,
            Key::Log(node, category, entity) => {
                self.logs.remove_mut(&(node.clone(), category.clone(), entity.clone()));
            }
            Key::Controllers(name) => {
                self.controllers.remove_mut(name);
                self.note_orphans(name);
            }
            Key::HookAnswers(name) => {
                let before = self.answers.get(name).cloned();
                self.answers.remove_mut(name);
                self.answers_changed(name, before.as_ref(), revision);
            }
            Key::Expected(name) => {
                self.expected.remove_mut(name);
            }
            Key::Freeze(name) => {
                self.freezes.remove_mut(name);
            }
            Key::Pause(name) => self.pause_changed(name.clone(), None, revision),
            Key::Slot(name) => {
                self.slots.remove_mut(name);
            }
            Key::Profile(name) => {
                self.profiles.remove_mut(name);
            }
            Key::ProfileRevision(name, number) => {
                self.profile_revisions.remove_mut(&(name.clone(), *number));
            }
            Key::Node(_)
            | Key::Presence(_)
            | Key::Report(_)
            | Key::Order(_)
            | Key::Entity(_)
            | Key::Progress(_)
            | Key::Rollout(..)
            | Key::Target(..)
            | Key::ExternalTarget(..)
            | Key::Event(_)
            | Key::Token(_)
            | Key::JoinToken(_)
            | Key::GlobalFreeze(_)
            | Key::Server(_)
            | Key::Leader => {}
        }
    }
}
