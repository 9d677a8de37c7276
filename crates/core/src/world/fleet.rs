//! One namespace of the world: its nodes, entities, rollouts, orders and the newest events.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;

use super::clusters::ClusterIndex;
use super::condition_index::ConditionIndex;
use super::event_index::EventIndex;
use super::runs::RunIndex;
use super::schedules::ScheduleIndex;
use super::tally::NodeTally;
use super::touched::TouchIndex;
use super::version_uses::VersionUses;
use super::waits::WaitIndex;
use crate::catalogue::Catalogue;
use crate::catalogue::log::CatalogueLog;
use crate::records::annotation::Annotation;
use crate::records::cluster::{Cluster, ClusterRoles};
use crate::records::cluster_view::ClusterView;
use crate::records::definition::{Definition, DefinitionId};
use crate::records::discovery::ClusterDiscovery;
use crate::records::ensemble::Ensemble;
use crate::records::ensemble_members::EnsembleMembers;
use crate::records::entity::Entity;
use crate::records::event::Event;
use crate::records::external::{Controllers, ExternalTarget};
use crate::records::facts::NodeFacts;
use crate::records::filter::SavedFilter;
use crate::records::freeze::Freeze;
use crate::records::hook_answers::HookAnswers;
use crate::records::job::NodeJobs;
use crate::records::log::NodeLog;
use crate::records::member::NodeMembers;
use crate::records::node::{Node, Presence};
use crate::records::node_params::NodeParams;
use crate::records::not_runnable::NotRunnable;
use crate::records::order::{Order, OrderContent};
use crate::records::param::ParamDeclaration;
use crate::records::pause::NodePause;
use crate::records::probes::NodeProbes;
use crate::records::profile::{Profile, ProfileRevision};
use crate::records::progress::Progress;
use crate::records::reaction::Reaction;
use crate::records::registrations::{KnownService, ServiceRegistrations};
use crate::records::report::Report;
use crate::records::rollout::Rollout;
use crate::records::run::Run;
use crate::records::schedule::Schedule;
use crate::records::secret::Secret;
use crate::records::sink::Sink;
use crate::records::sink_state::SinkState;
use crate::records::slot::Slot;
use crate::records::task_list::TaskList;
use crate::records::versioned::Versioned;
use crate::records::wait_cycle::WaitCycles;
use crate::rollout::board::Board;
use crate::words::counter::{Epoch, ProfileRevisionNumber, Revision, RolloutNumber, Sequence};
use crate::words::map::{Map, MultiMap, Set};
use crate::words::name::ParamKey;
use crate::words::name::{
    Category, ClusterName, EnsembleName, EntityName, FilterName, FreezeName, NodeName, PauseName,
    ProfileName, ReactionName, ScheduleName, SecretName, ServerName, ServiceName, SinkName, SlotName,
    TargetName,
};
use crate::words::node_data::{NO_DATA, NodeData};
use crate::words::time::Timestamp;

/// Newest events kept in memory; older ones are read from the store.
pub const EVENTS_IN_MEMORY: usize = 4_096;

