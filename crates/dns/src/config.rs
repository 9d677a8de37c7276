//! What a DNS server is told: where it listens, whom it asks about other zones, and its limits.

use std::net::SocketAddr;
use std::time::Duration;

/// What a DNS server is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens, each over UDP and TCP. Port 0 is a free one, the same for both.
    pub listen: Vec<SocketAddr>,
    /// Whom it asks about names that are not of its zone; without, they are refused.
    pub forward: Option<ForwardConfig>,
    /// How much it takes on.
    pub limits: DnsLimits,
}

/// Who is asked about other zones.
#[derive(Debug, Clone)]
pub struct ForwardConfig {
    /// Recursive resolvers, the preferred one first.
    pub upstreams: Vec<SocketAddr>,
    /// How long one of them may take before the next is asked.
    pub patience: Duration,
    /// How long a client waits at most before it is told SERVFAIL.
    pub deadline: Duration,
    /// How many questions are under way at once; one more is told SERVFAIL at once.
    pub at_once: usize,
}

/// How much a DNS server takes on.
#[derive(Debug, Clone)]
pub struct DnsLimits {
    /// Connections over TCP at once; one more is closed at once.
    pub connections: usize,
    /// How long a connection may be without a whole question, or take to accept an answer, before it is closed.
    pub idle: Duration,
    /// Questions over one connection before it is closed. They are answered one at a time, in order.
    pub questions_per_connection: u32,
}

impl Config {
    /// Listens there, with the usual limits, and refuses other zones.
    pub fn on(listen: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self { listen: listen.into_iter().collect(), forward: None, limits: DnsLimits::default() }
    }
}

impl ForwardConfig {
    /// Asks these, with the usual limits: 1 s each, 4 s in all (clients try again after 5), 1,000 at once.
    pub fn to(upstreams: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self {
            upstreams: upstreams.into_iter().collect(),
            patience: Duration::from_secs(1),
            deadline: Duration::from_secs(4),
            at_once: 1_000,
        }
    }
}

impl Default for DnsLimits {
    /// 256 connections, 10 s, 10,000 questions: enough for clients that come back after truncation, little to hold.
    fn default() -> Self {
        Self { connections: 256, idle: Duration::from_secs(10), questions_per_connection: 10_000 }
    }
}
