//! Builds and starts a server, and stops it in order.

mod believed_clock;
mod check;
mod currency;
mod deciding;
mod dropped_tail;
pub(crate) mod error;
mod fault;
mod sockets;
pub(crate) mod store;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::{BoxFuture, StopError, Tasks};
use bellwether_store::Store;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

pub use self::check::{StoreSeen, check};
use self::check::{check_installation, has_authority};
pub use self::error::RunError;
pub use self::fault::ServerFault;
use self::sockets::Sockets;
use self::store::open_store;
use crate::audit::AuditLog;
use crate::authorities;
use crate::config::{Config, OnStoreFailure};
use crate::decider_failures::DeciderFailures;
use crate::earlier_keys::EarlierKeys;
use crate::freshness::Freshness;
use crate::http::reads::ReadThreads;
use crate::http::{
    self, Admission, AppContext, AppState, AuthenticationFailures, ClusterContext, RecordContext,
    ServerIdentity, TrafficContext,
};
pub use crate::init::{InitialisedInstallation, init};
use crate::installation::Installation;
use crate::key_files::{KeyDir, own_files};
use crate::known_servers::KnownServers;
use crate::leadership::Leadership;
use crate::log_requests::LogRequests;
use crate::membership;
use crate::metrics::Metrics;
use crate::names;
use crate::pki::Pki;
use crate::quotas::NodeQuotas;
use crate::records::commit::{Committer, Fence};
use crate::secrets::keyring::{KEYRING_FILE, Keyring};
use crate::secrets::provider::Providers;
use crate::secrets::stored;
use crate::sessions::Sessions;
use crate::set_back::{SetBackMark, SetBackNotice};
use crate::store_rules::StoreRules;
use crate::timing::keeper::TimeKeeper;
use crate::timing::peers::{HttpPeers, PeerTimes};
use crate::timing::start;
use crate::transactor::Transactor;
use crate::world::{self, RelistHandle, WorldError, WorldFollower};
use crate::world_view::{PublishedWorld, WorldPublisher};

/// Longest time for requests in flight to finish when the server stops.
const GRACE: Duration = Duration::from_secs(10);

/// Length of the accept queue, if the system allows as much: a whole fleet may connect at once. A connection that finds it
/// full is retried by its client's system after one to three seconds.
const BACKLOG: u32 = 16_384;

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// Address of the TLS listener.
    pub address: SocketAddr,
    /// Address of the listener without TLS, if there is one.
    pub plain_address: Option<SocketAddr>,
    /// The certificates of the authorities that clients trust (PEM).
    pub ca_pem: String,
    app: AppState,
    tasks: Tasks,
    store: Store,
    /// What requests in flight and deciders still need once the listeners have stopped: world and committer.
    inner_tasks: Tasks,
    /// Tasks of the store, which stop last.
    store_tasks: Tasks,
    on_store_failure: OnStoreFailure,
    set_back: SetBackMark,
}

