//! Builds the agent from its ledger, starts it, and stops it in order.

mod error;
mod place;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellwether_core::words::counter::Generation;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::{BoxFuture, Tasks};
use tokio::sync::{Semaphore, watch};

pub use self::error::RunError;
pub use self::place::has_joined;
use self::place::{directories, identity};
use crate::apply::former::ProcessOwner;
use crate::apply::former_work;
use crate::apply::log_store;
use crate::check_store::{CheckOwner, CheckStore};
use crate::config::Config;
use crate::descriptors;
use crate::discovery::{self, Discovery, DiscoveryContext};
use crate::ensemble::{self, EnsembleParts};
use crate::entity::EntityContext;
use crate::entity::step_gate::StepGate;
use crate::entity_tasks::EntityTasks;
use crate::facts::FactReader;
use crate::files;
use crate::identity::Identity;
use crate::ledger::{Ledger, LedgerContents};
use crate::link::connection::{Connection, ConnectionSettings};
use crate::link::contact::ServerContact;
use crate::link::server_list::SavedServers;
use crate::link::source::ParamSource;
use crate::link::source::{CertificateSource, JobSource};
use crate::link::{LinkOwner, MachineSources, ServerLink};
use crate::local::status_sink::StatusSink;
use crate::local::{self, LocalApi};
use crate::lock::DirectoryLock;
use crate::logical::{HostContext, LogicalNodes};
use crate::metrics::MetricSources;
use crate::param_cache::ParamCache;
use crate::probe::StoreProbes;
use crate::provision;
use crate::reload::{ConfigSource, ConfigState, ReloadRequests, Reloader};
use crate::report_board::ReportBoard;
use crate::secret_cache::SecretCache;
use crate::service::process_phase::EntityInstances;
use crate::service::process_starts::ProcessStarts;
use crate::status;

/// Longest time for the tasks of one configuration to end before the next one is used; a connection that a client keeps open
/// is cut then.
const GRACE: Duration = Duration::from_secs(20);

/// Runs the agent until `tasks` is asked to stop. A server that cannot be reached never ends it.
///
/// # Errors
/// [`RunError`] if the agent cannot start; it has changed nothing on this node then.
pub fn run(config: Config, clock: Clock, tasks: &Tasks) -> BoxFuture<'_, Result<(), RunError>> {
    run_from(ConfigSource::fixed(), config, clock, tasks)
}

/// The same with a configuration that can be reloaded.
///
/// # Errors
/// [`RunError`].
pub fn run_from(
    source: ConfigSource,
    config: Config,
    clock: Clock,
    tasks: &Tasks,
) -> BoxFuture<'_, Result<(), RunError>> {
    descriptors::close_inherited_on_exec();
    Box::pin(run_here(source, config, clock, tasks))
}

async fn run_here(
    source: ConfigSource,
    mut config: Config,
    clock: Clock,
    tasks: &Tasks,
) -> Result<(), RunError> {
    let logs = directories(&config.data_dir)?;
    let _lock = DirectoryLock::take(&config.data_dir).await?;
    let mut reloader = Reloader::new(source, &config, clock.clone());
    for reason in config.refused_definitions.values() {
        tracing::error!("cannot {reason}; the agent runs without it");
    }
    loop {
        let identity = identity(&config)?;
        let life = tasks.subgroup();
        let (ledger, contents) = Ledger::open(&config.data_dir, life.clone())?;
        let steps = StepGate::default();
        let decommissioned = Arc::new(OnceLock::new());
        let agent = Agent {
            config: config.clone(),
            clock: clock.clone(),
            tasks: life.clone(),
            identity,
            ledger,
            logs: logs.clone(),
            steps: steps.clone(),
            reload: reloader.requests.clone(),
            config_state: reloader.state.subscribe(),
            decommissioned: decommissioned.clone(),
        };
        let mut running = std::pin::pin!(agent.run(contents));
        let reloaded = async {
            let next = reloader.next(&config, &life).await;
            tokio::select! {
                () = steps.close() => next,
                never = reloader.refuse() => match never {},
            }
        };
        // Ending in order, the agent is polled on; a request that is dropped is answered by its end.
        let next = tokio::select! {
            () = &mut running => None,
            next = reloaded => Some(next),
        };
        if next.is_some() {
            life.cancel();
            running.await;
        }
        if let Err(error) = life.stop(GRACE).await {
            tracing::error!("the agent did not end in order: cannot {error}");
            break;
        }
        if let Some(reason) = decommissioned.get().cloned() {
            status::keep_decommissioned(&config.data_dir, &reason);
            return Err(RunError::Decommissioned { reason });
        }
        let Some(next) = next.filter(|_| !tasks.token().is_cancelled()) else { break };
        config = next;
        reloader.replaced(&config);
        tracing::info!("configuration reloaded");
    }
    tracing::info!("agent stopped");
    Ok(())
}

