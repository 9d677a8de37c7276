//! The typed key of a record, and the record with its key: those of a namespace, and those of either scope; those of the whole
//! installation are in [`global`]. The textual form of keys belongs to the store's side.

pub mod global;

use self::global::{GlobalKey, GlobalRecord};
use super::cluster::{Cluster, ClusterRoles};
use super::cluster_view::ClusterView;
use super::definition::{Definition, DefinitionId};
use super::discovery::ClusterDiscovery;
use super::ensemble::Ensemble;
use super::ensemble_members::EnsembleMembers;
use super::entity::Entity;
use super::event::Event;
use super::external::{Controllers, ExternalTarget};
use super::facts::NodeFacts;
use super::filter::SavedFilter;
use super::freeze::Freeze;
use super::hook_answers::HookAnswers;
use super::job::NodeJobs;
use super::log::NodeLog;
use super::member::NodeMembers;
use super::node::{Node, Presence};
use super::node_params::NodeParams;
use super::not_runnable::NotRunnable;
use super::order::Order;
use super::param::ParamDeclaration;
use super::pause::NodePause;
use super::probes::NodeProbes;
use super::profile::{Profile, ProfileRevision};
use super::progress::Progress;
use super::reaction::Reaction;
use super::registrations::{KnownService, ServiceRegistrations};
use super::report::Report;
use super::rollout::Rollout;
use super::run::Run;
use super::schedule::Schedule;
use super::secret::Secret;
use super::sink::Sink;
use super::sink_state::SinkState;
use super::slot::Slot;
use super::target::TargetState;
use super::task_list::TaskList;
use super::wait_cycle::WaitCycles;
use crate::records::annotation::Annotation;
use crate::words::counter::{ProfileRevisionNumber, RolloutNumber, Sequence};
use crate::words::name::{
    Category, ClusterName, EnsembleName, EntityName, FilterName, FreezeName, Namespace, NodeName, ParamKey,
    PauseName, ProfileName, ReactionName, ScheduleName, SecretName, ServiceName, SinkName, SlotName,
    TargetName,
};

/// Key of a record within its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A node, by name.
    Node(NodeName),
    /// A node's params and profiles, by the node's name.
    NodeParams(NodeName),
    /// A node's facts, by the node's name.
    Facts(NodeName),
    /// A node's data stores, by the node's name.
    Probes(NodeName),
    /// The members that a node has of ensembles, by node.
    NodeMembers(NodeName),
    /// A node's presence, by the node's name.
    Presence(NodeName),
    /// A node that is expected to join, by name.
    Expected(NodeName),
    /// A node's last report, by the node's name.
    Report(NodeName),
    /// A node's service registrations, by the node's name.
    Registrations(NodeName),
    /// A service that is known by name.
    Service(ServiceName),
    /// The wait cycles of the namespace.
    WaitCycles,
    /// A node's order, by the node's name.
    Order(NodeName),
    /// A stored log of a node, by node, category and entity.
    Log(NodeName, Category, EntityName),
    /// An entity, by name.
    Entity(EntityName),
    /// An entity's progress, by the entity's name.
    Progress(EntityName),
    /// A rollout, by entity and number.
    Rollout(EntityName, RolloutNumber),
    /// A target's assignment, by entity and target.
    Target(EntityName, TargetName),
    /// The last report about an external target, by entity and target.
    ExternalTarget(EntityName, TargetName),
    /// The controllers that report an entity's external targets, by the entity's name.
    Controllers(EntityName),
    /// The answers of an entity's hooks, by the entity's name.
    HookAnswers(EntityName),
    /// A cluster, by name.
    Cluster(ClusterName),
    /// The roles of a cluster, by the cluster's name.
    ClusterRoles(ClusterName),
    /// The view of a cluster's data stores, by the cluster's name.
    ClusterView(ClusterName),
    /// What the list of a cluster's members said, by the cluster's name.
    ClusterDiscovery(ClusterName),
    /// An ensemble, by name.
    Ensemble(EnsembleName),
    /// The members of an ensemble, by the ensemble's name.
    EnsembleMembers(EnsembleName),
    /// A saved filter, by name.
    Filter(FilterName),
    /// A freeze, by name.
    Freeze(FreezeName),
    /// A task, a stage or a workflow, by kind and name.
    Definition(DefinitionId),
    /// A declared param, by key.
    Param(ParamKey),
    /// A run of a workflow, by the name of its entity.
    Run(EntityName),
    /// The jobs of a run on a node, by run and node.
    Jobs(EntityName, NodeName),
    /// The task list of a run on a node, by run and node.
    TaskList(EntityName, NodeName),
    /// That a node begins no run, by node name.
    NotRunnable(NodeName),
    /// A pause of several nodes, by name.
    Pause(PauseName),
    /// A schedule, by name.
    Schedule(ScheduleName),
    /// A reaction, by name.
    Reaction(ReactionName),
    /// A sink, by name.
    Sink(SinkName),
    /// How far a sink is, by name.
    SinkState(SinkName),
    /// A secret, by name.
    Secret(SecretName),
    /// A slot, by name.
    Slot(SlotName),
    /// A profile, by name.
    Profile(ProfileName),
    /// A revision of a profile, by profile and number.
    ProfileRevision(ProfileName, ProfileRevisionNumber),
    /// An event, by sequence number.
    Event(Sequence),
}

