//! Builds the agent, starts it on what its ledger says, and ends it in order.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::records::order::Order;
use bellwether_core::words::counter::Generation;
use bellwether_core::words::name::EntityName;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::{BoxFuture, Tasks};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::apply::log_store;
use crate::catalogue::{self, CatalogueSnapshot};
use crate::config::Config;
use crate::disk;
use crate::entity::{EntityContext, EntityTask};
use crate::files;
use crate::http;
use crate::identity::{Identity, IdentityError};
use crate::ledger::{EntityEntry, Ledger, LedgerContents, LedgerError, MetNeeds, RegisteredService};
use crate::link::contact::ServerContact;
use crate::link::server_list::SavedServers;
use crate::link::{self, ServerLink};
use crate::local::status_sink::StatusSink;
use crate::local::{self, LocalApi};
use crate::lock::{DirectoryLock, LockError};
use crate::names;
use crate::param_cache::ParamCache;
use crate::provision;
use crate::report_board::ReportBoard;
use crate::service::registry::{self, Registry};
use crate::service::{InstanceKey, LocalAddresses, PublishedInstance};
use crate::status;

/// Why an agent does not start. Fits after "could not ".
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The machine has never joined.
    #[error("find an identity in {dir}: join this machine first with `bellwether agent join`")]
    NotJoined {
        /// The data directory.
        dir: PathBuf,
    },
    /// The machine joined as something else than it is configured to be.
    #[error(
        "run as {configured}: this machine joined as {joined}; set agent.name and agent.namespace to that"
    )]
    Another {
        /// What the configuration says.
        configured: String,
        /// What it joined as.
        joined: String,
    },
    /// A directory cannot be made.
    #[error("make {dir}: {source}")]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Another agent is there.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// The key or certificate.
    #[error("{0}")]
    Identity(#[from] IdentityError),
    /// The ledger.
    #[error("{0}")]
    Ledger(#[from] LedgerError),
}

/// Runs the agent until `tasks` is asked to stop. A server that is away never ends it.
///
/// # Errors
/// [`RunError`] when it cannot start; nothing was touched then.
pub fn run(config: Config, clock: Clock, tasks: &Tasks) -> BoxFuture<'_, Result<(), RunError>> {
    Box::pin(run_here(config, clock, tasks))
}

#[expect(clippy::too_many_lines, reason = "the parts of an agent, one after the other")]
async fn run_here(config: Config, clock: Clock, tasks: &Tasks) -> Result<(), RunError> {
    let logs = config.data_dir.join("logs");
    for dir in [&config.data_dir, &logs] {
        disk::private_dir(dir).map_err(|source| RunError::Directory { dir: dir.clone(), source })?;
    }
    let _lock = DirectoryLock::take(&config.data_dir).await?;
    let identity = identity(&config)?;
    let level = tasks.child();
    let (ledger, kept) = Ledger::open(&config.data_dir, level.clone())?;
    let LedgerContents { order, entities, statuses, services: registered, met } = kept;
    let generation = order.as_ref().map_or(Generation::ZERO, |order| order.generation);
    let (orders, order) = watch::channel(order.map(Arc::new));
    let board = watch::Sender::new(ReportBoard { generation, ..ReportBoard::default() });
    provision::start(&config.entities, board.clone(), clock.clone(), &level);
    let contact = watch::Sender::new(ServerContact::default());
    let seed = RandomState::new().build_hasher().finish();
    tracing::info!(node = %identity.node, namespace = %identity.namespace, %generation, "the agent starts");
    let sources = status::StatusSources {
        identity: identity.clone(),
        orders: order.clone(),
        board: board.subscribe(),
        contact: contact.subscribe(),
    };
    let contacts = contact.subscribe();
    let node = identity.node.clone();
    let servers = (config.servers.clone(), SavedServers::load(&config.data_dir));
    let source = link::source(identity.clone(), servers, contact, (seed, clock.now()));
    let failed = watch::Sender::new(log_store::newest(&logs));
    let (wants, wanted) = watch::channel(wants_catalogue(&config));
    let wants = Arc::new(wants);
    let kept = ((registered, met), ledger.clone(), wants.clone());
    let discovery = Discovery::start(&config, kept, (contacts.clone(), &clock, seed), &level);
    let context = EntityContext {
        node: node.clone(),
        namespace: identity.namespace,
        shelf: ParamCache::new(&config.data_dir, source.clone(), level.clone()),
        ledger: ledger.clone(),
        logs,
        on_exit: config.services_on_exit,
        clock: clock.clone(),
        tasks: level.clone(),
        orders: order,
        snapshot: discovery.snapshot.subscribe(),
        board: board.clone(),
        failed: failed.clone(),
        seed,
    };
    let data_dir = config.data_dir.clone();
    let desk = StatusSink::start(statuses, ledger.clone(), board.clone(), &level);
    files::start(
        config.files.clone(),
        &files::FileContext {
            node: node.clone(),
            namespace: context.namespace.clone(),
            journals: ledger.catalogue_files(),
            board: board.clone(),
            snapshot: discovery.snapshot.subscribe(),
            contact: contacts,
            addresses: discovery.addresses.clone(),
            clock: clock.clone(),
            seed,
            tasks: level.clone(),
        },
    );
    let local = LocalApi {
        sources: sources.clone(),
        statuses: desk,
        registry: discovery.registry,
        services: discovery.services.clone(),
        board: board.subscribe(),
        snapshot: discovery.snapshot.subscribe(),
        wants_catalogue: wants,
        clock: clock.clone(),
    };
    let answering = level.spawn("local", local::serve(local, data_dir.clone(), level.clone()));
    level.spawn("status", sources.run(data_dir.clone(), clock.clone(), level.clone()));
    let link = ServerLink {
        source,
        node,
        data_dir,
        ledger,
        orders,
        board,
        failed,
        services: discovery.services,
        addresses: discovery.addresses,
        snapshot: discovery.snapshot,
        wants_catalogue: wanted,
        clock,
        seed,
    };
    link.start(&level);
    EntityTasks { config, kept: entities, context, working: BTreeMap::new() }.work().await;
    // While the lock is held: the next agent's socket has the same name.
    if let Err(error) = answering.await {
        tracing::error!(%error, "could not wait for the local socket to close");
    }
    tracing::info!("the agent has ended");
    Ok(())
}

