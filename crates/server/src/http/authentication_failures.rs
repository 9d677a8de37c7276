//! Failed authentications: told in the log at a limited rate, and slowed by network. Decides on no identity.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::stranger_log::{LineLimit, MOST_NETWORKS, PERIOD};
use bellwether_rt::host_network::host_network;

/// Failures of a network in a period whose answers are not delayed: a person who mistypes, or a program with an old token.
const UNDELAYED: u64 = 10;

/// Delay of each further answer.
const DELAY: Duration = Duration::from_secs(1);

/// Most answers of a network that are delayed at the same time. Meanwhile, further tokens from there that nobody has are answered as busy.
const MOST_DELAYED: usize = 8;

/// The failures of all networks. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AuthenticationFailures(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    networks: BTreeMap<IpAddr, OfNetwork>,
    lines: LineLimit,
}

/// The failures of one network in the present period.
#[derive(Debug)]
struct OfNetwork {
    since: Instant,
    count: u64,
    delayed: usize,
}

/// An answer that is to be delayed; it counts as such until this is dropped.
#[derive(Debug)]
pub(super) struct Delayed {
    failures: AuthenticationFailures,
    network: IpAddr,
}

impl AuthenticationFailures {
    /// Whether another answer to this address may be delayed: not while too many of its network are.
    pub(super) fn admits(&self, address: IpAddr) -> bool {
        let of = host_network(address);
        self.counted().networks.get(&of).is_none_or(|found| found.delayed < MOST_DELAYED)
    }

    /// Counts a failure, at once: what comes at the same time must not all be looked at before it. Its answer may be delayed.
    #[must_use]
    pub(super) fn count(&self, address: SocketAddr, credential: &'static str) -> Option<Delayed> {
        let now = Instant::now();
        let mut counted = self.counted();
        let network = counted.place(host_network(address.ip()), now);
        let of = counted.networks.entry(network).or_insert(OfNetwork { since: now, count: 0, delayed: 0 });
        if now.saturating_duration_since(of.since) >= PERIOD {
            (of.since, of.count) = (now, 0);
        }
        of.count = of.count.saturating_add(1);
        let count = of.count;
        let is_delayed = count > UNDELAYED;
        if is_delayed {
            of.delayed = of.delayed.saturating_add(1);
        }
        // The first, the first that is delayed, and then ever fewer of them.
        if (count == 1 || count == UNDELAYED.saturating_add(1) || count.is_power_of_two() && is_delayed)
            && counted.lines.admits(now)
        {
            tracing::warn!(address = %address.ip(), credential, count, is_delayed, "authentication failed");
        }
        drop(counted);
        is_delayed.then(|| Delayed { failures: self.clone(), network })
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        // Held for a change of the map, never across an await; consistent after every change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    /// Where failures of a network are counted, with room made for it.
    fn place(&mut self, network: IpAddr, now: Instant) -> IpAddr {
        if self.networks.contains_key(&network) || self.networks.len() < MOST_NETWORKS {
            return network;
        }
        self.networks.retain(|_, of| of.delayed > 0 || now.saturating_duration_since(of.since) < PERIOD);
        if self.networks.len() < MOST_NETWORKS { network } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) }
    }
}

impl Delayed {
    /// Returns when the answer may be given.
    pub(super) async fn wait(self) {
        tokio::time::sleep(DELAY).await;
    }
}

impl Drop for Delayed {
    fn drop(&mut self) {
        if let Some(of) = self.failures.counted().networks.get_mut(&self.network) {
            of.delayed = of.delayed.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(host: u32) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + host)), 1)
    }

    /// Counts a failure, and waits until it may be answered.
    async fn fails(failures: &AuthenticationFailures, address: SocketAddr) {
        if let Some(delayed) = failures.count(address, "token") {
            delayed.wait().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_answers_of_a_network_that_fails_often_are_delayed_and_those_of_others_are_not() {
        let failures = AuthenticationFailures::default();
        let begun = Instant::now();
        for _ in 0..UNDELAYED {
            fails(&failures, from(1)).await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        fails(&failures, from(1)).await;
        assert_eq!(begun.elapsed(), DELAY);
        fails(&failures, from(2)).await;
        assert_eq!(begun.elapsed(), DELAY, "another network");
        tokio::time::advance(PERIOD).await;
        let later = Instant::now();
        fails(&failures, from(1)).await;
        assert_eq!(later.elapsed(), Duration::ZERO, "another period");
    }

    #[tokio::test]
    async fn no_more_answers_are_delayed_than_may_be() {
        let failures = AuthenticationFailures::default();
        let mut delayed = Vec::new();
        for number in 0.. {
            assert!(number < 100 && failures.admits(from(2).ip()));
            if !failures.admits(from(1).ip()) {
                break;
            }
            delayed.extend(failures.count(from(1), "token"));
        }
        assert_eq!(delayed.len(), MOST_DELAYED);
        drop(delayed.pop());
        assert!(failures.admits(from(1).ip()), "one that went away makes room");
    }

    #[tokio::test(start_paused = true)]
    async fn very_many_networks_take_neither_memory_nor_the_log() {
        let failures = AuthenticationFailures::default();
        for host in 0..10_000 {
            drop(failures.count(from(host), "token"));
        }
        let networks = failures.counted().networks.len();
        assert!(networks <= MOST_NETWORKS + 1, "{networks}");
        assert!(!failures.counted().lines.admits(Instant::now()));
        tokio::time::advance(PERIOD).await;
        assert!(failures.counted().lines.admits(Instant::now()));
        drop(failures.count(from(10_001), "token"));
        assert_eq!(failures.counted().networks.len(), 1, "those of a former period are forgotten");
    }
}
