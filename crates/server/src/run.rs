//! Builds the server, starts it, says where it listens, and stops it in order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::{BoxFuture, StopError, Tasks};
use bellwether_store::{OpenError, Store};
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;

use crate::config::Config;
use crate::hooks::HookCaller;
use crate::http::{self, Admission, AppParts, AppState};
pub use crate::init::{InitialisedInstallation, init};
use crate::installation::{Installation, InstallationError};
use crate::leadership::Memberships;
use crate::metrics::Metrics;
use crate::names;
use crate::pki::{Pki, PkiError};
use crate::presences::Presences;
use crate::reconcile::Reconciler;
use crate::records::commit::{CommitError, Committer, Fence};
use crate::secret;
use crate::sessions::Sessions;
use crate::timing;
use crate::transactor::Transactor;
use crate::world::{self, RelistHandle, WorldError, WorldFollower};
use crate::world_view::WorldPublisher;

/// How long requests in flight may take when the server stops.
const GRACE: Duration = Duration::from_secs(10);

/// Arrivals that the system keeps until they are let in, if it is set to keep so many: a whole fleet. One that finds no room
/// comes again after a second or three.
const BACKLOG: u32 = 16_384;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store does not open.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The records do not read.
    #[error("{0}")]
    World(#[from] WorldError),
    /// Keys or certificates.
    #[error("{0}")]
    Pki(#[from] PkiError),
    /// No randomness.
    #[error("{0}")]
    Random(#[from] secret::RandomError),
    /// The first token could not be written.
    #[error("{0}")]
    Commit(#[from] CommitError),
    /// An address cannot be listened on.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// DNS cannot be answered.
    #[error("{0}")]
    Dns(#[from] bellwether_dns::serve::ServeError),
    /// A listener without TLS was asked for on an address that others reach.
    #[error("listen on {address} without TLS: only loopback addresses may be plain")]
    Plain {
        /// The address.
        address: SocketAddr,
    },
    /// A file could not be written.
    #[error("write {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// `init` was never run here.
    #[error("find an installation in {dir}: make one with `bellwether server init`")]
    NotInitialised {
        /// The data directory.
        dir: PathBuf,
    },
    /// A server that shares a store has not been given the authority of the installation.
    #[error(
        "find the installation's authority in {dir}: make the installation with `bellwether server init` on its first \
         server; on every other one, copy pki/ca.pem and pki/ca.key from there to here"
    )]
    NoAuthority {
        /// The data directory.
        dir: PathBuf,
    },
    /// The store is not for this server, or not for a new installation.
    #[error("{0}")]
    Installation(#[from] InstallationError),
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    /// Where it listens with TLS.
    pub address: SocketAddr,
    /// Where it listens without, if it does.
    pub plain_address: Option<SocketAddr>,
    /// The CA's certificate (PEM).
    pub ca_pem: String,
    app: AppState,
    tasks: Tasks,
    store: Store,
    /// What requests in flight and deciders still need when the listeners have stopped: the world and the committer.
    inner_tasks: Tasks,
    /// The store's own level: it outlives everything that uses it.
    store_tasks: Tasks,
}

/// Opens the store that the configuration names.
pub(crate) async fn open_store(config: &Config, tasks: &Tasks) -> Result<Store, RunError> {
    Ok(match &config.etcd {
        None => Store::embedded(&config.data_dir.join("store"), tasks)?,
        Some(etcd) => Store::etcd(etcd.settings(), tasks).await?,
    })
}

impl Server {
    /// Starts a server on an installation. It listens once this returns.
    ///
    /// # Errors
    /// [`RunError`] naming what does not fit.
    pub fn start(config: &Config, clock: Clock) -> BoxFuture<'_, Result<Self, RunError>> {
        Box::pin(Self::open(config, clock))
    }

    async fn open(config: &Config, clock: Clock) -> Result<Self, RunError> {
        if !config.data_dir.join("pki/ca.pem").exists() {
            let dir = config.data_dir.clone();
            return Err(if config.etcd.is_some() {
                RunError::NoAuthority { dir }
            } else {
                RunError::NotInitialised { dir }
            });
        }
        let pki = Pki::open(&config.data_dir.join("pki"), &config.names, clock.now())?;
        let acceptor = TlsAcceptor::from(Arc::new(pki.server_tls()?));
        let listener = listen(config.listen)?;
        let plain = match config.plain_listen {
            Some(address) if !address.ip().is_loopback() => return Err(RunError::Plain { address }),
            Some(address) => Some(listen(address)?),
            None => None,
        };
        let address = local(&listener, config.listen);
        let plain_address =
            plain.as_ref().zip(config.plain_listen).map(|(socket, asked)| local(socket, asked));
        let ca_pem = pki.ca_pem().to_owned();
        let (tasks, inner_tasks, store_tasks) = (Tasks::new(), Tasks::new(), Tasks::new());
        let store = open_store(config, &store_tasks).await?;
        let built = async {
            let agreed = timing::agreed(&store, &config.name, clock, &ca_pem).await;
            let clock = agreed.map_err(WorldError::Store)?;
            build(config, (&store, address), (&tasks, &inner_tasks), (clock, pki)).await
        };
        let app = match built.await {
            Ok(app) => app,
            Err(error) => {
                store.close().await;
                tasks.cancel();
                inner_tasks.cancel();
                return Err(error);
            }
        };
        let router = http::router(&app);
        let speech = http::Transport { tls: Some(acceptor), clock: app.clock.clone() };
        tasks.spawn("https", http::serve(listener, speech.clone(), router.clone(), tasks.child()));
        if let Some(plain) = plain {
            let speech = http::Transport { tls: None, ..speech };
            tasks.spawn("http", http::serve(plain, speech, router, tasks.child()));
        }
        Ok(Self { address, plain_address, ca_pem, app, tasks, store, inner_tasks, store_tasks })
    }

    /// Every route it serves, and what each needs.
    #[must_use]
    pub fn routes(&self) -> Vec<http::ListedRoute> {
        http::table(&self.app)
    }

    /// Serves another router on a free port with this server's certificate, for measuring what the transport alone costs.
    ///
    /// # Errors
    /// [`RunError::Listen`] when there is no free port.
    pub fn serve_beside(&self, router: axum::Router, tasks: &Tasks) -> Result<SocketAddr, RunError> {
        let acceptor = TlsAcceptor::from(Arc::new(self.app.pki.server_tls()?));
        let asked = SocketAddr::new(self.address.ip(), 0);
        let listener = listen(asked)?;
        let address = local(&listener, asked);
        let speech = http::Transport { tls: Some(acceptor), clock: self.app.clock.clone() };
        tasks.spawn("beside", http::serve(listener, speech, router, tasks.child()));
        Ok(address)
    }

    /// Waits until the server stops by itself, which it only does when a task of it broke.
    pub async fn broken(&self) {
        // Both arms only wait.
        tokio::select! {
            () = self.tasks.cancelled() => {}
            () = self.inner_tasks.cancelled() => {}
        }
    }

    /// Stops: the leadership is handed over, no new connections, requests in flight finish, the store is flushed.
    ///
    /// # Errors
    /// [`StopError`] when something did not end in time or had broken.
    pub fn stop(self) -> BoxFuture<'static, Result<(), StopError>> {
        Box::pin(async move {
            self.app.seats.hand_over(self.app.transactor.follow()).await;
            let stopped = self.tasks.stop(GRACE).await;
            let settled = self.inner_tasks.stop(GRACE).await;
            self.store.close().await;
            let closed = self.store_tasks.stop(GRACE).await;
            stopped.and(settled).and(closed)
        })
    }
}

/// Reads the world and starts everything that works on it, on levels of its caller: `tasks` stops first, `inner` is what
/// requests in flight still need then. It opens no sockets; [`http::router`] serves what it answers.
///
/// # Errors
/// [`RunError`] when the store is not this installation's, or cannot be read.
pub async fn build(
    config: &Config,
    (store, listens): (&Store, SocketAddr),
    (tasks, inner): (&Tasks, &Tasks),
    (clock, pki): (Clock, Pki),
) -> Result<AppState, RunError> {
    let installation = installation(config, store, &pki).await?;
    let first = world::load(store, &World::default()).await?;
    let clock = timing::not_behind(&first, clock);
    let (publisher, published) = WorldPublisher::new(Arc::new(first.clone()));
    let sessions = Sessions::new(clock.clone());
    let (lister, asked) = RelistHandle::new();
    let metrics = Metrics::default();
    let follower = WorldFollower {
        store: store.clone(),
        publisher,
        sessions: sessions.clone(),
        asked,
        rules: config.rules,
        lists: metrics.lists.clone(),
    };
    inner.spawn("world", follower.run(first, inner.token()));
    let fence = Fence { term_base: installation.term_base, compares: config.rules.fences };
    let committer = Committer::start(store.clone(), clock.clone(), fence, inner);
    if let Some(names) = config.dns.clone() {
        names::start(names, (published.follow(), &sessions), tasks).await?;
    }
    let transactor = Transactor::new(published, committer, clock.clone());
    let seats = Memberships::take(config, (store, listens), (tasks, inner), (&clock, installation.clone()));
    start_work(config, (&transactor, &sessions), (&lister, &metrics), &seats, tasks);
    let admission = Admission::new(config.classes, metrics.refused.clone());
    let (stop, me) = (tasks.token(), config.name.clone());
    let store = store.clone();
    Ok(AppState::new(AppParts {
        transactor,
        lister,
        sessions,
        pki,
        clock,
        store,
        admission,
        metrics,
        me,
        installation,
        seats,
        stop,
    }))
}

/// Starts what looks at the world by itself: who is there, what is decided, who is asked.
fn start_work(
    config: &Config,
    (transactor, sessions): (&Transactor, &Sessions),
    (lister, metrics): (&RelistHandle, &Metrics),
    seats: &Memberships,
    tasks: &Tasks,
) {
    let presences = Presences {
        transactor: transactor.clone(),
        sessions: sessions.clone(),
        me: config.name.clone(),
        place: seats.place.clone(),
        term: seats.term.clone(),
        limits: config.settings.limits,
    };
    tasks.spawn("presences", presences.run(tasks.token()));
    let reconciler = Reconciler {
        transactor: transactor.clone(),
        lister: lister.clone(),
        term: seats.term.clone(),
        settings: config.settings,
        metrics: metrics.clone(),
    };
    tasks.spawn("reconcile", reconciler.run(tasks.token()));
    let asker = HookCaller {
        transactor: transactor.clone(),
        term: seats.term.clone(),
        tasks: tasks.clone(),
        settings: Arc::new(config.hooks.clone()),
        metrics: metrics.clone(),
    };
    tasks.spawn("hooks", asker.run(tasks.token()));
}

/// What the store belongs to. One that was made before that was written down is told now.
async fn installation(config: &Config, store: &Store, pki: &Pki) -> Result<Installation, RunError> {
    let ours = pki.ca_fingerprint();
    let installation = match Installation::read(store).await? {
        Some(installation) => installation,
        None if config.etcd.is_some() => return Err(InstallationError::Missing.into()),
        None => {
            let made = Installation::new(ours.clone());
            made.write(store).await?;
            made
        }
    };
    installation.belongs_to(&ours)?;
    Ok(installation)
}

fn listen(address: SocketAddr) -> Result<TcpListener, RunError> {
    open(address).map_err(|source| RunError::Listen { address, source })
}

fn open(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A server that is started again takes its address over from connections that are still ending.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn local(listener: &TcpListener, asked: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(asked)
}
