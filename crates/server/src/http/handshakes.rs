//! Limits TLS handshakes of agents, so that people can connect while a whole fleet does. The class of a connection is what
//! the client claims before authentication: it decides only whether the client waits, never what it may do.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::client::tls::MACHINE;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

/// Most handshakes of agents at the same time: thousands a second even over a slow network, and at most 30 ms of one
/// core ahead of a person's handshake.
const MACHINES: usize = 96;

/// Longest time for a handshake, waiting included: after it the client has given up, or occupies a socket for nothing.
const DEADLINE: Duration = Duration::from_secs(10);

/// What a client claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrivalKind {
    /// A person or a program.
    Person,
    /// An agent, which stays connected and pings by itself.
    Machine,
}

/// Limits the handshakes on one listener. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct HandshakeLimiter(Arc<Semaphore>);

impl Default for HandshakeLimiter {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MACHINES)))
    }
}

impl HandshakeLimiter {
    /// Does the TLS handshake, after waiting for a permit if the client is an agent.
    ///
    /// # Errors
    /// The peer's protocol error, or a timeout.
    pub(super) async fn handshake(
        &self,
        tls: &TlsAcceptor,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, ArrivalKind)> {
        match tokio::time::timeout(DEADLINE, self.limited(tls, stream)).await {
            Ok(tls_stream) => tls_stream,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake timed out")),
        }
    }

    async fn limited(
        &self,
        tls: &TlsAcceptor,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, ArrivalKind)> {
        let arrived = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
        let offered = arrived.client_hello().alpn();
        let is_machine = offered.is_some_and(|mut protocols| protocols.any(|protocol| protocol == MACHINE));
        let caller = if is_machine { ArrivalKind::Machine } else { ArrivalKind::Person };
        let turn = match caller {
            ArrivalKind::Machine => self.0.acquire().await.ok(),
            ArrivalKind::Person => None,
        };
        let tls_stream = arrived.into_stream(tls.config().clone()).await;
        drop(turn);
        Ok((tls_stream?, caller))
    }
}