/// Key of a record of either scope.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnyKey {
    /// Of a record in a namespace, which stands beside the key.
    Namespaced(Key),
    /// Of a record in no namespace.
    Global(GlobalKey),
}

impl From<Key> for AnyKey {
    fn from(key: Key) -> Self {
        Self::Namespaced(key)
    }
}

impl From<GlobalKey> for AnyKey {
    fn from(key: GlobalKey) -> Self {
        Self::Global(key)
    }
}

/// A record of a namespace, with the names its key needs and the record itself lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A node.
    Node(Node),
    /// A node's params and profiles.
    NodeParams(NodeParams),
    /// A node's facts.
    Facts(NodeFacts),
    /// A node's data stores.
    Probes(NodeProbes),
    /// The members that a node has of ensembles.
    NodeMembers(NodeMembers),
    /// A node's presence.
    Presence(NodeName, Presence),
    /// A node that is expected to join: who announced it, when and why.
    Expected(NodeName, Annotation),
    /// A node's last report.
    Report(Report),
    /// A node's service registrations.
    Registrations(ServiceRegistrations),
    /// A service that is known by name.
    Service(KnownService),
    /// The wait cycles of the namespace.
    WaitCycles(WaitCycles),
    /// A node's order.
    Order(NodeName, Order),
    /// A stored log of a node.
    Log(NodeLog),
    /// An entity.
    Entity(Entity),
    /// An entity's progress.
    Progress(EntityName, Progress),
    /// A rollout of an entity.
    Rollout(EntityName, Rollout),
    /// The assignment of one of an entity's targets.
    Target(EntityName, TargetName, TargetState),
    /// The last report about one of an entity's external targets.
    ExternalTarget(EntityName, TargetName, ExternalTarget),
    /// The controllers that report an entity's external targets.
    Controllers(EntityName, Controllers),
    /// The answers of an entity's hooks.
    HookAnswers(EntityName, HookAnswers),
    /// A cluster.
    Cluster(Cluster),
    /// The roles of a cluster.
    ClusterRoles(ClusterRoles),
    /// The view of a cluster's data stores.
    ClusterView(ClusterView),
    /// What the list of a cluster's members said.
    ClusterDiscovery(ClusterDiscovery),
    /// An ensemble.
    Ensemble(Ensemble),
    /// The members of an ensemble.
    EnsembleMembers(EnsembleMembers),
    /// A saved filter.
    Filter(SavedFilter),
    /// A freeze.
    Freeze(Freeze),
    /// A task, a stage or a workflow.
    Definition(Definition),
    /// A declared param.
    Param(ParamDeclaration),
    /// A run of a workflow.
    Run(Run),
    /// The jobs of a run on a node.
    Jobs(NodeJobs),
    /// The task list of a run on a node.
    TaskList(TaskList),
    /// That a node begins no run.
    NotRunnable(NotRunnable),
    /// A pause of several nodes.
    Pause(NodePause),
    /// A schedule.
    Schedule(Schedule),
    /// A reaction.
    Reaction(Reaction),
    /// A sink.
    Sink(Sink),
    /// How far a sink is.
    SinkState(SinkState),
    /// A secret.
    Secret(Secret),
    /// A slot.
    Slot(Slot),
    /// A profile.
    Profile(Profile),
    /// A revision of a profile.
    ProfileRevision(ProfileRevision),
    /// An event.
    Event(Event),
}

