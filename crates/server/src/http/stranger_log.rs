//! What strangers cause, told in the log at a limited rate: they must not be able to fill the disk.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use h2::Reason;
use tokio::time::Instant;

use bellwether_rt::host_network::host_network;

/// Time in which what a network causes is counted together.
pub(super) const PERIOD: Duration = Duration::from_secs(60);

/// Most networks that are counted on their own; the others are counted together.
pub(super) const MOST_NETWORKS: usize = 4_096;

/// Most lines of a kind in a period.
const MOST_LINES: u64 = 60;

/// Lines of a kind in the present period.
#[derive(Debug, Default)]
pub(super) struct LineLimit(Option<(Instant, u64)>);

impl LineLimit {
    /// Whether another line may be written.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        let (since, lines) = self.0.unwrap_or((now, 0));
        let (since, lines) =
            if now.saturating_duration_since(since) >= PERIOD { (now, 0) } else { (since, lines) };
        self.0 = Some((since, lines.saturating_add(1)));
        lines < MOST_LINES
    }
}

/// Connections that were closed since their peers made work and wanted nothing. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadLog(Arc<Mutex<LoadCounts>>);

#[derive(Debug, Default)]
struct LoadCounts {
    /// By network: since when they are counted, and how many there were.
    networks: BTreeMap<IpAddr, (Instant, u64)>,
    lines: LineLimit,
}

impl LoadLog {
    /// Counts and tells the end of a connection, if the server closed it for that.
    pub(super) fn ended(&self, address: SocketAddr, error: &(dyn Error + 'static)) {
        if !is_load(error) {
            return;
        }
        if let Some(count) = self.count(address, Instant::now()) {
            tracing::warn!(address = %address.ip(), count, "closed a connection that made work and wanted nothing");
        }
    }

    /// Counts one; how many there were of its network, if that is to be told: the first, and then ever fewer of them.
    fn count(&self, address: SocketAddr, now: Instant) -> Option<u64> {
        // Held for a change of the map, never across an await; consistent after every change.
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_present = |since: Instant| now.saturating_duration_since(since) < PERIOD;
        let mut network = host_network(address.ip());
        if !counts.networks.contains_key(&network) && counts.networks.len() >= MOST_NETWORKS {
            counts.networks.retain(|_, (since, _)| is_present(*since));
            if counts.networks.len() >= MOST_NETWORKS {
                network = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            }
        }
        let (since, count) = counts.networks.entry(network).or_insert((now, 0));
        if !is_present(*since) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        let count = *count;
        (count.is_power_of_two() && counts.lines.admits(now)).then_some(count)
    }
}

/// Whether this server ended a connection of HTTP/2 since its peer made too much work.
fn is_load(error: &(dyn Error + 'static)) -> bool {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    let mut causes = chain.filter_map(|error| error.downcast_ref::<h2::Error>());
    causes.any(|error| error.is_library() && error.reason() == Some(Reason::ENHANCE_YOUR_CALM))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    impl LoadLog {
        /// How many connections were counted, in all.
        pub(in super::super) fn total(&self) -> u64 {
            self.0.lock().unwrap().networks.values().map(|(_, count)| count).sum()
        }
    }

    #[test]
    fn what_a_network_or_very_many_of_them_cause_takes_few_lines() {
        let (log, now) = (LoadLog::default(), Instant::now());
        let from = |host: u32| SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + host)), 1);
        let told: Vec<u64> = (0..400).filter_map(|_| log.count(from(1), now)).collect();
        assert_eq!(told, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
        let told = (0..10_000).filter(|host| log.count(from(*host), now).is_some()).count();
        assert!(told < 60, "{told}");
        let networks = log.0.lock().unwrap().networks.len();
        assert!(networks <= MOST_NETWORKS + 1, "{networks}");
        assert_eq!(log.count(from(1), now + PERIOD), Some(1), "in the next period");
    }
}
