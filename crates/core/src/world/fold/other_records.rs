//! Folds the other records of a namespace: registrations, services, reactions, sinks, jobs, freezes, pauses, slots, profiles,
//! wait cycles and events.

use alloc::sync::Arc;

use super::kept;
use crate::records::event::Event;
use crate::records::event::FORGOTTEN;
use crate::records::job::NodeJobs;
use crate::records::profile::ProfileRevision;
use crate::records::registrations::{KnownService, ServiceRegistrations};
use crate::records::schedule::Schedule;
use crate::records::task_list::TaskList;
use crate::words::counter::{Revision, Sequence};
use crate::words::name::{EntityName, NodeName, ReactionName, ScheduleName, ServiceName, SinkName};
use crate::world::fleet::{EVENTS_IN_MEMORY, Fleet};

impl Fleet {
    pub(super) fn put_registrations(&mut self, registrations: ServiceRegistrations, revision: Revision) {
        let name = registrations.node.clone();
        let before = self.registrations.get(&name).cloned();
        self.counting(&name, |fleet| {
            fleet.registrations.insert_mut(name.clone(), kept(registrations, revision))
        });
        self.offers_changed(&name, before.as_ref(), revision);
    }

    pub(super) fn delete_registrations(&mut self, name: &NodeName, revision: Revision) {
        let before = self.registrations.get(name).cloned();
        self.counting(name, |fleet| {
            fleet.registrations.remove_mut(name);
        });
        self.offers_changed(name, before.as_ref(), revision);
    }

    pub(super) fn delete_reaction(&mut self, name: &ReactionName) {
        self.reactions.remove_mut(name);
    }

    pub(super) fn delete_sink(&mut self, name: &SinkName) {
        self.sinks.remove_mut(name);
    }

    pub(super) fn delete_sink_state(&mut self, name: &SinkName) {
        self.sink_states.remove_mut(name);
    }

    pub(super) fn put_service(&mut self, service: KnownService, revision: Revision) {
        let name = service.name.clone();
        self.services.insert_mut(name.clone(), kept(service, revision));
        self.service_heard(&name, revision);
    }

    pub(super) fn delete_service(&mut self, name: &ServiceName, revision: Revision) {
        self.services.remove_mut(name);
        self.service_forgotten(name, revision);
    }

    pub(super) fn put_jobs(&mut self, jobs: NodeJobs, revision: Revision) {
        let run = jobs.run.clone();
        if jobs.jobs.iter().any(|job| job.state.is_open()) {
            self.open_jobs.insert(jobs.node.clone(), &run);
        } else {
            self.open_jobs.remove(&jobs.node, &run);
        }
        self.jobs.insert_mut((run.clone(), jobs.node.clone()), kept(jobs, revision));
        if !self.loading {
            self.note_orphans(&run);
        }
    }

    pub(super) fn delete_jobs(&mut self, run: &EntityName, node: &NodeName) {
        self.jobs.remove_mut(&(run.clone(), node.clone()));
        self.open_jobs.remove(node, run);
        if !self.loading {
            self.note_orphans(run);
        }
    }

    pub(super) fn put_task_list(&mut self, list: TaskList, revision: Revision) {
        let run = list.run.clone();
        self.task_lists.insert_mut((run.clone(), list.node.clone()), kept(list, revision));
        if !self.loading {
            self.note_orphans(&run);
        }
    }

    pub(super) fn delete_task_list(&mut self, run: &EntityName, node: &NodeName) {
        self.task_lists.remove_mut(&(run.clone(), node.clone()));
        if !self.loading {
            self.note_orphans(run);
        }
    }

    pub(super) fn put_profile_revision(&mut self, value: ProfileRevision, revision: Revision) {
        let key = (value.profile.clone(), value.number);
        self.profile_revisions.insert_mut(key, kept(value, revision));
    }

    pub(super) fn put_event(&mut self, event: Event, revision: Revision) {
        if event.kind == FORGOTTEN {
            self.service_forgotten_at = self.service_forgotten_at.max(revision);
        }
        if self.oldest_event.get() == 0 {
            self.oldest_event = event.sequence;
        }
        self.event_index.insert(&event);
        self.events.insert_mut(event.sequence, Arc::new(event));
        if self.events.size() <= EVENTS_IN_MEMORY {
            return;
        }
        if let Some(first) = self.events.first().map(|(sequence, _)| *sequence) {
            self.forget_event(first);
        }
    }

    pub(super) fn delete_event(&mut self, sequence: Sequence) {
        self.forget_event(sequence);
        self.oldest_event = self.oldest_event.max(sequence.next());
    }

    fn forget_event(&mut self, sequence: Sequence) {
        if let Some(event) = self.events.get(&sequence) {
            self.event_index.remove(event);
            self.events.remove_mut(&sequence);
        }
    }

    pub(super) fn put_schedule(&mut self, schedule: Schedule, revision: Revision) {
        let name = schedule.name.clone();
        self.delete_schedule(&name);
        self.schedule_index.insert(&schedule);
        self.schedules.insert_mut(name, kept(schedule, revision));
    }

    pub(super) fn delete_schedule(&mut self, name: &ScheduleName) {
        if let Some(before) = self.schedules.get(name).cloned() {
            self.schedule_index.remove(&before.value);
            self.schedules.remove_mut(name);
        }
    }
}