impl Server {
    /// Starts a server of an initialised installation. It accepts connections once this returns.
    ///
    /// # Errors
    /// [`RunError`] naming what prevents the start.
    pub fn start(config: &Config, clock: Clock) -> BoxFuture<'_, Result<Self, RunError>> {
        Box::pin(Self::open(config, clock))
    }

    async fn open(config: &Config, clock: Clock) -> Result<Self, RunError> {
        has_authority(config)?;
        own_files(&config.data_dir).check()?;
        let last_time = believed_clock::of(config, &clock).await?;
        let pki = Pki::open(&config.data_dir.join("pki"), &config.names, clock.now())?;
        let listener = listen(config.listen)?;
        let plain = match config.plain_listen {
            Some(address) if !address.ip().is_loopback() => return Err(RunError::Plain { address }),
            Some(address) => Some(listen(address)?),
            None => None,
        };
        let address = local(&listener, config.listen);
        let plain_address =
            plain.as_ref().zip(config.plain_listen).map(|(socket, asked)| local(socket, asked));
        let (tasks, inner_tasks, store_tasks) = (Tasks::new(), Tasks::new(), Tasks::new());
        let store = open_store(config, &store_tasks).await?;
        let keyring = Keyring::open(&config.data_dir.join(KEYRING_FILE))?;
        let path = config.data_dir.join("audit");
        let audit = AuditLog::start(&path, &inner_tasks).map_err(|source| RunError::File { path, source })?;
        let context = BuildContext {
            config,
            store: &store,
            listens: address,
            tasks: &tasks,
            inner_tasks: &inner_tasks,
            clock,
            peers: Arc::new(HttpPeers::new(&pki)),
            audit,
            pki,
            keyring,
        };
        let app = match build(context).await {
            Ok(app) => app,
            Err(error) => {
                store.close().await;
                tasks.cancel();
                inner_tasks.cancel();
                return Err(error);
            }
        };
        currency::start(&app, &inner_tasks);
        dropped_tail::start(&app, &inner_tasks);
        let sockets = Sockets { listener, plain };
        sockets.serve(&app, &tasks);
        tasks.spawn("last time", last_time.keep(app.clock.clone(), tasks.token()));
        Ok(Self {
            address,
            plain_address,
            ca_pem: app.identity.pki.live().bundle().to_owned(),
            app,
            tasks,
            store,
            inner_tasks,
            store_tasks,
            on_store_failure: config.on_store_failure,
            set_back: SetBackMark::in_dir(&config.data_dir),
        })
    }

    /// Every route, and the access it requires.
    #[must_use]
    pub fn routes(&self) -> Vec<http::ListedRoute> {
        http::table(&self.app)
    }

    /// Serves another router on a free port with this server's certificate, to measure the cost of the transport alone.
    ///
    /// # Errors
    /// [`RunError::Listen`] when no port is free.
    pub fn serve_beside(&self, router: axum::Router, tasks: &Tasks) -> Result<SocketAddr, RunError> {
        let asked = SocketAddr::new(self.address.ip(), 0);
        let listener = listen(asked)?;
        let address = local(&listener, asked);
        let (clock, closed) = (self.app.clock.clone(), self.app.traffic.metrics.closed.clone());
        let transport = http::Transport {
            tls: Some(self.app.identity.pki.follow()),
            clock,
            closed,
            load: http::LoadLog::default(),
        };
        tasks.spawn("beside", http::serve(listener, transport, router, tasks.child()));
        Ok(address)
    }

    /// Waits until one of the server's tasks panicked, or its store failed and it is not to stay: nothing else stops a server
    /// from within.
    pub async fn broken(&self) -> ServerFault {
        // All arms only wait.
        tokio::select! {
            () = self.tasks.cancelled() => ServerFault::Task,
            () = self.inner_tasks.cancelled() => ServerFault::Task,
            fault = fault::of_store(&self.store, self.on_store_failure) => fault,
            fault = fault::of_world(&self.app, &self.set_back) => fault,
        }
    }

    /// Stops the server: hands the leadership over, accepts no new connections, lets requests in flight finish, closes the store.
    ///
    /// # Errors
    /// [`StopError`] when a task did not end in time or had panicked.
    pub fn stop(self) -> BoxFuture<'static, Result<(), StopError>> {
        Box::pin(async move {
            self.app.cluster.leadership.hand_over(self.app.records.transactor.follow()).await;
            let stopped = self.tasks.stop(GRACE).await;
            let settled = self.inner_tasks.stop(GRACE).await;
            self.store.close().await;
            let closed = self.store_tasks.stop(GRACE).await;
            stopped.and(settled).and(closed)
        })
    }
}

/// What a server is built from.
#[derive(Debug)]
pub struct BuildContext<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The store, open.
    pub store: &'a Store,
    /// Where the server listens: its address for others, unless the configuration names one.
    pub listens: SocketAddr,
    /// Tasks that stop first.
    pub tasks: &'a Tasks,
    /// Tasks that requests in flight still need while the others stop.
    pub inner_tasks: &'a Tasks,
    /// The clock.
    pub clock: Clock,
    /// How other servers are asked for their time.
    pub peers: Arc<dyn PeerTimes>,
    /// The audit log.
    pub audit: AuditLog,
    /// The certificate authority.
    pub pki: Pki,
    /// The keys that secrets are encrypted with.
    pub keyring: Keyring,
}

