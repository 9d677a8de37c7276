//! The world: an immutable snapshot of all records at one revision, with the indexes that deciders need.
//!
//! Cheap to clone: its maps share whatever did not change. Built by loading, then changed only by folding one
//! record at a time.

pub mod cluster_roles;
pub mod clusters;
pub mod condition_index;
pub mod conditions;
pub mod drain;
pub mod event_index;
pub mod fleet;
pub(crate) mod fold;
pub mod live_params;
pub mod lost_runs;
pub mod occupancy;
pub mod past_view;
pub mod runs;
pub mod schedules;
pub mod store_conditions;
pub mod store_view;
pub mod tally;
pub mod target_stores;
pub mod task_lists;
pub mod touched;
mod unrecorded;
pub mod version_resolution;
pub mod version_uses;
pub mod waits;
mod why;
pub mod why_cluster;
pub mod workflow_state;

use alloc::string::String;

use fleet::Fleet;

use alloc::sync::Arc;

use crate::access::Role;
use crate::records::authorities::Authorities;
use crate::records::freeze::{Freeze, FreezeKind, FreezeScope};
use crate::records::key::global::GlobalKey;
use crate::records::key::{AnyKey, Key};
use crate::records::server::{Leader, Server};
use crate::records::token::{JoinToken, Token};
use crate::records::versioned::Versioned;
use crate::rollout::environment::{RolloutEnvironment, Watch};
use crate::words::counter::{Epoch, LogPosition, Revision};
use crate::words::map::Map;
use crate::words::name::{EntityName, FreezeName, Namespace, RoleName, ServerName, ServiceName};
use crate::words::time::Timestamp;

/// All records at one revision of the store.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Revision of the store that this reflects.
    pub revision: Revision,
    /// Epoch of the installation.
    pub epoch: Epoch,
    /// Position at which the store's revisions begin: above those of every store that the records were in before.
    pub base: LogPosition,
    /// Records and indexes of each namespace.
    pub fleets: Map<Namespace, Fleet>,
    /// Freezes that apply in every namespace, by name.
    pub freezes: Map<FreezeName, Versioned<Freeze>>,
    /// Revision of the last change to these freezes.
    pub freezes_changed: Revision,
    /// The live servers, by name.
    pub servers: Map<ServerName, Versioned<Server>>,
    /// The leader among the servers.
    pub leader: Option<Versioned<Leader>>,
    /// API tokens, by their secret's SHA-256 in lower-case hex.
    pub tokens: Map<String, Versioned<Token>>,
    /// Join tokens, by their secret's SHA-256 in lower-case hex.
    pub join_tokens: Map<String, Versioned<JoinToken>>,
    /// Roles of the installation's own, by name.
    pub roles: Map<RoleName, Versioned<Role>>,
    /// The certificate authorities; none while there is the founding one alone.
    pub authorities: Option<Versioned<Authorities>>,
}

/// The revision of an optional record: zero when there is none.
#[must_use]
fn revision_of<T>(kept: Option<&Versioned<T>>) -> Revision {
    kept.map_or(Revision::ZERO, |kept| kept.revision)
}

impl World {
    /// The revision of a record's last write, of the namespace or of none; zero when there is none.
    #[must_use]
    pub fn revision(&self, namespace: &Namespace, key: &AnyKey) -> Revision {
        match key {
            AnyKey::Global(key) => self.global_revision(key),
            AnyKey::Namespaced(key) => {
                self.fleets.get(namespace).map_or(Revision::ZERO, |fleet| fleet.revision(key))
            }
        }
    }

    /// The revision of the last write of a record of no namespace; zero when there is none.
    #[must_use]
    pub fn global_revision(&self, key: &GlobalKey) -> Revision {
        match key {
            GlobalKey::Token(hash) => revision_of(self.tokens.get(hash)),
            GlobalKey::JoinToken(hash) => revision_of(self.join_tokens.get(hash)),
            GlobalKey::Role(name) => revision_of(self.roles.get(name)),
            GlobalKey::Freeze(name) => revision_of(self.freezes.get(name)),
            GlobalKey::Server(name) => revision_of(self.servers.get(name)),
            GlobalKey::Leader => revision_of(self.leader.as_ref()),
            GlobalKey::Authorities => revision_of(self.authorities.as_ref()),
        }
    }