/// One namespace of the world.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    /// Nodes, including decommissioned ones.
    pub nodes: Map<NodeName, Versioned<Node>>,
    /// Params of the nodes that have any, or read profiles.
    pub node_params: Map<NodeName, Versioned<NodeParams>>,
    /// Facts of the nodes that reported any.
    pub facts: Map<NodeName, Versioned<NodeFacts>>,
    /// Data stores of the nodes whose agents probe any.
    pub probes: Map<NodeName, Versioned<NodeProbes>>,
    /// Unreachable nodes whose data stores are still recorded as known.
    pub unseen_stores: Set<NodeName>,
    /// By node: its facts, own params and profiles, as filters read them; absent for a node without any.
    pub data: Map<NodeName, NodeData>,
    /// Presences of the nodes.
    pub presences: Map<NodeName, Versioned<Presence>>,
    /// Active nodes whose drain waits for its budget.
    pub drains: Set<NodeName>,
    /// Nodes that are expected to join, each with who announced it.
    pub expected: Map<NodeName, Versioned<Annotation>>,
    /// Last reports of the nodes.
    pub reports: Map<NodeName, Versioned<Report>>,
    /// Service registrations of the nodes.
    pub registrations: Map<NodeName, Versioned<ServiceRegistrations>>,
    /// Services that are or were registered, until they are forgotten.
    pub services: Map<ServiceName, Versioned<KnownService>>,
    /// The present wait cycles.
    pub wait_cycles: Option<Versioned<WaitCycles>>,
    /// Index of entities and services that wait for services.
    pub waits: WaitIndex,
    /// Revision at which a service was last forgotten, as far as the events in memory show.
    pub service_forgotten_at: Revision,
    /// The service catalogue: every instance and its state.
    pub catalogue: Catalogue,
    /// Recent changes of the catalogue.
    pub catalogue_log: CatalogueLog,
    /// The last order written for each node.
    pub orders: Map<NodeName, Versioned<Order>>,
    /// Logs of failing runs, without their text.
    pub logs: Map<(NodeName, Category, EntityName), Versioned<NodeLog>>,
    /// Entities, with the requests made of them.
    pub entities: Map<EntityName, Versioned<Entity>>,
    /// Progress of each entity.
    pub progresses: Map<EntityName, Versioned<Progress>>,
    /// Last reports about external targets.
    pub externals: Map<(EntityName, TargetName), Versioned<ExternalTarget>>,
    /// Controllers that report external targets, by entity.
    pub controllers: Map<EntityName, Versioned<Controllers>>,
    /// By entity: time at which each external target is next silent or removed.
    pub overdue: Map<EntityName, Set<(Timestamp, TargetName)>>,
    /// Answers of hooks, by entity.
    pub answers: Map<EntityName, Versioned<HookAnswers>>,
    /// Clusters.
    pub clusters: Map<ClusterName, Versioned<Cluster>>,
    /// Roles of the clusters, by cluster.
    pub cluster_roles: Map<ClusterName, Versioned<ClusterRoles>>,
    /// Views of the clusters' data stores, by cluster.
    pub cluster_views: Map<ClusterName, Versioned<ClusterView>>,
    /// What the lists of members of clusters said last.
    pub cluster_discoveries: Map<ClusterName, Versioned<ClusterDiscovery>>,
    /// Counts the changes of what reactions are decided on, since the namespace was loaded.
    pub reaction_changes: u64,
    /// Index of the conditions that are true.
    pub conditions: ConditionIndex,
    /// Reactions.
    pub reactions: Map<ReactionName, Versioned<Reaction>>,
    /// Sinks of events.
    pub sinks: Map<SinkName, Versioned<Sink>>,
    /// How far each sink is.
    pub sink_states: Map<SinkName, Versioned<SinkState>>,
    /// Index of the members of clusters.
    pub membership: ClusterIndex,
    /// Ensembles.
    pub ensembles: Map<EnsembleName, Versioned<Ensemble>>,
    /// The members of the ensembles, by ensemble.
    pub ensemble_members: Map<EnsembleName, Versioned<EnsembleMembers>>,
    /// What nodes report of the members that they have of ensembles.
    pub node_members: Map<NodeName, Versioned<NodeMembers>>,
    /// By ensemble: the nodes that report a member of it that they are not ordered to have.
    pub unrecorded: Map<EnsembleName, BTreeSet<NodeName>>,
    /// When what is decided on an ensemble changed last, apart from which nodes may have members.
    pub touched_ensembles: TouchIndex<EnsembleName>,
    /// Revision of the last change of something that says whether a node may have a member.
    pub candidates_changed: Revision,
    /// Saved filters.
    pub filters: Map<FilterName, Versioned<SavedFilter>>,
    /// Freezes of this namespace.
    pub freezes: Map<FreezeName, Versioned<Freeze>>,
    /// Revision of the last change to these freezes.
    pub freezes_changed: Revision,
    /// Pauses of several nodes, by name.
    pub pauses: Map<PauseName, Versioned<NodePause>>,
    /// Tasks, stages and workflows.
    pub definitions: Map<DefinitionId, Versioned<Definition>>,
    /// Runs of workflows, by the name of their entity.
    pub runs: Map<EntityName, Versioned<Run>>,
    /// Index of the runs that have ended.
    pub run_index: RunIndex,
    /// Jobs of runs on nodes.
    pub jobs: Map<(EntityName, NodeName), Versioned<NodeJobs>>,
    /// Task lists of runs on nodes where people changed them.
    pub task_lists: Map<(EntityName, NodeName), Versioned<TaskList>>,
    /// Nodes that begin no run, each with the reason.
    pub not_runnable: Map<NodeName, Versioned<NotRunnable>>,
    /// Nodes that are still marked so because of a run that is undone there.
    pub undone_marks: Set<NodeName>,
    /// Declared params.
    pub params: Map<ParamKey, Versioned<ParamDeclaration>>,
    /// Schedules of workflows.
    pub schedules: Map<ScheduleName, Versioned<Schedule>>,
    /// Index of the schedules by time.
    pub schedule_index: ScheduleIndex,
    /// Secrets.
    pub secrets: Map<SecretName, Versioned<Secret>>,
    /// Slots that are configured, held, or have been.
    pub slots: Map<SlotName, Versioned<Slot>>,
    /// Every stored rollout.
    pub rollouts: Map<(EntityName, RolloutNumber), Versioned<Rollout>>,
    /// Revisions of the records of target assignments; the assignments are on the entity's board.
    pub targets: Map<(EntityName, TargetName), Revision>,
    /// Versioned parameter sets, deleted ones included.
    pub profiles: Map<ProfileName, Versioned<Profile>>,
    /// Revisions of the profiles.
    pub profile_revisions: Map<(ProfileName, ProfileRevisionNumber), Versioned<ProfileRevision>>,
    /// The newest events, at most [`EVENTS_IN_MEMORY`].
    pub events: Map<Sequence, Arc<Event>>,
    /// The newest of them by what they are about.
    pub event_index: EventIndex,
    /// Number of the oldest stored event; zero before the first.
    pub oldest_event: Sequence,
    /// By entity: its board, folded for the rollout decider.
    pub boards: Map<EntityName, Board>,
    /// By entity: revision of the last change to it, its targets, their reports or the services it needs.
    pub touched: TouchIndex<EntityName>,
    /// Entities whose rollouts read data stores.
    pub entities_with_stores: Set<EntityName>,
    /// When the data stores of each cluster changed last, or which these are.
    pub touched_views: TouchIndex<ClusterName>,
    /// By node: the entities of which it is a target.
    pub entities_of_node: MultiMap<NodeName, EntityName>,
    /// By node: the runs that have a job there with which something is still to happen.
    pub open_jobs: MultiMap<NodeName, EntityName>,
    /// By profile: its entities.
    pub entities_of_profile: MultiMap<ProfileName, EntityName>,
    /// By profile: the nodes that have it in their list.
    pub readers_of_profile: MultiMap<ProfileName, NodeName>,
    /// By service: the entities whose policy needs it.
    pub entities_that_need: MultiMap<EntityName, EntityName>,
    /// Entities with hooks and a rollout in progress.
    pub hooked: Set<EntityName>,
    /// Numbered versions in use.
    pub version_uses: VersionUses,
    /// The desired content of each node's order.
    pub contents: Map<NodeName, OrderContent>,
    /// Nodes whose stored order differs from the desired content.
    pub stale_orders: Set<NodeName>,
    /// Active nodes that are up or suspect, by the server that holds their session or held the last one.
    pub held: Map<Option<ServerName>, Set<NodeName>>,
    /// Removed entities of which records are left, to be removed too.
    pub orphans: Set<EntityName>,
    /// Number of nodes in each state.
    pub tally: NodeTally,
    /// Time at which the next status of each node becomes silent, for nodes with such a status.
    pub silences: Set<(Timestamp, NodeName)>,
    /// Epoch of the installation.
    pub epoch: Epoch,
    /// Revision at which all indexes were built from the records; zero for a namespace that began empty.
    pub loaded: Revision,
    /// While the world is being loaded, indexes wait until all records are present.
    pub(super) loading: bool,
}

