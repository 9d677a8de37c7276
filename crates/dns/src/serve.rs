//! Serving: opens the sockets, and starts the tasks that answer on them.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use bellwether_core::dns::zone::Zone;
use bellwether_rt::tasks::{BoxFuture, Tasks};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;

use crate::clients::Clients;
use crate::config::Config;
use crate::connections::Connections;
use crate::counts::{Counters, Counts};
use crate::forward::Forwarder;
use crate::resolver::Resolver;
use crate::{tcp, udp};

/// How many free ports are tried until one is free for both UDP and TCP.
const PORT_TRIES: usize = 16;

/// Most tasks that read packets from one socket. More would wait for each other in the kernel.
const MAX_READERS: usize = 4;

/// A running DNS server. Dropping this stops nothing: its tasks end with the [`Tasks`] they were started on.
#[derive(Debug, Clone)]
pub struct DnsServer {
    addresses: Vec<SocketAddr>,
    counters: Arc<Counters>,
    zone: watch::Receiver<Arc<Zone>>,
}

/// Why DNS cannot be served. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address cannot be bound.
    #[error("listen for DNS on {address} ({transport}): {source}; {advice}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// `udp` or `tcp`.
        transport: &'static str,
        /// The reason.
        source: std::io::Error,
        /// What to try next.
        advice: &'static str,
    },
    /// Forwarded queries would come back to this server.
    #[error("forward DNS to {0}: that is this server; name another resolver")]
    ForwardToSelf(SocketAddr),
    /// No resolver is configured.
    #[error("forward DNS: no resolver is named; name one, or do not forward")]
    NoUpstream,
}

impl DnsServer {
    /// The listening addresses, in the order of the configuration, with the actual ports.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The counters now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counters.read(self.zone.borrow().stale_since)
    }
}

/// Serves DNS from the current `zone` until `tasks` is stopped.
///
/// When it returns, its sockets are open and queries are answered.
///
/// # Errors
/// [`ServeError`] with the address and the next thing to try; nothing is served then.
pub fn serve(
    config: Config,
    zone: watch::Receiver<Arc<Zone>>,
    tasks: &Tasks,
) -> BoxFuture<'_, Result<DnsServer, ServeError>> {
    Box::pin(start(config, zone, tasks))
}

async fn start(
    config: Config,
    zone: watch::Receiver<Arc<Zone>>,
    tasks: &Tasks,
) -> Result<DnsServer, ServeError> {
    let mut sockets = Vec::new();
    for address in &config.listen {
        sockets.push(open(*address).await?);
    }
    let addresses: Vec<SocketAddr> = sockets.iter().map(|(address, _, _)| *address).collect();
    let forwarder = config.forward.map(|forward| {
        if forward.upstreams.is_empty() {
            return Err(ServeError::NoUpstream);
        }
        match forward.upstreams.iter().find(|upstream| addresses.contains(upstream)) {
            Some(own) => Err(ServeError::ForwardToSelf(*own)),
            None => Ok(Arc::new(Forwarder::new(forward))),
        }
    });
    let counters = Arc::<Counters>::default();
    let resolver = Resolver {
        zone: zone.clone(),
        counters: counters.clone(),
        forwarder: forwarder.transpose()?,
        clients: Clients::new(&config.limits),
    };
    let (resolver, connections) = (Arc::new(resolver), Arc::new(Connections::new(&config.limits)));
    for (_, port, listener) in sockets {
        let port = Arc::new(port);
        for _ in 0..readers() {
            tasks.spawn("dns-udp", udp::serve(resolver.clone(), port.clone(), tasks.clone()));
        }
        let (limits, connections) = (config.limits.clone(), connections.clone());
        tasks.spawn("dns-tcp", tcp::serve(resolver.clone(), listener, limits, connections, tasks.clone()));
    }
    Ok(DnsServer { addresses, counters, zone })
}

/// How many tasks read packets from one socket: one for each core, as long as that helps. The kernel gives each packet to
/// one of them.
fn readers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_READERS))
}

/// Both sockets of an address; for port 0, the same free port for both.
async fn open(address: SocketAddr) -> Result<(SocketAddr, udp::UdpSocketPort, TcpListener), ServeError> {
    let mut tries = if address.port() == 0 { PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        let refused = |transport| move |source| bind_error(address, transport, source);
        let listener = TcpListener::bind(address).await.map_err(refused("tcp"))?;
        let bound = listener.local_addr().map_err(refused("tcp"))?;
        match UdpSocket::bind(bound).await.and_then(udp::UdpSocketPort::new) {
            Ok(port) => return Ok((bound, port, listener)),
            Err(error) if tries > 0 && error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(bind_error(address, "udp", error)),
        }
    }
}

fn bind_error(address: SocketAddr, transport: &'static str, source: std::io::Error) -> ServeError {
    let advice = if source.kind() == ErrorKind::PermissionDenied {
        "a port below 1024 needs CAP_NET_BIND_SERVICE, or another port"
    } else if source.kind() == ErrorKind::AddrInUse {
        "another program listens there: stop it (`ss -lntup` names it), or choose another port"
    } else if source.kind() == ErrorKind::AddrNotAvailable {
        "this machine does not have the address"
    } else {
        "choose another address or port"
    };
    ServeError::Bind { address, transport, source, advice }
}
