//! Sockets: accepts connections, speaks TLS, says who the peer's certificate names, and stops in order.
//!
//! Limits apply here, before anybody is authenticated: handshakes and headers have a deadline, connections a cap.

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

/// Most connections at once: ten thousand agents, and people.
const MAX_CONNECTIONS: usize = 16_384;

/// Headers that take longer are somebody holding a socket open.
const HEADER_DEADLINE: Duration = Duration::from_secs(15);

/// How often an idle HTTP/2 connection is pinged whose peer is no machine, and how long the answer may take: a cut cable is
/// noticed within the sum, without any request. Machines ping by themselves.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_DEADLINE: Duration = Duration::from_secs(5);

/// What the transport knows of whoever is asking.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Whom its verified client certificate names.
    pub(crate) bearer: Option<CertificateIdentity>,
}

/// The router as it is served to a peer whose identity the transport has made sure of.
pub fn to_peer(router: Router, bearer: Option<CertificateIdentity>) -> Router {
    router.layer(axum::Extension(Peer { bearer }))
}

/// How those who arrive are spoken with.
#[derive(Clone)]
pub(crate) struct Transport {
    /// How hands are shaken; over loopback it may go without.
    pub(crate) tls: Option<TlsAcceptor>,
    /// By what silence is measured.
    pub(crate) clock: Clock,
}

/// Serves `router` on `listener` until the level stops, then lets requests in flight finish.
pub(crate) async fn serve(listener: TcpListener, speech: Transport, router: Router, tasks: Tasks) {
    let acceptor = Acceptor { name: "connection", limit: MAX_CONNECTIONS };
    let classes = HandshakeLimiter::default();
    let serve = |(stream, address)| {
        connection(stream, address, (speech.clone(), classes.clone()), router.clone(), tasks.clone())
    };
    acceptor.run(&tasks, |context| listener.poll_accept(context), serve).await;
}

/// A conversation under way.
type ConnectionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    (speech, classes): (Transport, HandshakeLimiter),
    router: Router,
    tasks: Tasks,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set nodelay");
    }
    let Some(tls) = speech.tls else {
        return speak((stream, None), Peer { bearer: None }, router, tasks).await;
    };
    // In a box of its own, so that a connection does not hold the room of its handshake for as long as it lives.
    let greeting = Box::pin(async {
        let shaken = classes.shake_hands(&tls, stream).await;
        shaken.map(|shaken| speak_secretly(shaken, address, speech.clock, (router, tasks.clone())))
    });
    // Both arms only wait; a handshake that is cut short is begun anew elsewhere.
    let speaking = tokio::select! {
        speaking = greeting => speaking,
        () = tasks.cancelled() => return,
    };
    match speaking {
        Ok(speaking) => speaking.await,
        Err(error) => tracing::debug!(%address, %error, "handshake failed"),
    }
}

/// Speaks with whom hands were shaken, until it ends.
fn speak_secretly(
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
    let peer = Peer { bearer };
    match caller {
        ArrivalKind::Person => speak((stream, None), peer, router, tasks),
        ArrivalKind::Machine => {
            let heard = LastActivity::new(clock);
            speak((ActivityStream { stream, heard: heard.clone() }, Some(heard)), peer, router, tasks)
        }
    }
}

/// Speaks with a peer until it ends: one that is `heard` pings by itself. What it is made of is moved into place before
/// anything is waited for: a future keeps the room of all that it was ever given, for as long as it lives.
fn speak(
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
            // Polling the connection by reference keeps its state when the stop arm wins.
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = tasks.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        };
        // Both arms only wait: nobody hears any more what a connection that fell silent would have said.
        let ended = tokio::select! {
            ended = lives => ended,
            () = silence(heard) => return tracing::debug!("connection fell silent"),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    })
}

/// Waits until a peer that pings by itself falls silent; for ever with others.
async fn silence(heard: Option<LastActivity>) {
    match heard {
        Some(heard) => heard.falls_silent().await,
        None => std::future::pending().await,
    }
}
