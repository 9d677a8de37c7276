//! Folds one change into the world: records into their maps, and the consequences into the indexes.

mod clusters;
mod ensembles;
mod entities;
mod entity_indexes;
mod indexes;
mod node_class;
mod node_data;
mod nodes;
pub(crate) mod observations;
mod orders;
mod other_records;
mod probes;
mod registrations;
mod runs;
mod waits;
mod whole;

use alloc::sync::Arc;

use super::fleet::Fleet;
use crate::records::freeze::Freeze;
use crate::records::key::{Key, Record};
use crate::records::versioned::Versioned;
use crate::words::counter::Revision;
use crate::words::name::FreezeName;

fn kept<T>(value: T, revision: Revision) -> Versioned<T> {
    Versioned { value: Arc::new(value), revision }
}

impl Fleet {
    fn put(&mut self, record: Record, revision: Revision) {
        match record {
            Record::Node(node) => self.put_node(node, revision),
            Record::Presence(name, presence) => self.put_presence(&name, presence, revision),
            Record::NodeParams(params) => self.put_node_params(params, revision),
            Record::Facts(facts) => self.put_facts(facts, revision),
            Record::Probes(probes) => self.put_probes(probes, revision),
            Record::NodeMembers(members) => self.put_node_members(members, revision),
            Record::Expected(name, by) => self.put_expected(name, by, revision),
            Record::Report(report) => self.put_report(report, revision),
            Record::Order(name, order) => self.put_order(&name, order, revision),
            Record::Log(log) => self.put_log(log, revision),
            Record::Registrations(registrations) => self.put_registrations(registrations, revision),
            Record::Service(service) => self.put_service(service, revision),
            Record::WaitCycles(wait_cycles) => self.wait_cycles = Some(kept(wait_cycles, revision)),
            Record::Entity(entity) => self.put_entity(entity, revision),
            Record::Progress(name, progress) => self.put_progress(&name, progress, revision),
            Record::Rollout(name, rollout) => self.put_rollout(&name, rollout, revision),
            Record::Target(entity, target, state) => self.put_target(&entity, &target, state, revision),
            Record::ExternalTarget(entity, target, external) => {
                self.put_external(&entity, &target, external, revision);
            }
            Record::Controllers(name, controllers) => self.put_controllers(&name, controllers, revision),
            Record::HookAnswers(name, answers) => self.put_answers(&name, answers, revision),
            Record::Filter(filter) => self.filters.insert_mut(filter.name.clone(), kept(filter, revision)),
            Record::Ensemble(ensemble) => self.put_ensemble(ensemble, revision),
            Record::EnsembleMembers(members) => self.put_ensemble_members(members, revision),
            Record::Cluster(cluster) => self.put_cluster(cluster, revision),
            Record::ClusterRoles(roles) => self.put_cluster_roles(roles, revision),
            Record::ClusterView(view) => self.put_cluster_view(view, revision),
            Record::ClusterDiscovery(known) => self.put_cluster_discovery(known, revision),
            Record::Freeze(freeze) => self.put_freeze(freeze, revision),
            Record::Definition(definition) => {
                self.definitions.insert_mut(definition.id.clone(), kept(definition, revision));
            }
            Record::Run(run) => self.put_run(run, revision),
            Record::Jobs(jobs) => self.put_jobs(jobs, revision),
            Record::TaskList(list) => self.put_task_list(list, revision),
            Record::NotRunnable(mark) => self.put_not_runnable(mark, revision),
            Record::Param(param) => self.params.insert_mut(param.key.clone(), kept(param, revision)),
            Record::Pause(pause) => {
                self.pause_changed(pause.name.clone(), Some(kept(pause, revision)), revision);
            }
            Record::Schedule(schedule) => self.put_schedule(schedule, revision),
            Record::Reaction(reaction) => {
                self.reactions_may_change();
                self.reactions.insert_mut(reaction.name.clone(), kept(reaction, revision));
            }
            Record::Sink(sink) => self.sinks.insert_mut(sink.name.clone(), kept(sink, revision)),
            Record::SinkState(state) => {
                self.sink_states.insert_mut(state.name.clone(), kept(state, revision))
            }
            Record::Secret(secret) => self.put_secret(secret, revision),
            Record::Slot(slot) => self.slots.insert_mut(slot.name.clone(), kept(slot, revision)),
            Record::Profile(profile) => {
                self.profiles.insert_mut(profile.name.clone(), kept(profile, revision));
            }
            Record::ProfileRevision(value) => self.put_profile_revision(value, revision),
            Record::Event(event) => self.put_event(event, revision),
        }
    }

