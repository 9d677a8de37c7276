//! Places for TCP connections: so many in all, and of these so many for one client, which cannot keep the others away.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellwether_rt::host_network::host_network;

use crate::config::DnsLimits;

/// The connections that are open, by client.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    most_of_client: usize,
    open: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A place of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    connections: Arc<Connections>,
    network: IpAddr,
}

impl Connections {
    /// None yet.
    pub(crate) fn new(limits: &DnsLimits) -> Self {
        Self {
            most: limits.connections,
            most_of_client: limits.connections_of_client,
            open: Mutex::default(),
        }
    }

    /// A place for one of this client; `None` if there are too many.
    pub(crate) fn place(self: &Arc<Self>, client: IpAddr) -> Option<ConnectionPlace> {
        let network = host_network(client);
        let mut open = self.open();
        let of_client = open.get(&network).copied().unwrap_or_default();
        if of_client >= self.most_of_client || open.values().sum::<usize>() >= self.most {
            return None;
        }
        open.insert(network, of_client + 1);
        Some(ConnectionPlace { connections: self.clone(), network })
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        match open.get_mut(&self.network) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => {
                open.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_does_not_take_the_places_of_others_and_a_place_is_free_again_once_it_is_left() {
        let limits = DnsLimits { connections: 3, connections_of_client: 2, ..DnsLimits::default() };
        let connections = Arc::new(Connections::new(&limits));
        let place = |client: &str| connections.place(client.parse().unwrap());
        let (first, second) = (place("2001:db8::1"), place("2001:db8::2"));
        assert!(first.is_some() && second.is_some());
        assert!(place("2001:db8::3").is_none(), "a host has all addresses of its network");
        let other = place("192.0.2.7");
        assert!(other.is_some());
        assert!(place("192.0.2.8").is_none(), "there are too many in all");
        drop(first);
        assert!(place("192.0.2.8").is_some() && place("2001:db8::3").is_some());
        drop((second, other));
        assert!(connections.open().is_empty());
    }
}
