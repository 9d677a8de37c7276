//! One logical node: what an agent is without a machine. It has a link to the control plane and runs workflows; it has no services, no
//! facts, and nothing that is configured on the host.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bellwether_api::v1::node_params::LiveParams;
use bellwether_core::records::order::Order;
use bellwether_core::words::counter::Generation;
use bellwether_core::words::name::NodeName;
use bellwether_rt::tasks::Tasks;
use tokio::sync::{Semaphore, watch};

use super::context::HostContext;
use crate::apply::former::ProcessOwner;
use crate::apply::former_work;
use crate::apply::log_store;
use crate::apply::log_store::UnsentLogs;
use crate::catalogue::CatalogueSnapshot;
use crate::check_store::CheckStore;
use crate::config::{BootCommands, Config, OnExit};
use crate::entity::EntityContext;
use crate::entity::step_gate::StepGate;
use crate::entity_tasks::EntityTasks;
use crate::lease::Lease;
use crate::ledger::{Ledger, LedgerError};
use crate::link::connection::{Connection, ConnectionSettings};
use crate::link::contact::ServerContact;
use crate::link::server_list::SavedServers;
use crate::link::source::{JobSource, ParamSource};
use crate::link::{LinkOwner, ServerLink};
use crate::param_cache::ParamCache;
use crate::probe::handover::Handovers;
use crate::report_board::ReportBoard;
use crate::secret_cache::SecretCache;
use crate::service::process_phase::{AcknowledgedRegistrations, EntityInstances};
use crate::service::process_starts::ProcessStarts;
use crate::service::{InstanceKey, PublishedInstance};

/// A logical node whose link has been started.
pub(super) struct LogicalNode {
    lease: Lease,
    tasks: EntityTasks,
    life: Tasks,
    /// What its entities read and nothing changes: a logical node has no copy of the catalogue, and registers nothing.
    _still: StillSources,
}

#[derive(Default)]
struct StillSources {
    snapshot: watch::Sender<Arc<CatalogueSnapshot>>,
    live_params: watch::Sender<Arc<LiveParams>>,
    acknowledged: watch::Sender<AcknowledgedRegistrations>,
    published: watch::Sender<BTreeMap<InstanceKey, PublishedInstance>>,
}

/// What the entities of a logical node work with.
struct Parts {
    ledger: Ledger,
    check_store: CheckStore,
    board: watch::Sender<ReportBoard>,
    order: watch::Receiver<Option<Arc<Order>>>,
    source: ParamSource,
    lease: Lease,
}

impl Parts {
    fn context(
        self,
        host: &HostContext,
        (config, still, unsent_logs): (&Config, &StillSources, watch::Sender<UnsentLogs>),
        life: &Tasks,
    ) -> EntityContext {
        let Self { ledger, check_store, board, order, source, lease } = self;
        let dir = &config.data_dir;
        let work = dir.join("work");
        former_work::remove(&work, life);
        EntityContext {
            handovers: Handovers::default(),
            node: config.name.clone(),
            namespace: config.namespace.clone(),
            params: ParamCache::new(dir, source.clone(), life.clone()),
            secrets: SecretCache::new(dir, source.clone(), life.clone()),
            owner: ProcessOwner::new(dir, Some(ledger.id().clone())),
            ledger,
            check_store,
            logs: dir.join("logs"),
            on_exit: config.services_on_exit,
            steps: StepGate::default(),
            lane: Arc::new(Semaphore::new(1)),
            boot_reason: watch::Sender::default(),
            runs_here: watch::Sender::default(),
            facts: None,
            jobs: JobSource::new(source),
            work,
            lease: Some(lease),
            boot_commands: config.boot_commands.clone(),
            clock: host.clock.clone(),
            tasks: life.clone(),
            orders: order,
            snapshot: still.snapshot.subscribe(),
            live_params: still.live_params.subscribe(),
            board,
            instances: EntityInstances {
                phases: watch::Sender::default(),
                published: still.published.subscribe(),
                acknowledged: still.acknowledged.subscribe(),
                starts: ProcessStarts::default(),
            },
            unsent_logs,
            seed: host.seed,
        }
    }
}