    fn delete(&mut self, key: &Key, revision: Revision) {
        match key {
            Key::Node(name) => self.delete_node(name, revision),
            Key::Presence(name) => self.delete_presence(name, revision),
            Key::NodeParams(name) => self.delete_node_params(name, revision),
            Key::Facts(name) => self.delete_facts(name, revision),
            Key::Probes(name) => self.delete_probes(name, revision),
            Key::NodeMembers(name) => self.delete_node_members(name, revision),
            Key::Expected(name) => self.delete_expected(name),
            Key::Report(name) => self.delete_report(name, revision),
            Key::Order(name) => self.delete_order(name),
            Key::Log(node, category, entity) => self.delete_log(node, category, entity),
            Key::Registrations(name) => self.delete_registrations(name, revision),
            Key::Service(name) => self.delete_service(name, revision),
            Key::WaitCycles => self.wait_cycles = None,
            Key::Entity(name) => self.delete_entity(name, revision),
            Key::Progress(name) => self.delete_progress(name, revision),
            Key::Rollout(name, number) => self.delete_rollout(name, *number, revision),
            Key::Target(entity, target) => self.delete_target(entity, target, revision),
            Key::ExternalTarget(entity, target) => self.delete_external(entity, target, revision),
            Key::Controllers(name) => self.delete_controllers(name),
            Key::HookAnswers(name) => self.delete_answers(name, revision),
            Key::Filter(name) => {
                self.filters.remove_mut(name);
            }
            Key::Ensemble(name) => self.delete_ensemble(name, revision),
            Key::EnsembleMembers(name) => self.delete_ensemble_members(name, revision),
            Key::Cluster(name) => self.delete_cluster(name, revision),
            Key::ClusterRoles(name) => self.delete_cluster_roles(name),
            Key::ClusterView(name) => self.delete_cluster_view(name),
            Key::ClusterDiscovery(name) => self.delete_cluster_discovery(name, revision),
            Key::Freeze(name) => self.delete_freeze(name, revision),
            Key::Definition(id) => {
                self.definitions.remove_mut(id);
            }
            Key::Run(name) => self.delete_run(name, revision),
            Key::Jobs(run, node) => self.delete_jobs(run, node),
            Key::TaskList(run, node) => self.delete_task_list(run, node),
            Key::NotRunnable(name) => self.delete_not_runnable(name, revision),
            Key::Param(key) => {
                self.params.remove_mut(key);
            }
            Key::Pause(name) => self.pause_changed(name.clone(), None, revision),
            Key::Schedule(name) => self.delete_schedule(name),
            Key::Reaction(name) => self.delete_reaction(name),
            Key::Sink(name) => self.delete_sink(name),
            Key::SinkState(name) => self.delete_sink_state(name),
            Key::Secret(name) => self.delete_secret(name, revision),
            Key::Slot(name) => {
                self.slots.remove_mut(name);
            }
            Key::Profile(name) => {
                self.profiles.remove_mut(name);
            }
            Key::ProfileRevision(name, number) => {
                self.profile_revisions.remove_mut(&(name.clone(), *number));
            }
            Key::Event(sequence) => self.delete_event(*sequence),
        }
    }

    fn put_freeze(&mut self, freeze: Freeze, revision: Revision) {
        self.freezes_changed = revision;
        self.freezes.insert_mut(freeze.name.clone(), kept(freeze, revision));
    }

    fn delete_freeze(&mut self, name: &FreezeName, revision: Revision) {
        self.freezes_changed = revision;
        self.freezes.remove_mut(name);
    }
}
