//! Listeners: accept connections, do TLS, pass on the identity in the peer's certificate, and stop in order.
//!
//! Limits apply here before anyone is authenticated: deadlines for handshakes, headers, requests and the taking of answers, and a number of
//! connections, of which those of peers that have shown nothing go first.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bellwether_rt::acceptor::Acceptor;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use super::connections::{Closing, ConnectionState, Connections};
use super::handshakes::{ArrivalKind, HandshakeLimiter};
use super::idle::{ActivityStream, LastActivity};
use super::stranger_log::LoadLog;
use super::taken_body::TakenBody;
use crate::metrics::ClosedConnections;
use crate::pki::{self, CertificateIdentity, LiveAuthorities};

/// Longest time for the headers of a request: a slower client occupies a connection for nothing.
const HEADER_DEADLINE: Duration = Duration::from_secs(15);

/// Interval of pings on an idle HTTP/2 connection, and how long the reply may take: a cut connection is found within the
/// sum. Agents ping by themselves.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_DEADLINE: Duration = Duration::from_secs(5);

/// The peer, as the transport knows it.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// The node in its verified client certificate.
    pub(crate) bearer: Option<CertificateIdentity>,
    /// Its address; `None` without a network.
    pub(crate) address: Option<SocketAddr>,
    /// Its connection; `None` without a network.
    pub(crate) connection: Option<Arc<ConnectionState>>,
}

impl Peer {
    /// A peer that has shown no certificate.
    const fn unknown(address: SocketAddr, connection: Arc<ConnectionState>) -> Self {
        Self { bearer: None, address: Some(address), connection: Some(connection) }
    }
}

/// Makes a request one of a peer whose identity was verified by other means.
pub fn from_peer(request: &mut http::Request<Body>, bearer: CertificateIdentity) {
    request.extensions_mut().insert(Peer { bearer: Some(bearer), address: None, connection: None });
}

/// The transport of a listener.
#[derive(Clone)]
pub(crate) struct Transport {
    /// TLS; none for a loopback listener without it.
    pub(crate) tls: Option<watch::Receiver<Arc<LiveAuthorities>>>,
    /// The clock by which silence is measured.
    pub(crate) clock: Clock,
    /// Counts connections that are closed by the server.
    pub(crate) closed: Family<ClosedConnections, Counter>,
    /// Tells of connections that made work and wanted nothing.
    pub(crate) load: LoadLog,
}

impl Transport {
    fn count(&self, reason: &'static str) {
        self.closed.get_or_create(&ClosedConnections { reason }).inc();
    }
}

/// Serves `router` on `listener` until `tasks` stops, then lets requests in flight finish.
pub(crate) async fn serve(listener: TcpListener, transport: Transport, router: Router, tasks: Tasks) {
    let connections = Connections::new();
    let acceptor = Acceptor { name: "connection", limit: connections.most() };
    let classes = HandshakeLimiter::default();
    let serve = |(stream, address)| {
        let context = ServeContext {
            transport: transport.clone(),
            classes: classes.clone(),
            router: router.clone(),
            tasks: tasks.clone(),
        };
        let arrived = connections.arrive(address);
        async move {
            match arrived {
                Some(state) => context.connection(stream, Peer::unknown(address, state)).await,
                None => context.transport.count("refused"),
            }
        }
    };
    acceptor.run(&tasks, |context| listener.poll_accept(context), serve).await;
}

/// An HTTP connection, until it ends.
type ConnectionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What serves a connection.
struct ServeContext {
    transport: Transport,
    classes: HandshakeLimiter,
    router: Router,
    tasks: Tasks,
}

