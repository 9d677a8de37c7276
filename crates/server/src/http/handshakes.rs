//! Limits TLS handshakes of agents, so that people can connect while a whole fleet does. The class of a connection is what
//! the client claims before authentication: it decides only whether the client waits, never what it may do.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_api::client::tls::MACHINE;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

use bellwether_rt::host_network::host_network;

/// Most handshakes of agents at the same time: thousands a second even over a slow network, and at most 30 ms of one
/// core ahead of a person's handshake.
const MACHINES: usize = 96;

/// Most of these from one network: whoever begins handshakes there and completes none leaves the other half to others.
const OF_NETWORK: usize = 48;

/// Longest time for which a handshake holds a permit: a few round trips over the slowest network, and a busy machine.
const TURN: Duration = Duration::from_secs(5);

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
pub(super) struct HandshakeLimiter {
    all: Arc<Semaphore>,
    networks: Arc<Mutex<BTreeMap<IpAddr, Arc<Semaphore>>>>,
}

impl Default for HandshakeLimiter {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MACHINES)), networks: Arc::default() }
    }
}

/// The permits of a network's handshakes; forgotten with its last handshake.
struct NetworkPermits<'a> {
    limiter: &'a HandshakeLimiter,
    network: IpAddr,
    permits: Arc<Semaphore>,
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
        address: Option<SocketAddr>,
    ) -> io::Result<(TlsStream<TcpStream>, ArrivalKind)> {
        within(DEADLINE, self.limited(tls, stream, address)).await
    }

    async fn limited(
        &self,
        tls: &TlsAcceptor,
        stream: TcpStream,
        address: Option<SocketAddr>,
    ) -> io::Result<(TlsStream<TcpStream>, ArrivalKind)> {
        let arrived = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
        let offered = arrived.client_hello().alpn();
        let is_machine = offered.is_some_and(|mut protocols| protocols.any(|protocol| protocol == MACHINE));
        if !is_machine {
            return Ok((arrived.into_stream(tls.config().clone()).await?, ArrivalKind::Person));
        }
        let own = address.map(|address| self.network(host_network(address.ip())));
        let _own = match &own {
            Some(own) => own.permits.acquire().await.ok(),
            None => None,
        };
        let _turn = self.all.acquire().await;
        let answered = within(TURN, arrived.into_stream(tls.config().clone()));
        Ok((answered.await?, ArrivalKind::Machine))
    }

    fn network(&self, network: IpAddr) -> NetworkPermits<'_> {
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        let permits = networks.entry(network).or_insert_with(|| Arc::new(Semaphore::new(OF_NETWORK)));
        NetworkPermits { limiter: self, network, permits: Arc::clone(permits) }
    }
}

impl Drop for NetworkPermits<'_> {
    fn drop(&mut self) {
        let mut networks = self.limiter.networks.lock().unwrap_or_else(PoisonError::into_inner);
        // One is in the map, the other is this one.
        if Arc::strong_count(&self.permits) <= 2 {
            networks.remove(&self.network);
        }
    }
}

async fn within<T>(deadline: Duration, handshake: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(deadline, handshake).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake timed out")),
    }
}