/// What every part of the agent is built from.
struct Agent {
    config: Config,
    clock: Clock,
    tasks: Tasks,
    identity: Identity,
    ledger: Ledger,
    logs: PathBuf,
    steps: StepGate,
    reload: ReloadRequests,
    config_state: watch::Receiver<ConfigState>,
    decommissioned: Arc<OnceLock<String>>,
}

impl Agent {
    #[expect(clippy::too_many_lines, reason = "the parts of an agent, one after the other")]
    /// Starts every part, and waits for the end of those that must end in order.
    async fn run(self, contents: LedgerContents) {
        let Self { config, clock, tasks, identity, ledger, logs, steps, .. } = self;
        let LedgerContents {
            order,
            entities,
            statuses,
            services: registered,
            met,
            live_params,
            handovers,
            members,
        } = contents;
        let seed = RandomState::new().build_hasher().finish();
        let generation = order.as_ref().map_or(Generation::ZERO, |order| order.generation);
        let check_store = CheckStore::open(&config.data_dir, &clock, &tasks);
        check_store.retain(|owner| match owner {
            CheckOwner::Entity(name) => config.entities.contains_key(name),
            CheckOwner::Service(_) => true,
        });
        let board = ReportBoard {
            generation,
            ledger: Some(ledger.id().clone()),
            allows_tasks: config.allows_tasks,
            hosts_logical: config.hosts_logical,
            runs_members: config.ensembles.is_some(),
            ..ReportBoard::default()
        };
        let board = watch::Sender::new(board.resumed(&config, order.as_ref(), &entities, &check_store));
        let (orders, order) = watch::channel(order.map(Arc::new));
        provision::start(&config.entities, board.clone(), clock.clone(), &tasks);
        let contact = watch::Sender::new(ServerContact::default());
        tracing::info!(node = %identity.node, namespace = %identity.namespace, %generation, "agent starting");
        let (wants, wanted) = watch::channel(discovery::wants_catalogue(&config));
        let wants = Arc::new(wants);
        let phases = watch::Sender::default();
        let discovery = Discovery::start(
            &config,
            DiscoveryContext {
                registered,
                met,
                ledger: ledger.clone(),
                check_store: check_store.clone(),
                processes: phases.subscribe(),
                wants_catalogue: wants.clone(),
                contact: contact.subscribe(),
                clock: clock.clone(),
                seed,
                tasks: tasks.clone(),
            },
        );
        let file_context = files::FileContext {
            node: identity.node.clone(),
            namespace: identity.namespace.clone(),
            journals: ledger.catalogue_files(),
            board: board.clone(),
            snapshot: discovery.snapshot.subscribe(),
            contact: contact.subscribe(),
            addresses: discovery.addresses.clone(),
            clock: clock.clone(),
            seed,
            tasks: tasks.clone(),
        };
        files::start(config.files.clone(), &file_context);
        let reports = watch::Sender::default();
        let sources = status::StatusSources {
            identity: identity.clone(),
            orders: order.clone(),
            board: board.subscribe(),
            contact: contact.subscribe(),
            config: self.config_state,
            snapshot: discovery.snapshot.subscribe(),
            members: reports.subscribe(),
            unwritable: watch::Sender::new(None),
        };
        let starts = ProcessStarts::default();
        let (status, services) = (sources.clone(), discovery.services.clone());
        let metrics = MetricSources { status, services, starts: starts.clone() };
        discovery.serve_http(&config, metrics, (clock.clone(), seed), &tasks);
        let local = LocalApi {
            reload: self.reload,
            sources: sources.clone(),
            statuses: StatusSink::start(statuses, ledger.clone(), board.clone(), &tasks),
            registry: discovery.registry.clone(),
            services: discovery.services.clone(),
            board: board.subscribe(),
            snapshot: discovery.snapshot.subscribe(),
            wants_catalogue: wants,
            clock: clock.clone(),
        };
        let answering = tasks.spawn("local", local::serve(local, config.data_dir.clone(), tasks.clone()));
        tasks.spawn("status", sources.run(config.data_dir.clone(), clock.clone(), tasks.clone()));
        let namespace = identity.namespace.clone();
        let connection = Connection::new(ConnectionSettings {
            identity: identity.clone(),
            servers: config.servers.clone(),
            saved: SavedServers::load(&config.data_dir),
            contact,
            seed,
            now: clock.now(),
        });
        let source = ParamSource::new(connection, namespace, identity.node.clone());
        let live_params = watch::Sender::new(Arc::new(live_params));
        let (acknowledgements, acknowledged) = watch::channel(None);
        let unsent_logs = watch::Sender::new(log_store::newest(&logs));
        let facts = FactReader {
            root: "/".into(),
            addresses: discovery.addresses.clone(),
            orders: orders.subscribe(),
            tasks: tasks.clone(),
        };
        let facts = facts.start();
        let work = config.data_dir.join("work");
        former_work::remove(&work, &tasks);
        let stores = StoreProbes::start(&config, seed, &tasks, (&ledger, handovers));
        let owner = ProcessOwner::new(&config.data_dir, Some(ledger.id().clone()));
        let parts = EnsembleParts {
            config: &config,
            logs: logs.clone(),
            ledger: ledger.members(),
            owner: owner.clone(),
            addresses: discovery.addresses.clone(),
            orders: order.clone(),
            published: discovery.published.clone(),
            reports,
            control_plane: CertificateSource::new(source.clone()),
            clock: clock.clone(),
            seed,
        };
        let members = ensemble::start(parts, members, &tasks);
        let context = EntityContext {
            handovers: stores.handovers.clone(),
            node: identity.node.clone(),
            namespace: identity.namespace,
            params: ParamCache::new(&config.data_dir, source.clone(), tasks.clone()),
            secrets: SecretCache::new(&config.data_dir, source.clone(), tasks.clone()),
            ledger: ledger.clone(),
            check_store: check_store.clone(),
            logs,
            owner,
            on_exit: config.services_on_exit,
            steps,
            lane: Arc::new(Semaphore::new(1)),
            boot_reason: watch::Sender::default(),
            runs_here: watch::Sender::default(),
            facts: Some(facts.clone()),
            jobs: JobSource::new(source.clone()),
            work,
            lease: None,
            boot_commands: config.boot_commands.clone(),
            clock: clock.clone(),
            tasks: tasks.clone(),
            orders: order,
            snapshot: discovery.snapshot.subscribe(),
            live_params: live_params.subscribe(),
            board: board.clone(),
            instances: EntityInstances {
                phases,
                published: discovery.services.clone(),
                acknowledged,
                starts,
            },
            unsent_logs: unsent_logs.clone(),
            seed,
        };
        let hosted = config.hosts_logical.then(|| HostContext {
            connection: source.connection(),
            servers: config.servers.clone(),
            data_dir: config.data_dir.clone(),
            clock: clock.clone(),
            seed,
            tasks: tasks.clone(),
            decommissioned: self.decommissioned.clone(),
        });
        let hosted = hosted.map(|context| LogicalNodes::new(context, orders.subscribe()));
        let hosting = hosted.map(|nodes| tasks.spawn("logical nodes", nodes.run()));
        let link = ServerLink {
            source,
            data_dir: config.data_dir.clone(),
            logs: context.logs.clone(),
            ledger,
            orders,
            board,
            unsent_logs,
            owner: LinkOwner::Machine(MachineSources {
                facts,
                members,
                stores,
                services: discovery.services,
                acknowledgements,
                known: discovery.registry.known.clone(),
                addresses: discovery.addresses,
            }),
            snapshot: discovery.snapshot,
            wants_catalogue: wanted,
            live_params: config.renders_files().then_some(live_params),
            clock,
            seed,
            decommissioned: self.decommissioned,
        };
        link.start(&tasks);
        EntityTasks::new(config, entities, context).run().await;
        if let Some(hosting) = hosting
            && let Err(error) = hosting.await
        {
            tracing::error!(%error, "the task of logical nodes did not end in order");
        }
        check_store.close();
        // While the lock is held: the next agent's socket has the same name.
        if let Err(error) = answering.await {
            tracing::error!(%error, "the task of the local socket did not end in order");
        }
    }
}
