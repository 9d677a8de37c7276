//! The connections of a listener: which are of peers that have shown nothing, how many of these there may be and which goes first, and
//! when one is closed since nothing is asked on it or its answers are not taken.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_rt::acceptor::most_descriptors;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use bellwether_rt::host_network::host_network;

/// Most connections: ten thousand agents, and people.
const MAX_CONNECTIONS: usize = 16_384;

/// File descriptors that are left to the store, the audit log and calls of others.
const OTHER_DESCRIPTORS: u64 = 256;

/// Fewest connections, however few file descriptors the process may have.
const MIN_CONNECTIONS: usize = 64;

/// How long a connection of an unknown peer is left alone, whoever else comes from its network: it may be in its handshake.
const SETTLING: Duration = Duration::from_secs(10);

/// How long a connection may be without a request while its peer has shown nothing. Its handshake counts.
const UNKNOWN_IDLE: Duration = Duration::from_secs(30);

/// The same for one whose peer has shown a token or the certificate of a node: programs keep connections for their next request.
const KNOWN_IDLE: Duration = Duration::from_secs(300);

/// How long a client may take nothing of an answer: it is held in memory as long.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);

/// Most bytes of answers of a connection that are held until its client takes them, besides one answer alone.
const HELD_BYTES: u64 = 16 << 20;

/// The same while its peer has shown nothing.
const UNKNOWN_HELD_BYTES: u64 = 4 << 20;

/// Limits on the connections of a listener.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// Most connections.
    pub(super) all: usize,
    /// Most of peers that have shown nothing.
    unknown: usize,
    /// Most of these from one network.
    of_network: usize,
}

/// The connections of a listener. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    limits: ConnectionLimits,
    unknown: Arc<Mutex<UnknownPeers>>,
}

/// The connections of peers that have shown nothing, by the order in which they came.
#[derive(Debug, Default)]
struct UnknownPeers {
    next: u64,
    peers: BTreeMap<u64, UnknownPeer>,
    networks: BTreeMap<IpAddr, BTreeSet<u64>>,
}

#[derive(Debug)]
struct UnknownPeer {
    network: IpAddr,
    since: Instant,
    evicted: CancellationToken,
}

/// A connection; it leaves the table when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    connections: Connections,
    number: u64,
    is_known: AtomicBool,
    evicted: CancellationToken,
    answers: Mutex<Answers>,
}

/// The requests of a connection that are not answered yet, or whose answers are not taken yet.
#[derive(Debug)]
struct Answers {
    next: u64,
    pending: BTreeMap<u64, UntakenAnswer>,
    /// Since when there is none.
    idle_since: Instant,
}

/// A request that is not answered yet, or what is left of its answer.
#[derive(Debug, Clone, Copy, Default)]
struct UntakenAnswer {
    /// Since when the client has taken nothing; none while there is nothing to take.
    since: Option<Instant>,
    /// What is held of it, in bytes.
    held: u64,
}

/// A request until its whole answer is taken.
#[derive(Debug)]
pub(super) struct PendingAnswer {
    state: Arc<ConnectionState>,
    number: u64,
}

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// Others came, and its peer had shown nothing.
    Evicted,
    /// Nothing was asked.
    Idle,
    /// An answer was not taken.
    NotTaken,
}

impl ConnectionLimits {
    /// The limits of a process that may have this many file descriptors; none is no limit. Of those who have shown nothing there are half of
    /// the rest at most, and from one network half of these.
    fn of(descriptors: Option<u64>) -> Self {
        let left = descriptors.map(|most| most.saturating_sub(OTHER_DESCRIPTORS));
        let left = left.and_then(|left| usize::try_from(left).ok()).unwrap_or(MAX_CONNECTIONS);
        let all = left.clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
        Self { all, unknown: all / 2, of_network: all / 4 }
    }
}

impl Connections {
    /// The connections of a new listener, within the file descriptors that this process may have.
    pub(super) fn new() -> Self {
        Self::within(ConnectionLimits::of(most_descriptors()))
    }

    fn within(limits: ConnectionLimits) -> Self {
        Self { limits, unknown: Arc::default() }
    }

    /// Most connections.
    pub(super) const fn most(&self) -> usize {
        self.limits.all
    }

