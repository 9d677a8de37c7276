//! State that all handlers share.

use std::sync::Arc;

use bellwether_core::records::server::Leader;
use bellwether_core::records::versioned::Versioned;
use bellwether_core::rollout::environment::Watch;
use bellwether_core::rollout::why::WhyTime;
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::{Namespace, ServerName};
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::admission::Admission;
use super::authentication_failures::AuthenticationFailures;
use super::reads::ReadThreads;
use crate::audit::AuditLog;
use crate::config::etcd::Etcd;
use crate::decider_failures::DeciderFailures;
use crate::discovery::settings::DiscoverySettings;
use crate::earlier_keys::EarlierKeys;
use crate::freshness::Freshness;
use crate::hooks::settings::HookSettings;
use crate::installation::Installation;
use crate::key_files::KeyDir;
use crate::known_servers::KnownServers;
use crate::leadership::Leadership;
use crate::log_requests::LogRequests;
use crate::metrics::Metrics;
use crate::pki::Pki;
use crate::secrets::provider::Providers;
use crate::sessions::Sessions;
use crate::set_back::SetBackNotice;
use crate::sinks::settings::SinkSettings;
use crate::timing::keeper::ClockTable;
use crate::transactor::Transactor;
use crate::world::RelistHandle;

/// State that all handlers share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AppState(Arc<AppContext>);

/// The fields of an [`AppState`].
#[derive(Debug)]
pub struct AppContext {
    /// The records of the installation.
    pub records: RecordContext,
    /// This server and its installation.
    pub identity: ServerIdentity,
    /// This server's part among several.
    pub cluster: ClusterContext,
    /// Calls in progress.
    pub traffic: TrafficContext,
    /// The clock.
    pub clock: Clock,
    /// The audit log of this server.
    pub audit: AuditLog,
    /// The programs that read secrets from elsewhere.
    pub providers: Providers,
    /// Settings of sinks.
    pub sinks: Arc<SinkSettings>,
    /// Settings of the discovery of members.
    pub discovery: Arc<DiscoverySettings>,
    /// Settings of hooks.
    pub hooks: Arc<HookSettings>,
    /// Cancelled when the server stops: blocking requests return at once.
    pub stop: CancellationToken,
}

/// The records, and what reads and changes them.
#[derive(Debug)]
pub struct RecordContext {
    /// Runs operations.
    pub transactor: Transactor,
    /// Brings the world up to date with the store.
    pub relist: RelistHandle,
    /// The store, for events and logs that are not in the world.
    pub store: Store,
    /// Tells that the store was set back.
    pub set_back: SetBackNotice,
}

/// This server and the installation that it serves.
#[derive(Debug)]
pub struct ServerIdentity {
    /// This server's name.
    pub name: ServerName,
    /// The installation of the store.
    pub installation: Installation,
    /// The certificate authority.
    pub pki: Pki,
    /// Where the keys are that another server needs.
    pub key_files: KeyDir,
    /// The etcd that several servers share; none for a store of this server's own.
    pub etcd: Option<Etcd>,
}

/// This server's membership and leadership among the servers of an installation.
#[derive(Debug)]
pub struct ClusterContext {
    /// The revision at which this server acquired its membership, while it has it.
    pub membership: watch::Receiver<Option<Revision>>,
    /// How current this server's world is.
    pub freshness: Freshness,
    /// The servers that are not registered now.
    pub known: KnownServers,
    /// Whether this server leads.
    pub leadership: Leadership,
    /// Since when the control plane could hear every target, as this server's reconciler has it.
    pub watches: watch::Receiver<Watch>,
    /// What its deciders cannot commit.
    pub failures: DeciderFailures,
    /// What this server knows of all servers' clocks.
    pub clocks: watch::Receiver<ClockTable>,
}

impl ClusterContext {
    /// Since when the control plane could hear every target. Another server that leads began no later than it acquired the
    /// leadership.
    pub(crate) fn watch(&self, world: &World) -> Watch {
        let own = *self.watches.borrow();
        match (&world.leader, self.leadership.term()) {
            (Some(leader), None) => Watch { since: leader.value.since, ..own },
            (Some(_) | None, _) => own,
        }
    }
}

/// Limits and counters of the calls in progress, and the sessions of agents.
#[derive(Debug)]
pub struct TrafficContext {
    /// Concurrency limits.
    pub admission: Admission,
    /// Counters.
    pub metrics: Metrics,
    /// Agents' sessions.
    pub sessions: Sessions,
    /// Failed authentications, by network.
    pub authentication_failures: AuthenticationFailures,
    /// Nodes that have shown a key that they had before.
    pub earlier_keys: EarlierKeys,
    /// Readers of logs of jobs.
    pub log_requests: LogRequests,
    /// The threads on which reads of people run.
    pub reads: ReadThreads,
}

impl AppState {
    /// The state of this context.
    #[must_use]
    pub fn new(context: AppContext) -> Self {
        Self(Arc::new(context))
    }

    /// The newest world.
    pub(crate) fn world(&self) -> Arc<World> {
        self.0.records.transactor.world()
    }

    /// The time of an explanation that is given now.
    pub(crate) fn why_time(&self, world: &World) -> WhyTime {
        WhyTime { now: self.clock.now(), watch: self.cluster.watch(world) }
    }

    /// The leader, as this server knows it. It does not say of itself that it leads once its lease may be over, though a world
    /// that is not current still shows it.
    pub(crate) fn leader<'a>(&self, world: &'a World) -> Option<&'a Versioned<Leader>> {
        let leads = self.cluster.leadership.term().is_some();
        world.leader.as_ref().filter(|leader| leads || leader.value.server != self.identity.name)
    }

    /// Whether a namespace exists: `default`, or one with records.
    pub(crate) fn known(&self, namespace: &Namespace) -> bool {
        self.world().has_namespace(namespace)
    }
}

impl std::ops::Deref for AppState {
    type Target = AppContext;
    fn deref(&self) -> &AppContext {
        &self.0
    }
}