/// The control plane as a logical node reaches it: by a connection of its own, with the certificate of its host.
fn source(host: &HostContext, (name, dir): (&NodeName, &Path), life: &Tasks) -> ParamSource {
    let identity = host.connection.identity().acting_as(name);
    let namespace = identity.namespace.clone();
    let connection = Connection::new(ConnectionSettings {
        identity,
        servers: host.servers.clone(),
        saved: SavedServers::load(dir),
        contact: watch::Sender::new(ServerContact::default()),
        seed: host.seed,
        now: host.clock.now(),
    });
    let follows = follow_certificate(host.connection.clone(), connection.clone(), life.clone());
    life.spawn("certificate", follows);
    ParamSource::new(connection, namespace, name.clone())
}

impl LogicalNode {
    /// Opens the ledger of a logical node, and starts its link. Nothing runs on it before its lease is held.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub(super) fn open(
        host: &HostContext,
        (name, dir): (&NodeName, &Path),
        (lease, life): (&Lease, &Tasks),
    ) -> Result<Self, LedgerError> {
        let (ledger, contents) = Ledger::open(dir, life.clone())?;
        let check_store = CheckStore::open(dir, &host.clock, life);
        let config = config(host, name, dir);
        let order = contents.order;
        let board = ReportBoard {
            generation: order.as_ref().map_or(Generation::ZERO, |order| order.generation),
            ledger: Some(ledger.id().clone()),
            allows_tasks: true,
            ..ReportBoard::default()
        };
        let board =
            watch::Sender::new(board.resumed(&config, order.as_ref(), &contents.entities, &check_store));
        let (orders, order) = watch::channel(order.map(Arc::new));
        let source = source(host, (name, dir), life);
        let unsent_logs = watch::Sender::new(log_store::newest(&dir.join("logs")));
        let still = StillSources::default();
        let parts = Parts {
            ledger: ledger.clone(),
            check_store,
            board: board.clone(),
            order,
            source: source.clone(),
            lease: lease.clone(),
        };
        let context = parts.context(host, (&config, &still, unsent_logs.clone()), life);
        let link = ServerLink {
            source,
            data_dir: dir.to_owned(),
            logs: dir.join("logs"),
            ledger,
            orders,
            board,
            unsent_logs,
            snapshot: still.snapshot.clone(),
            wants_catalogue: watch::channel(false).1,
            live_params: None,
            clock: host.clock.clone(),
            seed: host.seed,
            decommissioned: host.decommissioned.clone(),
            owner: LinkOwner::Logical(lease.renewal()),
        };
        link.start(life);
        let tasks = EntityTasks::new(config, contents.entities, context);
        Ok(Self { lease: lease.clone(), tasks, life: life.clone(), _still: still })
    }

    /// Runs what its order names once its lease is held, until it is to end.
    pub(super) async fn run(self) {
        let token = self.life.token();
        // Both arms only wait.
        tokio::select! {
            () = self.lease.held() => self.tasks.run().await,
            () = token.cancelled() => {}
        }
    }
}

/// The configuration of a logical node: nothing but where it is. It has no machine that it could reboot.
fn config(host: &HostContext, name: &NodeName, dir: &Path) -> Config {
    let none = || {
        let complaint = "echo 'a logical node has no machine to reboot or power off' >&2; exit 1";
        ["/bin/sh", "-c", complaint].map(str::to_owned).to_vec()
    };
    Config {
        name: name.clone(),
        namespace: host.connection.identity().namespace,
        servers: host.servers.clone(),
        data_dir: dir.to_owned(),
        services_on_exit: OnExit::Stop,
        allows_tasks: true,
        hosts_logical: false,
        ensembles: None,
        boot_commands: BootCommands { reboot: none(), power_off: none() },
        entities: BTreeMap::new(),
        probes: BTreeMap::new(),
        actions: BTreeMap::new(),
        services: Vec::new(),
        refused_definitions: BTreeMap::new(),
        addresses: None,
        files: Vec::new(),
        names: None,
        http: None,
    }
}

/// Uses the certificate of the host, also after it was renewed.
async fn follow_certificate(host: Connection, own: Connection, life: Tasks) {
    let token = life.token();
    loop {
        let in_use = own.identity();
        // Both arms only wait.
        let renewed = tokio::select! {
            () = token.cancelled() => return,
            renewed = host.renewed_from(&in_use) => renewed,
        };
        let Some(renewed) = renewed else { return };
        own.renewed(renewed.acting_as(&in_use.node));
    }
}
