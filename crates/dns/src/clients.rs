//! Who is answered: clients in the allowed ranges, and beyond local networks only so many answers a second over UDP, since the address
//! that a packet claims to come from may be that of somebody who did not ask.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use bellwether_core::words::address_range::AddressRange;
use tokio::time::Instant;

use crate::config::DnsLimits;

/// Number of counters. Networks beyond that share one: whoever asks in the name of very many is limited too.
const COUNTERS: usize = 4_096;

/// Of the queries beyond the limit, every second one is answered as truncated, as long as the query is, so that a client that is really
/// there asks again over TCP. The others are dropped.
const TRUNCATED_OF: u32 = 2;

/// What to do with a query, as far as its client decides that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientVerdict {
    /// Answer it.
    Answer,
    /// Refuse it.
    Refuse,
    /// Answer that the answer is truncated.
    Truncate,
    /// Drop it.
    Drop,
}

/// The clients of a server.
#[derive(Debug)]
pub(crate) struct Clients {
    allowed: Vec<AddressRange>,
    unlimited: Vec<AddressRange>,
    /// Most answers to a network in a second.
    most: u32,
    since: Instant,
    counters: Mutex<Vec<NetworkCounter>>,
}

/// The queries of a network in one second.
#[derive(Debug, Clone, Copy, Default)]
struct NetworkCounter {
    second: u64,
    queries: u32,
}

impl Clients {
    pub(crate) fn new(limits: &DnsLimits) -> Self {
        Self {
            allowed: limits.allowed.clone(),
            unlimited: limits.unlimited.clone(),
            most: limits.answers_per_second,
            since: Instant::now(),
            counters: Mutex::new(vec![NetworkCounter::default(); COUNTERS]),
        }
    }

    /// Whether a client is answered at all.
    pub(crate) fn is_allowed(&self, address: IpAddr) -> bool {
        has(&self.allowed, address.to_canonical())
    }

    /// What to do with a query that came over UDP.
    pub(crate) fn judge(&self, address: IpAddr) -> ClientVerdict {
        let address = address.to_canonical();
        let permitted =
            if has(&self.allowed, address) { ClientVerdict::Answer } else { ClientVerdict::Refuse };
        if has(&self.unlimited, address) {
            return permitted;
        }
        let second = self.since.elapsed().as_secs();
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(counter) = counters.get_mut(place(address)) else { return ClientVerdict::Drop };
        if counter.second != second {
            *counter = NetworkCounter { second, queries: 0 };
        }
        counter.queries = counter.queries.saturating_add(1);
        match counter.queries.checked_sub(self.most) {
            None | Some(0) => permitted,
            Some(beyond) if permitted == ClientVerdict::Answer && beyond.is_multiple_of(TRUNCATED_OF) => {
                ClientVerdict::Truncate
            }
            Some(_) => ClientVerdict::Drop,
        }
    }
}

fn has(ranges: &[AddressRange], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(address))
}

/// The counter of the address's network: its first 24 bits, or 56 of IPv6. Multiplied by an odd number, so that neighbours are apart.
fn place(address: IpAddr) -> usize {
    let network = match address {
        IpAddr::V4(address) => u64::from(address.to_bits() >> 8),
        IpAddr::V6(address) => u64::try_from(address.to_bits() >> 72).unwrap_or_default() | 1 << 56,
    };
    let spread = network.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    usize::try_from(spread).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn clients(allowed: &[&str]) -> Clients {
        let allowed = allowed.iter().map(|range| range.parse().unwrap()).collect();
        Clients::new(&DnsLimits { allowed, answers_per_second: 2, ..DnsLimits::default() })
    }

    fn judged(clients: &Clients, address: &str, times: usize) -> Vec<ClientVerdict> {
        (0..times).map(|_| clients.judge(address.parse().unwrap())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_limit_a_network_has_no_more_answers_in_this_second() {
        use ClientVerdict::{Answer, Drop, Truncate};
        let clients = clients(&["0.0.0.0/0", "::/0"]);
        let first = judged(&clients, "192.0.2.1", 4);
        assert_eq!(first, [Answer, Answer, Drop, Truncate]);
        assert_eq!(judged(&clients, "192.0.2.200", 2), [Drop, Truncate], "of the same network");
        assert_eq!(judged(&clients, "192.0.3.1", 1), [Answer], "of another one");
        assert_eq!(judged(&clients, "2001:db8::1", 3), [Answer, Answer, Drop]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(judged(&clients, "192.0.2.1", 2), [Answer, Answer]);
    }

    #[test]
    fn local_networks_are_not_limited_and_others_are_refused_unless_allowed() {
        let by_default = Clients::new(&DnsLimits { answers_per_second: 2, ..DnsLimits::default() });
        assert_eq!(judged(&by_default, "10.0.0.7", 100), [ClientVerdict::Answer; 100]);
        assert_eq!(judged(&by_default, "::ffff:127.0.0.1", 1), [ClientVerdict::Answer]);
        use ClientVerdict::{Drop, Refuse};
        assert_eq!(judged(&by_default, "192.0.2.1", 4), [Refuse, Refuse, Drop, Drop]);
        assert!(!by_default.is_allowed("192.0.2.1".parse().unwrap()));
    }
}
