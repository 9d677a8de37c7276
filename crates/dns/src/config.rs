//! The configuration of a DNS server: listening addresses, upstream resolvers, and limits.

use std::net::SocketAddr;
use std::time::Duration;

use bellwether_core::words::address_range::{AddressRange, LOCAL};

/// The configuration of a DNS server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Listening addresses, each over UDP and TCP. Port 0 is any free port, the same for both.
    pub listen: Vec<SocketAddr>,
    /// Upstream resolvers for names outside the zone; without them, such queries are refused.
    pub forward: Option<ForwardConfig>,
    /// Limits on its load.
    pub limits: DnsLimits,
}

/// Forwarding of queries outside the zone.
#[derive(Debug, Clone)]
pub struct ForwardConfig {
    /// Recursive resolvers, the preferred one first.
    pub upstreams: Vec<SocketAddr>,
    /// How long one of them may take before the next one is tried.
    pub patience: Duration,
    /// How long forwarding may take before the client gets SERVFAIL.
    pub deadline: Duration,
    /// Most forwarded queries at once; a further one gets SERVFAIL at once.
    pub at_once: usize,
}

/// Limits on the load of a DNS server.
#[derive(Debug, Clone)]
pub struct DnsLimits {
    /// Most TCP connections at once; a further one is closed at once.
    pub connections: usize,
    /// Most of them of one client, or of one network of 64 bits of IPv6.
    pub connections_of_client: usize,
    /// How long a connection may be without a complete query, or take to accept an answer, before it is closed.
    pub idle: Duration,
    /// Queries per connection before it is closed. They are answered one at a time, in order.
    pub questions_per_connection: u32,
    /// Clients that are answered; others are refused.
    pub allowed: Vec<AddressRange>,
    /// Clients to which there is no limit on answers over UDP: those whose packets cannot come from elsewhere.
    pub unlimited: Vec<AddressRange>,
    /// Most answers over UDP in a second to each other network: the first 24 bits of an address, or 56 of IPv6.
    pub answers_per_second: u32,
}

impl Config {
    /// Listens on these addresses, with the default limits, and refuses other zones.
    pub fn on(listen: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self { listen: listen.into_iter().collect(), forward: None, limits: DnsLimits::default() }
    }
}

impl ForwardConfig {
    /// Forwards to these resolvers, with the default limits: 1 s each, 4 s in all (clients retry after 5 s), 1,000 at once.
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
    /// 256 connections, 32 of them of one client, 10 s, 10,000 queries: enough for clients that retry after truncation, at little cost. Local networks only, without
    /// a limit on answers; 50 a second to others are enough for the resolvers of a network, and too few to flood it.
    fn default() -> Self {
        Self {
            connections: 256,
            connections_of_client: 32,
            idle: Duration::from_secs(10),
            questions_per_connection: 10_000,
            allowed: LOCAL.to_vec(),
            unlimited: LOCAL.to_vec(),
            answers_per_second: 50,
        }
    }
}