    /// A new connection from this address. It takes the place of another one if too many peers have shown nothing.
    ///
    /// `None` if too many of its network have shown nothing and none of these has been there for long: it is to be closed.
    pub(super) fn arrive(&self, address: SocketAddr) -> Option<Arc<ConnectionState>> {
        let (network, now, evicted) = (host_network(address.ip()), Instant::now(), CancellationToken::new());
        let mut unknown = self.lock();
        let of_network = unknown.networks.get(&network);
        if of_network.is_some_and(|numbers| numbers.len() >= self.limits.of_network) {
            let oldest = of_network.and_then(|numbers| numbers.first().copied())?;
            let since = unknown.peers.get(&oldest)?.since;
            if now.duration_since(since) < SETTLING {
                return None;
            }
            unknown.evict(oldest);
        } else if unknown.peers.len() >= self.limits.unknown
            && let Some(oldest) = unknown.oldest_of_largest()
        {
            unknown.evict(oldest);
        }
        let number = unknown.next;
        unknown.next += 1;
        unknown.networks.entry(network).or_default().insert(number);
        unknown.peers.insert(number, UnknownPeer { network, since: now, evicted: evicted.clone() });
        drop(unknown);
        Some(Arc::new(ConnectionState {
            connections: self.clone(),
            number,
            is_known: AtomicBool::new(false),
            evicted,
            answers: Mutex::new(Answers { next: 0, pending: BTreeMap::new(), idle_since: now }),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, UnknownPeers> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnknownPeers {
    /// The oldest connection of the network that has most of them.
    fn oldest_of_largest(&self) -> Option<u64> {
        let largest = self.networks.values().max_by_key(|numbers| numbers.len());
        largest.and_then(|numbers| numbers.first().copied())
    }

    fn evict(&mut self, number: u64) {
        if let Some(peer) = self.remove(number) {
            peer.evicted.cancel();
        }
    }

    fn remove(&mut self, number: u64) -> Option<UnknownPeer> {
        let peer = self.peers.remove(&number)?;
        if let Some(numbers) = self.networks.get_mut(&peer.network) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.networks.remove(&peer.network);
            }
        }
        Some(peer)
    }
}

impl ConnectionState {
    /// Notes that the peer has shown who it is.
    pub(crate) fn is_of_somebody(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.connections.lock().remove(self.number);
        }
    }

    /// Notes a request.
    pub(super) fn begin(self: &Arc<Self>) -> PendingAnswer {
        let mut answers = self.answers();
        let number = answers.next;
        answers.next += 1;
        answers.pending.insert(number, UntakenAnswer::default());
        drop(answers);
        PendingAnswer { state: Arc::clone(self), number }
    }

    /// Waits until the connection is to be closed.
    pub(super) async fn closing(&self) -> Closing {
        loop {
            let until = match self.due(Instant::now()) {
                Ok(closing) => return closing,
                Err(until) => until,
            };
            // Both arms only wait.
            tokio::select! {
                () = self.evicted.cancelled() => return Closing::Evicted,
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Why the connection is to be closed, or when to look again.
    fn due(&self, now: Instant) -> Result<Closing, Instant> {
        let idle = if self.is_known.load(Ordering::Relaxed) { KNOWN_IDLE } else { UNKNOWN_IDLE };
        let answers = self.answers();
        if answers.pending.is_empty() {
            let until = answers.idle_since + idle;
            return if until <= now { Ok(Closing::Idle) } else { Err(until) };
        }
        match answers.pending.values().filter_map(|answer| answer.since.as_ref()).min() {
            None => Err(now + TAKEN_WITHIN),
            Some(since) if *since + TAKEN_WITHIN <= now => Ok(Closing::NotTaken),
            Some(since) => Err(*since + TAKEN_WITHIN),
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        self.connections.lock().remove(self.number);
    }
}

impl PendingAnswer {
    /// Notes that there is something to take, or that there is nothing.
    pub(super) fn offer(&self, is_something: bool) {
        let since = is_something.then(Instant::now);
        if let Some(answer) = self.state.answers().pending.get_mut(&self.number) {
            answer.since = since;
        }
    }

    /// Notes that the answer has this many bytes, unless too many of others are held already: then it is not to be sent.
    pub(super) fn hold(&self, bytes: u64) -> bool {
        let is_known = self.state.is_known.load(Ordering::Relaxed);
        let most = if is_known { HELD_BYTES } else { UNKNOWN_HELD_BYTES };
        let mut answers = self.state.answers();
        let held: u64 = answers.pending.values().map(|answer| answer.held).sum();
        if held > 0 && held.saturating_add(bytes) > most {
            return false;
        }
        if let Some(answer) = answers.pending.get_mut(&self.number) {
            answer.held = bytes;
        }
        true
    }

    /// Notes that the client has taken this many bytes.
    pub(super) fn take(&self, bytes: u64) {
        if let Some(answer) = self.state.answers().pending.get_mut(&self.number) {
            answer.held = answer.held.saturating_sub(bytes);
        }
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        let mut answers = self.state.answers();
        answers.pending.remove(&self.number);
        answers.idle_since = Instant::now();
    }
}

impl Closing {
    /// Its name in metrics.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Evicted => "evicted",
            Self::Idle => "idle",
            Self::NotTaken => "not-taken",
        }
    }
}

#[cfg(test)]
mod tests;
