//! Listeners: accept connections, do TLS, pass on the identity in the peer's certificate, and stop in order.
//!
//! Limits apply here before anyone is authenticated: deadlines for handshakes and headers, and a number of connections.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bellwether_rt::acceptor::Acceptor;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use super::handshakes::{ArrivalKind, HandshakeLimiter};
use super::idle::{ActivityStream, LastActivity};
use crate::pki::{self, CertificateIdentity};

/// Most connections: ten thousand agents, and people.
const MAX_CONNECTIONS: usize = 16_384;

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
}

/// Makes a request one of a peer whose identity was verified by other means.
pub fn from_peer(request: &mut http::Request<Body>, bearer: CertificateIdentity) {
    request.extensions_mut().insert(Peer { bearer: Some(bearer), address: None });
}

/// The transport of a listener.
#[derive(Clone)]
pub(crate) struct Transport {
    /// TLS; none for a loopback listener without it.
    pub(crate) tls: Option<TlsAcceptor>,
    /// The clock by which silence is measured.
    pub(crate) clock: Clock,
}

/// Serves `router` on `listener` until `tasks` stops, then lets requests in flight finish.
pub(crate) async fn serve(listener: TcpListener, transport: Transport, router: Router, tasks: Tasks) {
    let acceptor = Acceptor { name: "connection", limit: MAX_CONNECTIONS };
    let classes = HandshakeLimiter::default();
    let serve = |(stream, address)| {
        connection(stream, address, (transport.clone(), classes.clone()), router.clone(), tasks.clone())
    };
    acceptor.run(&tasks, |context| listener.poll_accept(context), serve).await;
}

/// An HTTP connection, until it ends.
type ConnectionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    (transport, classes): (Transport, HandshakeLimiter),
    router: Router,
    tasks: Tasks,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot disable Nagle's algorithm");
    }
    let Some(tls) = transport.tls else {
        return serve_http((stream, None), Peer { bearer: None, address: Some(address) }, router, tasks)
            .await;
    };
    // Boxed, so that a connection does not keep the space of its handshake.
    let handshaking = Box::pin(async {
        let tls_stream = classes.handshake(&tls, stream).await;
        tls_stream.map(|tls_stream| serve_tls(tls_stream, address, transport.clock, (router, tasks.clone())))
    });
    // Both arms only wait; a client whose handshake is cut short connects elsewhere.
    let served = tokio::select! {
        served = handshaking => served,
        () = tasks.cancelled() => return,
    };
    match served {
        Ok(served) => served.await,
        Err(error) => tracing::debug!(%address, %error, "handshake failed"),
    }
}

/// Serves HTTP on a TLS connection.
fn serve_tls(
    (stream, caller): (TlsStream<TcpStream>, ArrivalKind),
    address: SocketAddr,
    clock: Clock,
    (router, tasks): (Router, Tasks),
) -> ConnectionFuture {
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let bearer = certificate.and_then(|certificate| match pki::bearer(certificate) {
        Ok(bearer) => Some(bearer),
        Err(error) => {
            tracing::warn!(%address, %error, "ignoring a client certificate");
            None
        }
    });
    let peer = Peer { bearer, address: Some(address) };
    match caller {
        ArrivalKind::Person => serve_http((stream, None), peer, router, tasks),
        ArrivalKind::Machine => {
            let heard = LastActivity::new(clock);
            serve_http((ActivityStream { stream, heard: heard.clone() }, Some(heard)), peer, router, tasks)
        }
    }
}

/// Serves HTTP on a connection; one with `heard` is an agent's and is closed when silent. Everything is moved into place
/// before the first await, since a future reserves space for everything it ever holds.
fn serve_http(
    (stream, heard): (impl AsyncRead + AsyncWrite + Unpin + Send + 'static, Option<LastActivity>),
    peer: Peer,
    router: Router,
    tasks: Tasks,
) -> ConnectionFuture {
    let service = router.map_request(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        request.map(Body::new)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_DEADLINE);
    let pings = heard.is_none().then_some(PING_EVERY);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(pings).keep_alive_timeout(PING_DEADLINE);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
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
        // Both arms only wait: a silent peer receives nothing more.
        let ended = tokio::select! {
            ended = lives => ended,
            () = wait_for_silence(heard) => return tracing::debug!("connection closed after silence"),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    })
}

/// Waits until an agent is silent for too long; never returns for other peers.
async fn wait_for_silence(heard: Option<LastActivity>) {
    match heard {
        Some(heard) => heard.falls_silent().await,
        None => std::future::pending().await,
    }
}