/// Whether anything here is made of what others offer.
fn wants_catalogue(config: &Config) -> bool {
    let recipes = || config.entities.values();
    let made_of_services = recipes().any(|recipe| !recipe.needs.is_empty() || !recipe.follows.is_empty())
        || config.services.iter().any(|(_, service, _)| !service.needs.is_empty());
    config.names.is_some() || config.http.is_some() || !config.files.is_empty() || made_of_services
}

/// What this machine offers, and what it knows of what others offer.
struct Discovery {
    registry: Registry,
    services: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    addresses: LocalAddresses,
    snapshot: watch::Sender<Arc<CatalogueSnapshot>>,
}

impl Discovery {
    fn start(
        config: &Config,
        ((registered, met), ledger, wants_catalogue): (
            (Vec<RegisteredService>, MetNeeds),
            Ledger,
            Arc<watch::Sender<bool>>,
        ),
        (contact, clock, seed): (watch::Receiver<ServerContact>, &Clock, u64),
        level: &Tasks,
    ) -> Self {
        // A copy that was not kept up to date is worth nothing: whoever asks for one later gets it whole.
        let kept_up = *wants_catalogue.borrow();
        let snapshot = if kept_up { catalogue::load(&config.data_dir) } else { CatalogueSnapshot::default() };
        let snapshot = watch::Sender::new(Arc::new(snapshot));
        let services = watch::Sender::new(BTreeMap::new());
        let registry = Registry::start(registry::RegistryContext {
            configured: config.services.clone(),
            registered,
            met,
            ledger,
            board: services.clone(),
            snapshot: snapshot.subscribe(),
            wants_catalogue,
            clock: clock.clone(),
            node: config.name.to_string(),
            seed,
            tasks: level.clone(),
        });
        let kept = catalogue::keep(snapshot.subscribe(), config.data_dir.clone(), level.clone());
        level.spawn("catalogue", kept);
        if let Some(names) = config.names.clone() {
            let contact = contact.clone();
            level.spawn("names", names::serve(names, snapshot.subscribe(), contact, level.clone()));
        }
        if let Some(http) = config.http.clone() {
            let sources =
                http::HttpSources { snapshot: snapshot.subscribe(), contact, clock: clock.clone(), seed };
            level.spawn("http", http::serve(http, sources, level.clone()));
        }
        let addresses = LocalAddresses::watch(config.addresses.clone(), level);
        Self { registry, services: services.subscribe(), addresses, snapshot }
    }
}

fn identity(config: &Config) -> Result<Identity, RunError> {
    let dir = config.data_dir.clone();
    let identity = Identity::load(&dir)?.ok_or(RunError::NotJoined { dir })?;
    if identity.node == config.name && identity.namespace == config.namespace {
        return Ok(identity);
    }
    Err(RunError::Another {
        configured: format!("{}/{}", config.namespace, config.name),
        joined: format!("{}/{}", identity.namespace, identity.node),
    })
}

/// The entities at work: those with a recipe from the start, others once an order names them.
struct EntityTasks {
    config: Config,
    kept: BTreeMap<EntityName, EntityEntry>,
    context: EntityContext,
    working: BTreeMap<EntityName, JoinHandle<Option<()>>>,
}

impl EntityTasks {
    /// Keeps every entity at work until the level stops, and waits until each has left its process as configured.
    async fn work(mut self) {
        let token = self.context.tasks.token();
        let recipes: Vec<EntityName> = self.config.entities.keys().cloned().collect();
        for name in recipes {
            self.start(name);
        }
        let mut orders = self.context.orders.clone();
        loop {
            let order: Option<Arc<Order>> = orders.borrow_and_update().clone();
            let named = order.iter().flat_map(|order| order.content.entities.keys());
            for name in named.cloned().collect::<Vec<_>>() {
                self.start(name);
            }
            tokio::select! {
                () = token.cancelled() => break,
                changed = orders.changed() => if changed.is_err() {
                    break;
                },
            }
        }
        for (name, worker) in self.working {
            if let Err(error) = worker.await {
                tracing::error!(entity = %name, %error, "could not wait for an entity's work to end");
            }
        }
    }

    fn start(&mut self, name: EntityName) {
        if self.working.contains_key(&name) {
            return;
        }
        let recipe = self.config.entities.get(&name).cloned();
        let entry = self.kept.remove(&name).unwrap_or_default();
        let entity = EntityTask::new(name.clone(), recipe, entry, self.context.clone());
        self.working.insert(name, self.context.tasks.spawn("entity", entity.run()));
    }
}