impl ServeContext {
    async fn connection(self, stream: TcpStream, peer: Peer) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot disable Nagle's algorithm");
        }
        let Some(authorities) = self.transport.tls.as_ref().map(|live| Arc::clone(&live.borrow())) else {
            return self.serve_http((stream, None), peer).await;
        };
        let (classes, tasks, address) = (self.classes.clone(), self.tasks.clone(), peer.address);
        let tls = TlsAcceptor::from(authorities.tls());
        let (state, transport) = (peer.connection.clone(), self.transport.clone());
        // Boxed, so that a connection does not keep the space of its handshake.
        let handshaking = Box::pin(async move {
            let tls_stream = classes.handshake(&tls, stream, address).await;
            tls_stream.map(|tls_stream| self.serve_tls(tls_stream, peer, &authorities))
        });
        // All arms only wait; a client whose handshake is cut short connects elsewhere.
        let served = tokio::select! {
            served = handshaking => served,
            () = tasks.cancelled() => return,
            closing = wait_to_close(state.as_deref()) => return transport.count(closing.as_str()),
        };
        match served {
            Ok(served) => served.await,
            Err(error) => tracing::debug!(?address, %error, "handshake failed"),
        }
    }

    /// Serves HTTP on a TLS connection.
    fn serve_tls(
        self,
        (stream, caller): (TlsStream<TcpStream>, ArrivalKind),
        mut peer: Peer,
        authorities: &LiveAuthorities,
    ) -> ConnectionFuture {
        let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        peer.bearer = certificate.and_then(|certificate| match pki::bearer(certificate) {
            Ok(bearer) => {
                // Empty is none of ours: it expired since the session began that is resumed.
                let issuer = authorities.issuer_of(certificate).unwrap_or_default();
                Some(CertificateIdentity { issuer: Some(issuer), ..bearer })
            }
            Err(error) => {
                tracing::warn!(address = ?peer.address, %error, "ignoring a client certificate");
                None
            }
        });
        if let (Some(_), Some(connection)) = (&peer.bearer, &peer.connection) {
            connection.is_of_somebody();
        }
        match caller {
            ArrivalKind::Person => self.serve_http((stream, None), peer),
            ArrivalKind::Machine => {
                let heard = LastActivity::new(self.transport.clock.clone());
                self.serve_http((ActivityStream { stream, heard: heard.clone() }, Some(heard)), peer)
            }
        }
    }

    /// Serves HTTP on a connection; one with `heard` is an agent's and is closed when silent. Everything is moved into place
    /// before the first await, since a future reserves space for everything it ever holds.
    fn serve_http(
        self,
        (stream, heard): (impl AsyncRead + AsyncWrite + Unpin + Send + 'static, Option<LastActivity>),
        peer: Peer,
    ) -> ConnectionFuture {
        let Self { transport, router, tasks, .. } = self;
        let (state, address) = (peer.connection.clone(), peer.address);
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_DEADLINE);
        let pings = heard.is_none().then_some(PING_EVERY);
        builder.http2().timer(TokioTimer::new()).keep_alive_interval(pings).keep_alive_timeout(PING_DEADLINE);
        let answering = state.clone();
        let service = service_fn(move |request: http::Request<Incoming>| {
            let pending = answering.as_ref().map(ConnectionState::begin);
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer.clone());
            let answer = router.clone().oneshot(request);
            async move { answer.await.map(|answer| TakenBody::answer(answer, pending)) }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = Box::pin(connection.into_owned());
        Box::pin(async move {
            let lives = async {
                // The connection is polled by reference, so that it keeps its state when the stop arm wins.
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = tasks.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            };
            // All arms only wait: a peer that is closed receives nothing more.
            let ended = tokio::select! {
                ended = lives => ended,
                () = wait_for_silence(heard) => return transport.count("silent"),
                closing = wait_to_close(state.as_deref()) => return transport.count(closing.as_str()),
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "connection ended");
                if let Some(address) = address {
                    transport.load.ended(address, &*error);
                }
            }
        })
    }
}

/// Waits until an agent is silent for too long; never returns for other peers.
async fn wait_for_silence(heard: Option<LastActivity>) {
    match heard {
        Some(heard) => heard.falls_silent().await,
        None => std::future::pending().await,
    }
}

/// Waits until a connection is to be closed.
async fn wait_to_close(state: Option<&ConnectionState>) -> Closing {
    match state {
        Some(state) => state.closing().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