impl Record {
    /// The key under which it is stored.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Node(node) => Key::Node(node.name.clone()),
            Self::NodeParams(params) => Key::NodeParams(params.node.clone()),
            Self::Facts(facts) => Key::Facts(facts.node.clone()),
            Self::Probes(probes) => Key::Probes(probes.node.clone()),
            Self::NodeMembers(members) => Key::NodeMembers(members.node.clone()),
            Self::Presence(node, _) => Key::Presence(node.clone()),
            Self::Expected(node, _) => Key::Expected(node.clone()),
            Self::Report(report) => Key::Report(report.node.clone()),
            Self::Registrations(registrations) => Key::Registrations(registrations.node.clone()),
            Self::Service(service) => Key::Service(service.name.clone()),
            Self::WaitCycles(_) => Key::WaitCycles,
            Self::Order(node, _) => Key::Order(node.clone()),
            Self::Log(log) => Key::Log(log.node.clone(), log.category.clone(), log.entity.clone()),
            Self::Entity(entity) => Key::Entity(entity.name.clone()),
            Self::Progress(entity, _) => Key::Progress(entity.clone()),
            Self::Rollout(entity, rollout) => Key::Rollout(entity.clone(), rollout.number),
            Self::Target(entity, target, _) => Key::Target(entity.clone(), target.clone()),
            Self::ExternalTarget(entity, target, _) => Key::ExternalTarget(entity.clone(), target.clone()),
            Self::Controllers(entity, _) => Key::Controllers(entity.clone()),
            Self::HookAnswers(entity, _) => Key::HookAnswers(entity.clone()),
            Self::Cluster(cluster) => Key::Cluster(cluster.name.clone()),
            Self::ClusterRoles(roles) => Key::ClusterRoles(roles.cluster.clone()),
            Self::ClusterView(view) => Key::ClusterView(view.cluster.clone()),
            Self::ClusterDiscovery(known) => Key::ClusterDiscovery(known.cluster.clone()),
            Self::Ensemble(ensemble) => Key::Ensemble(ensemble.name.clone()),
            Self::EnsembleMembers(members) => Key::EnsembleMembers(members.ensemble.clone()),
            Self::Filter(filter) => Key::Filter(filter.name.clone()),
            Self::Freeze(freeze) => Key::Freeze(freeze.name.clone()),
            Self::Definition(definition) => Key::Definition(definition.id.clone()),
            Self::Run(run) => Key::Run(run.name.clone()),
            Self::Jobs(jobs) => Key::Jobs(jobs.run.clone(), jobs.node.clone()),
            Self::TaskList(list) => Key::TaskList(list.run.clone(), list.node.clone()),
            Self::NotRunnable(mark) => Key::NotRunnable(mark.node.clone()),
            Self::Param(param) => Key::Param(param.key.clone()),
            Self::Pause(pause) => Key::Pause(pause.name.clone()),
            Self::Schedule(schedule) => Key::Schedule(schedule.name.clone()),
            Self::Reaction(reaction) => Key::Reaction(reaction.name.clone()),
            Self::Sink(sink) => Key::Sink(sink.name.clone()),
            Self::SinkState(state) => Key::SinkState(state.name.clone()),
            Self::Secret(secret) => Key::Secret(secret.name.clone()),
            Self::Slot(slot) => Key::Slot(slot.name.clone()),
            Self::Profile(profile) => Key::Profile(profile.name.clone()),
            Self::ProfileRevision(profile_revision) => {
                Key::ProfileRevision(profile_revision.profile.clone(), profile_revision.number)
            }
            Self::Event(event) => Key::Event(event.sequence),
        }
    }
}

/// A record of either scope.
#[expect(clippy::large_enum_variant, reason = "nearly all are of a namespace, and writes hold them boxed")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyRecord {
    /// In a namespace, which stands beside the record.
    Namespaced(Record),
    /// In no namespace.
    Global(GlobalRecord),
}

impl AnyRecord {
    /// The key under which it is stored.
    #[must_use]
    pub fn key(&self) -> AnyKey {
        match self {
            Self::Namespaced(record) => AnyKey::Namespaced(record.key()),
            Self::Global(record) => AnyKey::Global(record.key()),
        }
    }
}

impl From<Record> for AnyRecord {
    fn from(record: Record) -> Self {
        Self::Namespaced(record)
    }
}

impl From<GlobalRecord> for AnyRecord {
    fn from(record: GlobalRecord) -> Self {
        Self::Global(record)
    }
}

/// A record of either scope, with its namespace if it is in one.
#[expect(clippy::large_enum_variant, reason = "nearly all are of a namespace")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocatedRecord {
    /// In this namespace.
    Namespaced(Namespace, Record),
    /// In no namespace.
    Global(GlobalRecord),
}
