//! Asking other servers for their time, and how far that is from one's own.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_api::client::{Access, Client, Identity};
use bellwether_core::decide::slots::CLOCK_BOUND;
use bellwether_core::words::name::ServerName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::{Clock, difference_ms};
use bellwether_rt::tasks::BoxFuture;
use tokio::sync::watch;

use crate::pki::{LiveAuthorities, Pki};

/// Longest wait for another server: a failed one keeps its membership for a few seconds.
pub(super) const WITHIN: Duration = Duration::from_secs(2);

/// Another server, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerAddress {
    /// Its name.
    pub name: ServerName,
    /// Its address.
    pub address: String,
}

/// The clocks of another server, as it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerReading {
    /// Its time.
    pub now: Timestamp,
    /// What its system clock shows.
    pub wall: Timestamp,
    /// Whether it takes part in what needs the right time.
    pub takes_part: bool,
}

/// How other servers are asked for their time.
pub trait PeerTimes: Send + Sync + Debug {
    /// Asks one; none if it does not answer.
    fn ask<'a>(&'a self, peer: &'a PeerAddress) -> BoxFuture<'a, Option<PeerReading>>;
}

/// Asks over HTTPS, one connection for each server.
#[derive(Debug)]
pub struct HttpPeers {
    trusted: TrustedServers,
    // A std mutex: held for a look into the map, never across an await.
    clients: Mutex<Clients>,
}

/// Whose certificates other servers may have.
#[derive(Debug)]
enum TrustedServers {
    /// These (PEM).
    Fixed(String),
    /// Those of the authorities in use.
    Live(watch::Receiver<Arc<LiveAuthorities>>),
}

impl TrustedServers {
    /// The version of the authorities, and their certificates (PEM).
    fn now(&self) -> (u64, String) {
        match self {
            Self::Fixed(certificates) => (0, certificates.clone()),
            Self::Live(live) => {
                let live = live.borrow();
                (live.version(), live.bundle().to_owned())
            }
        }
    }
}

/// Clients that trust the authorities of one version, by the address of their server.
#[derive(Debug, Default)]
struct Clients {
    version: u64,
    of: BTreeMap<String, Client>,
}

impl HttpPeers {
    /// Asks servers with certificates of the authorities that are trusted at the time.
    #[must_use]
    pub fn new(pki: &Pki) -> Self {
        Self { trusted: TrustedServers::Live(pki.follow()), clients: Mutex::default() }
    }

    /// Asks servers with certificates of these authorities (PEM).
    #[must_use]
    pub fn trusting(certificates: String) -> Self {
        Self { trusted: TrustedServers::Fixed(certificates), clients: Mutex::default() }
    }

    fn client(&self, address: &str) -> Option<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, trusted) = self.trusted.now();
        if clients.version != version {
            *clients = Clients { version, of: BTreeMap::new() };
        }
        if let Some(client) = clients.of.get(address) {
            return Some(client.clone());
        }
        let (server, ca) = (address.to_owned(), Some(trusted));
        let client = Client::new(&Access { server, ca, identity: Identity::Nobody }).ok()?;
        clients.of.insert(address.to_owned(), client.clone());
        Some(client)
    }

    fn forget(&self, address: &str) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).of.remove(address);
    }
}

impl PeerTimes for HttpPeers {
    fn ask<'a>(&'a self, peer: &'a PeerAddress) -> BoxFuture<'a, Option<PeerReading>> {
        Box::pin(async move {
            match self.client(&peer.address)?.time(WITHIN).await {
                Ok(answer) => Some(PeerReading {
                    now: Timestamp::from_millis(answer.now_ms),
                    wall: Timestamp::from_millis(answer.wall_ms.unwrap_or(answer.now_ms)),
                    takes_part: answer.takes_part,
                }),
                Err(error) => {
                    tracing::debug!(server = %peer.name, %error, "cannot read the time of another server");
                    self.forget(&peer.address);
                    None
                }
            }
        })
    }
}

/// How far the clocks of another server are from one's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured {
    /// By how much its time is ahead, in milliseconds.
    pub(super) ahead_ms: i64,
    /// By how much its system clock is ahead of one's own time, in milliseconds.
    pub(super) wall_ms: i64,
    /// Both may be wrong by so many milliseconds.
    pub(super) error_ms: u64,
    /// Whether it takes part.
    pub(super) takes_part: bool,
}

impl Measured {
    /// Whether the measurement is good enough to judge by.
    pub(super) fn is_fine(&self) -> bool {
        self.error_ms <= CLOCK_BOUND.as_millis() / 2
    }
}

/// Measures another server; none if it does not answer in time.
pub(super) async fn measure(clock: &Clock, peers: &dyn PeerTimes, peer: &PeerAddress) -> Option<Measured> {
    let asked = clock.now();
    let reading = tokio::time::timeout(WITHIN, peers.ask(peer)).await.ok()??;
    let took = clock.now().since(asked);
    // The other clock was read about halfway through the call.
    let half = took.as_millis() / 2;
    let here = Timestamp::from_millis(asked.as_millis().saturating_add(half));
    Some(Measured {
        ahead_ms: difference_ms(here, reading.now),
        wall_ms: difference_ms(here, reading.wall),
        error_ms: half,
        takes_part: reading.takes_part,
    })
}
