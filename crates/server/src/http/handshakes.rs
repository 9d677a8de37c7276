//! Lanes of arrival: a fleet that calls all at once waits in its own, so that people come in between. Owns who may shake hands
//! now; what an arrival says of itself is a hint that makes it wait, never a right.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::client::tls::MACHINE;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

/// Most handshakes of machines under way at once: over a slow network still thousands a second, and no more work than some
/// 30 ms of one core before a person's.
const MACHINES: usize = 96;

/// A handshake that takes longer, its turn included, is somebody holding a socket open, or somebody who has given up.
const DEADLINE: Duration = Duration::from_secs(10);

/// What an arrival says that it is. A hint, never a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrivalKind {
    /// Somebody who looks: a person, a program.
    Person,
    /// An agent, which calls for as long as it lives and pings by itself.
    Machine,
}

/// The lanes of one listener. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct HandshakeLimiter(Arc<Semaphore>);

impl Default for HandshakeLimiter {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MACHINES)))
    }
}

impl HandshakeLimiter {
    /// Shakes hands, when it is the arrival's turn.
    ///
    /// # Errors
    /// What the peer did wrong, or that it took too long.
    pub(super) async fn shake_hands(
        &self,
        tls: &TlsAcceptor,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, ArrivalKind)> {
        match tokio::time::timeout(DEADLINE, self.in_turn(tls, stream)).await {
            Ok(shaken) => shaken,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long")),
        }
    }

    async fn in_turn(
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
        let shaken = arrived.into_stream(tls.config().clone()).await;
        drop(turn);
        Ok((shaken?, caller))
    }
}