impl Fleet {
    /// The newest rollout of an entity, in progress or ended.
    #[must_use]
    pub fn last_rollout(&self, entity: &EntityName) -> Option<&Rollout> {
        let last = self.boards.get(entity)?.progress().last;
        self.rollouts.get(&(entity.clone(), last)).map(|kept| &*kept.value)
    }

    /// Number of the last event.
    #[must_use]
    pub fn last_event(&self) -> Sequence {
        self.events.last().map_or(Sequence::ZERO, |(sequence, _)| *sequence)
    }

    /// Number of the next run of an action or a workflow: above every event so far, and its own request adds one more event. It
    /// never decreases, not even when an entity is deleted, whose runs a node still remembers when one of the same name is created,
    /// nor when a backup is restored.
    #[must_use]
    pub fn next_run(&self) -> Sequence {
        Sequence::new(self.epoch.get().saturating_add(self.last_event().get())).next()
    }

    /// The stored logs of a node.
    pub fn logs_of<'a>(&'a self, node: &'a NodeName) -> impl Iterator<Item = &'a Versioned<NodeLog>> + 'a {
        // "0" sorts first among labels.
        let first = Category::parse("0").ok().zip(EntityName::parse("0").ok());
        let first = first.map(|(category, entity)| (node.clone(), category, entity));
        let from = first.into_iter().flat_map(|first| self.logs.range(first..));
        from.take_while(move |((of, _, _), _)| of == node).map(|(_, kept)| kept)
    }

    /// The pauses whose selectors match a node, by name.
    pub fn pauses_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a NodePause> + 'a {
        self.pauses
            .values()
            .map(|kept| &*kept.value)
            .filter(|pause| pause.holds(node, self.data_of(&node.name)))
    }

    /// Why a node starts nothing new; `None` if it may. Its own pause comes first, then others by name.
    #[must_use]
    pub fn paused(&self, node: &Node) -> Option<String> {
        let own = node.pause.as_ref().map(|pause| pause.describe("paused"));
        own.or_else(|| self.pauses_of(node).next().map(NodePause::line))
    }

    /// Whether a node starts nothing new.
    #[must_use]
    pub fn holds(&self, node: &Node) -> bool {
        node.pause.is_some() || self.pauses_of(node).next().is_some()
    }

    /// Facts, own params and profiles of a node.
    #[must_use]
    pub fn data_of(&self, name: &NodeName) -> &NodeData {
        self.data.get(name).unwrap_or(&NO_DATA)
    }

    /// A node that is not decommissioned.
    #[must_use]
    pub fn active_node(&self, name: &NodeName) -> Option<&Versioned<Node>> {
        self.nodes.get(name).filter(|node| node.value.decommissioned.is_none())
    }
}
