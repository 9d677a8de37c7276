//! Which server this machine calls: those it was configured with and those it was told of, in an order of its own, so that a
//! fleet spreads over them by itself and again after one was away. Owns the choice; never calls anybody.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::net::IpAddr;

use super::delay;
use crate::words::digest::Digest;
use crate::words::name::ServerName;
use crate::words::time::{Span, Timestamp};

/// How long a better server must have been in place, without a failure that was seen from here, before it is gone back to,
/// give or take a quarter: a minute at least, so that a server that comes and goes draws nobody, and most of another one over
/// which a fleet moves.
const CALM: Span = Span::from_secs(80);

/// How often that time doubles at most when a better server does not answer: one that cannot be called from here at all is
/// tried three times an hour.
const DOUBLINGS: u32 = 4;

/// Most servers that are remembered: several times what a control plane has.
const MOST: usize = 16;

/// A server that the control plane told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvertisedServer {
    /// Name of the server.
    pub name: ServerName,
    /// Where it is called, like `https://10.0.0.1:7420`.
    pub address: String,
    /// Whether it had its place when servers were last told of.
    pub in_place: bool,
}

/// A server that has its place now, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveServer {
    /// Name of the server.
    pub name: ServerName,
    /// Where it is called.
    pub address: String,
    /// For how long it has had its place.
    pub lasts: Span,
}

/// What is known of a server from here.
#[derive(Debug, Clone, Copy, Default)]
struct ServerRecord {
    /// Since when nothing speaks against it.
    calm_since: Timestamp,
    /// How often in a row it did not answer.
    failed: u32,
}

/// The servers that may be called, and the one that is.
#[derive(Debug, Clone)]
pub struct KnownServers {
    me: String,
    seed: u64,
    configured: Vec<String>,
    told: Vec<AdvertisedServer>,
    records: BTreeMap<String, ServerRecord>,
    current: String,
}

impl KnownServers {
    /// The servers of the machine called `me`, beginning with its first. `seed` spreads moments, not the order: that is the
    /// same after every start.
    #[must_use]
    pub fn new(
        me: &str,
        seed: u64,
        (configured, told): (Vec<String>, Vec<AdvertisedServer>),
        now: Timestamp,
    ) -> Self {
        let (me, records, current) = (me.to_owned(), BTreeMap::new(), String::new());
        let mut servers = Self { me, seed, configured, told, records, current };
        let order = servers.order();
        let calm = ServerRecord { calm_since: now, failed: 0 };
        servers.records = order.iter().map(|address| (address.clone(), calm)).collect();
        servers.current = order.into_iter().next().unwrap_or_default();
        servers
    }

    /// The address that is called.
    #[must_use]
    pub fn current(&self) -> &str {
        &self.current
    }

    /// The servers that were told of, to be kept.
    #[must_use]
    pub fn told(&self) -> &[AdvertisedServer] {
        &self.told
    }

    /// Takes in which servers have their place now. Those that have none any more are remembered: they may be all that is
    /// left when these are gone.
    pub fn tell(&mut self, in_place: Vec<LiveServer>, now: Timestamp) {
        let before: Vec<AdvertisedServer> = core::mem::take(&mut self.told);
        for server in in_place.into_iter().take(MOST) {
            let was = before.iter().any(|told| told.in_place && told.address == server.address);
            let since = Timestamp::from_millis(now.as_millis().saturating_sub(server.lasts.as_millis()));
            let record = self
                .records
                .entry(server.address.clone())
                .or_insert(ServerRecord { calm_since: since, failed: 0 });
            if !was {
                // Back, or new: what it did before it went counts no longer, but for the moment.
                *record = ServerRecord { calm_since: record.calm_since.max(since), failed: 0 };
            }
            self.told.push(AdvertisedServer { name: server.name, address: server.address, in_place: true });
        }
        for gone in before {
            let replaced =
                self.told.iter().any(|told| told.name == gone.name || told.address == gone.address);
            if !replaced && self.told.len() < MOST {
                self.told.push(AdvertisedServer { in_place: false, ..gone });
            }
        }
        let known = self.order();
        self.records.retain(|address, _| known.contains(address));
    }

    /// The one that is called did not answer: the next one is.
    pub fn failed(&mut self, now: Timestamp) {
        let current = self.current.clone();
        self.avoid(&current, now);
        let order = self.order();
        let place = order.iter().position(|address| *address == current);
        let next =
            place.map_or(0, |place| place.saturating_add(1)).checked_rem(order.len()).unwrap_or_default();
        if let Some(next) = order.get(next) {
            self.current = next.clone();
        }
    }

    /// This one did not answer when it was tried.
    pub fn avoid(&mut self, address: &str, now: Timestamp) {
        let record = self.records.entry(address.to_owned()).or_default();
        *record = ServerRecord { calm_since: now, failed: record.failed.saturating_add(1) };
    }

    /// A better one than that which is called, and from when on it may be gone to, `now` or later: the best of those that may
    /// be gone to first. It is to be called only once it answers.
    #[must_use]
    pub fn better(&self, now: Timestamp) -> Option<(String, Timestamp)> {
        let order = self.order();
        let better = order.into_iter().take_while(|address| *address != self.current);
        let due = better.map(|address| {
            let record = self.records.get(&address).copied().unwrap_or_default();
            let calm = Span::from_millis(CALM.as_millis() << record.failed.saturating_sub(1).min(DOUBLINGS));
            (address, record.calm_since.plus(delay::spread(calm, self.seed, record.failed)).max(now))
        });
        due.min_by_key(|(_, at)| *at)
    }

    /// Calls this one from now on: it answers.
    pub fn move_to(&mut self, address: &str) {
        if let Some(record) = self.records.get_mut(address) {
            record.failed = 0;
        }
        address.clone_into(&mut self.current);
    }

    /// Every address, the best first: servers that have their place, then those that were configured, then those that once
    /// had one. Among equals each machine has an order of its own, which does not change with who else is there.
    fn order(&self) -> Vec<String> {
        let here = self.configured.iter().any(|address| is_this_machine(address));
        let callable = |told: &&AdvertisedServer| {
            told.address.starts_with("https://") && (here || !is_this_machine(&told.address))
        };
        let named = |in_place: bool| {
            let told = self.told.iter().filter(callable).filter(move |told| told.in_place == in_place);
            told.map(|told| (self.weight(told.name.as_str()), &told.address))
        };
        let configured = self.configured.iter().map(|address| (self.weight(address), address));
        let mut order: Vec<String> = Vec::new();
        for mut class in [named(true).collect::<Vec<_>>(), configured.collect(), named(false).collect()] {
            class.sort_by_key(|(weight, _)| Reverse(*weight));
            for (_, address) in class {
                if !order.contains(address) {
                    order.push(address.clone());
                }
            }
        }
        order
    }

    /// How much this machine prefers a server: the highest of many is each of them equally often.
    fn weight(&self, server: &str) -> u64 {
        let mut digest = Digest::default();
        digest.add(self.me.as_bytes());
        digest.add(server.as_bytes());
        delay::mix(digest.finish(), 0)
    }
}

/// Whether an address means the machine it is said on: told to another one, it says nothing.
fn is_this_machine(address: &str) -> bool {
    let host = address.trim_start_matches("https://");
    let host = host.split_once(']').map_or_else(
        || host.split(':').next().unwrap_or_default(),
        |(bracketed, _)| bracketed.trim_start_matches('['),
    );
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

#[cfg(test)]
mod tests;