    /// The position of a revision of the store.
    #[must_use]
    pub const fn position(&self, revision: Revision) -> LogPosition {
        LogPosition::new(self.base.get().saturating_add(revision.get()))
    }

    /// The revision at a position; `None` for one of an earlier store.
    #[must_use]
    pub fn revision_at(&self, position: LogPosition) -> Option<Revision> {
        position.get().checked_sub(self.base.get()).map(Revision::new)
    }

    /// Number of records. Events are not counted: memory holds the newest only.
    #[must_use]
    pub fn records(&self) -> usize {
        let Self {
            revision: _,
            epoch: _,
            base: _,
            freezes_changed: _,
            fleets,
            freezes,
            servers,
            leader,
            tokens,
            join_tokens,
            roles,
            authorities,
        } = self;
        let own = [
            freezes.size(),
            servers.size(),
            leader.iter().count(),
            tokens.size(),
            join_tokens.size(),
            roles.size(),
            authorities.iter().count(),
        ];
        own.into_iter().sum::<usize>() + fleets.values().map(Fleet::records).sum::<usize>()
    }

    /// The first stop in force that covers everything in a namespace.
    #[must_use]
    pub fn stop(&self, fleet: &Fleet, now: Timestamp) -> Option<Arc<Freeze>> {
        let all = self.freezes.values().chain(fleet.freezes.values()).map(|kept| &kept.value);
        let mut stops =
            all.filter(|freeze| freeze.kind == FreezeKind::Stop && freeze.scope == FreezeScope::Everything);
        stops.find(|freeze| freeze.is_in_force(now)).cloned()
    }

    /// The inputs of a decision about an entity besides its board.
    #[must_use]
    pub fn environment(&self, namespace: &Namespace, entity: &EntityName) -> RolloutEnvironment {
        let Some(fleet) = self.fleets.get(namespace) else { return RolloutEnvironment::default() };
        let policy = fleet.entities.get(entity).map(|kept| kept.value.policy_in_force());
        let needs = policy.into_iter().flat_map(|policy| &policy.needs);
        // A service in the catalogue counts its instances; any other name counts the targets of the entity of
        // that name.
        let offered = |service: &EntityName| {
            let known = ServiceName::parse(service.as_str()).ok();
            let known = known.and_then(|name| Some(fleet.catalogue.service(&name)?.functional()));
            let count = known.and_then(|count| u64::try_from(count).ok());
            Some((service.clone(), count.or_else(|| Some(fleet.boards.get(service)?.functional()))?))
        };
        let freezes = self.freezes.values().chain(fleet.freezes.values());
        RolloutEnvironment {
            freezes: freezes.map(|kept| kept.value.clone()).collect(),
            services: needs.filter_map(|need| offered(&need.service)).collect(),
            stores: fleet.stores_of(entity).map(Arc::new),
            answers: fleet.answers.get(entity).map(|kept| kept.value.clone()).unwrap_or_default(),
            watch: Watch::default(),
            epoch: self.epoch,
        }
    }
}

impl Fleet {
    /// Number of records. Events are not counted: memory holds the newest only.
    pub(crate) fn records(&self) -> usize {
        let of_nodes = [
            self.nodes.size(),
            self.presences.size(),
            self.expected.size(),
            self.reports.size(),
            self.registrations.size(),
            self.orders.size(),
            self.logs.size(),
        ];
        let of_entities = [
            self.entities.size(),
            self.progresses.size(),
            self.rollouts.size(),
            self.targets.size(),
            self.externals.size(),
            self.controllers.size(),
            self.answers.size(),
        ];
        let others = [
            self.services.size(),
            self.wait_cycles.iter().count(),
            self.clusters.size(),
            self.cluster_roles.size(),
            self.ensembles.size(),
            self.ensemble_members.size(),
            self.filters.size(),
            self.freezes.size(),
            self.pauses.size(),
            self.definitions.size(),
            self.runs.size(),
            self.jobs.size(),
            self.task_lists.size(),
            self.not_runnable.size(),
            self.params.size(),
            self.secrets.size(),
            self.slots.size(),
            self.node_params.size(),
            self.facts.size(),
            self.probes.size(),
            self.node_members.size(),
            self.cluster_views.size(),
            self.cluster_discoveries.size(),
            self.schedules.size(),
            self.reactions.size(),
            self.sinks.size(),
            self.sink_states.size(),
            self.profiles.size(),
            self.profile_revisions.size(),
        ];
        of_nodes.into_iter().chain(of_entities).chain(others).sum()
    }