/// Reads the world and starts every task of a server. Opens no listeners; [`http::router`] makes the routes of the result.
///
/// # Errors
/// [`RunError`] when the store belongs to another installation, or cannot be read.
pub async fn build(context: BuildContext<'_>) -> Result<AppState, RunError> {
    let BuildContext { config, store, listens, tasks, inner_tasks, clock, peers, audit, pki, keyring } =
        context;
    let installation = check_installation(config, store, &pki.ca_fingerprint()).await?;
    // Before other servers are asked: they show certificates of these authorities.
    let first = first_world(store, (&pki, &keyring), &clock).await?;
    if config.rules.bounds_clocks {
        start::agree(store, &config.name, &clock, &*peers).await.map_err(WorldError::Store)?;
    }
    start::not_behind(&first, &clock);
    let sessions = Sessions::new(clock.clone());
    let metrics = Metrics::default();
    let (published, relist, set_back) =
        follow(config.rules, store, first, (&sessions, &metrics), inner_tasks);
    let fence = Fence { term_base: installation.term_base, compares: config.rules.fences };
    let timed = metrics.commit_seconds.clone();
    let committer = Committer::start_measured(store.clone(), clock.clone(), fence, inner_tasks, timed);
    if let Some(names) = config.dns.clone() {
        names::start(names, published.follow(), &sessions, tasks).await?;
    }
    let transactor = Transactor::new(published, committer, store.clone(), clock.clone());
    let quotas = NodeQuotas::counting(metrics.limited.clone());
    let transactor = transactor.with_keys(keyring.clone()).with_quotas(quotas);
    let leadership = Leadership::start(config, store, installation.clone(), &clock, tasks);
    let keeper = TimeKeeper {
        name: config.name.clone(),
        clock: clock.clone(),
        peers,
        transactor: transactor.clone(),
        leadership: leadership.clone(),
        table: watch::Sender::default(),
    };
    let clocks = keeper.start(config.rules, tasks);
    let (watches, watched) = watch::channel(config.settings.watch(clock.now()));
    let own = membership::record((config, &keyring), listens, &clock);
    let app = AppState::new(AppContext {
        records: RecordContext { transactor, relist, store: store.clone(), set_back },
        cluster: ClusterContext {
            membership: membership::start(config, own.clone(), store, &clock, inner_tasks),
            freshness: Freshness::new(&clock, config.etcd.is_some()),
            known: KnownServers::new(own),
            leadership,
            watches: watched,
            failures: DeciderFailures::default(),
            clocks,
        },
        identity: identity(config, installation, pki),
        traffic: traffic(config, metrics, sessions)?,
        audit,
        hooks: Arc::new(config.hooks.clone()),
        sinks: Arc::new(config.sinks.clone()),
        discovery: Arc::new(config.discovery.clone()),
        providers: Providers::new(config.secret_providers.clone()),
        clock,
        stop: tasks.token(),
    });
    deciding::start(config, &app, watches, tasks);
    authorities::start(&app, &config.data_dir, tasks);
    Ok(app)
}

/// The world as the store has it, with whose authorities this server goes on.
async fn first_world(store: &Store, keys: (&Pki, &Keyring), clock: &Clock) -> Result<World, RunError> {
    let first = world::load(store, &World::default()).await?;
    authorities::take_in(keys, &first, clock)?;
    for warning in stored::warnings(&first, keys.1) {
        tracing::warn!("{warning}");
    }
    Ok(first)
}

fn identity(config: &Config, installation: Installation, pki: Pki) -> ServerIdentity {
    let (name, etcd) = (config.name.clone(), config.etcd.clone());
    ServerIdentity { name, installation, pki, key_files: KeyDir::of(&config.data_dir), etcd }
}

fn traffic(config: &Config, metrics: Metrics, sessions: Sessions) -> Result<TrafficContext, RunError> {
    Ok(TrafficContext {
        admission: Admission::new(config.classes, metrics.refused.clone()),
        metrics,
        sessions,
        authentication_failures: AuthenticationFailures::default(),
        earlier_keys: EarlierKeys::default(),
        log_requests: LogRequests::default(),
        reads: ReadThreads::start().map_err(RunError::Threads)?,
    })
}

/// Starts to follow the store from this world on.
fn follow(
    rules: StoreRules,
    store: &Store,
    first: World,
    (sessions, metrics): (&Sessions, &Metrics),
    tasks: &Tasks,
) -> (PublishedWorld, RelistHandle, SetBackNotice) {
    let (publisher, published) = WorldPublisher::new(Arc::new(first.clone()));
    let (relist, asked) = RelistHandle::new();
    let (store, sessions, metrics) = (store.clone(), sessions.clone(), metrics.clone());
    let notice = SetBackNotice::default();
    let set_back = notice.clone();
    let follower = WorldFollower { store, publisher, sessions, asked, rules, metrics, set_back };
    tasks.spawn("world", follower.run(first, tasks.token()));
    (published, relist, notice)
}

fn listen(address: SocketAddr) -> Result<TcpListener, RunError> {
    open(address).map_err(|source| RunError::Listen { address, source })
}

fn open(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restarted server can bind its address while old connections are still closing.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn local(listener: &TcpListener, asked: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(asked)
}