    fn revision(&self, key: &Key) -> Revision {
        match key {
            Key::Node(name) => revision_of(self.nodes.get(name)),
            Key::NodeParams(name) => revision_of(self.node_params.get(name)),
            Key::Facts(name) => revision_of(self.facts.get(name)),
            Key::Probes(name) => revision_of(self.probes.get(name)),
            Key::NodeMembers(name) => revision_of(self.node_members.get(name)),
            Key::Presence(name) => revision_of(self.presences.get(name)),
            Key::Expected(name) => revision_of(self.expected.get(name)),
            Key::Report(name) => revision_of(self.reports.get(name)),
            Key::Registrations(name) => revision_of(self.registrations.get(name)),
            Key::Service(name) => revision_of(self.services.get(name)),
            Key::WaitCycles => revision_of(self.wait_cycles.as_ref()),
            Key::Order(name) => revision_of(self.orders.get(name)),
            Key::Log(node, category, entity) => {
                revision_of(self.logs.get(&(node.clone(), category.clone(), entity.clone())))
            }
            Key::Entity(name) => revision_of(self.entities.get(name)),
            Key::Progress(name) => revision_of(self.progresses.get(name)),
            Key::Rollout(name, number) => revision_of(self.rollouts.get(&(name.clone(), *number))),
            Key::Target(entity, target) => {
                self.targets.get(&(entity.clone(), target.clone())).copied().unwrap_or_default()
            }
            Key::ExternalTarget(entity, target) => {
                revision_of(self.externals.get(&(entity.clone(), target.clone())))
            }
            Key::Controllers(name) => revision_of(self.controllers.get(name)),
            Key::HookAnswers(name) => revision_of(self.answers.get(name)),
            Key::Cluster(name) => revision_of(self.clusters.get(name)),
            Key::ClusterRoles(name) => revision_of(self.cluster_roles.get(name)),
            Key::ClusterView(name) => revision_of(self.cluster_views.get(name)),
            Key::ClusterDiscovery(name) => revision_of(self.cluster_discoveries.get(name)),
            Key::Ensemble(name) => revision_of(self.ensembles.get(name)),
            Key::EnsembleMembers(name) => revision_of(self.ensemble_members.get(name)),
            Key::Filter(name) => revision_of(self.filters.get(name)),
            Key::Freeze(name) => revision_of(self.freezes.get(name)),
            Key::Definition(id) => revision_of(self.definitions.get(id)),
            Key::Run(name) => revision_of(self.runs.get(name)),
            Key::NotRunnable(name) => revision_of(self.not_runnable.get(name)),
            Key::Jobs(run, node) => revision_of(self.jobs.get(&(run.clone(), node.clone()))),
            Key::TaskList(run, node) => revision_of(self.task_lists.get(&(run.clone(), node.clone()))),
            Key::Param(key) => revision_of(self.params.get(key)),
            Key::Pause(name) => revision_of(self.pauses.get(name)),
            Key::Schedule(name) => revision_of(self.schedules.get(name)),
            Key::Reaction(name) => revision_of(self.reactions.get(name)),
            Key::Sink(name) => revision_of(self.sinks.get(name)),
            Key::SinkState(name) => revision_of(self.sink_states.get(name)),
            Key::Secret(name) => revision_of(self.secrets.get(name)),
            Key::Slot(name) => revision_of(self.slots.get(name)),
            Key::Profile(name) => revision_of(self.profiles.get(name)),
            Key::ProfileRevision(name, number) => {
                revision_of(self.profile_revisions.get(&(name.clone(), *number)))
            }
            Key::Event(_) => Revision::ZERO,
        }
    }
}
