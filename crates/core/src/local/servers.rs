//! Which server this machine calls: configured and advertised ones, in an order of its own, so that a fleet
//! is spread over the servers, and again after one was away. Owns the choice; never calls a server.

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

/// How long a preferred server must be live, without a failure observed from here, before the machine returns
/// to it, give or take a quarter: a minute at least, so that an unstable server attracts no machines, and
/// long enough that a fleet moves over more than half a minute.
const CALM: Span = Span::from_secs(80);

/// Most doublings of that time when a preferred server does not answer: one that cannot be reached from here
/// at all is tried three times an hour.
const DOUBLINGS: u32 = 4;

/// Most servers that are remembered: several times the size of a control plane.
const MOST: usize = 16;

/// A server that the control plane advertised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvertisedServer {
    /// Name of the server.
    pub name: ServerName,
    /// URL of the server, like `https://10.0.0.1:7420`.
    pub address: String,
    /// Whether it was live in the last advertisement.
    pub live: bool,
}

/// A live server, as advertised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveServer {
    /// Name of the server.
    pub name: ServerName,
    /// URL of the server.
    pub address: String,
    /// How long it has been live.
    pub lasts: Span,
}

/// What this machine observed of a server.
#[derive(Debug, Clone, Copy, Default)]
struct ServerRecord {
    /// Start of the time without failure, by this machine's clock.
    calm_since: Timestamp,
    /// Consecutive calls without an answer.
    failed: u32,
}

/// The known servers, and the one in use.
#[derive(Debug, Clone)]
pub struct KnownServers {
    me: String,
    seed: u64,
    configured: Vec<String>,
    advertised: Vec<AdvertisedServer>,
    records: BTreeMap<String, ServerRecord>,
    current: String,
}

impl KnownServers {
    /// The servers of the machine called `me`; the first in its order is in use. `seed` spreads times, not
    /// the order, which is the same after every start.
    #[must_use]
    pub fn new(
        me: &str,
        seed: u64,
        configured: Vec<String>,
        advertised: Vec<AdvertisedServer>,
        now: Timestamp,
    ) -> Self {
        let (me, records, current) = (me.to_owned(), BTreeMap::new(), String::new());
        let mut servers = Self { me, seed, configured, advertised, records, current };
        let order = servers.order();
        let calm = ServerRecord { calm_since: now, failed: 0 };
        servers.records = order.iter().map(|address| (address.clone(), calm)).collect();
        servers.current = order.into_iter().next().unwrap_or_default();
        servers
    }

    /// URL of the server in use.
    #[must_use]
    pub fn current(&self) -> &str {
        &self.current
    }

    /// The advertised servers, to be stored.
    #[must_use]
    pub fn advertised(&self) -> &[AdvertisedServer] {
        &self.advertised
    }

    /// Applies an advertisement of the live servers. Servers that are not live any more are remembered: they
    /// may be all that is left when the others are gone.
    pub fn update(&mut self, live: Vec<LiveServer>, now: Timestamp) {
        let before: Vec<AdvertisedServer> = core::mem::take(&mut self.advertised);
        for server in live.into_iter().take(MOST) {
            let was = before.iter().any(|advertised| advertised.live && advertised.address == server.address);
            let since = Timestamp::from_millis(now.as_millis().saturating_sub(server.lasts.as_millis()));
            let record = self
                .records
                .entry(server.address.clone())
                .or_insert(ServerRecord { calm_since: since, failed: 0 });
            if !was {
                // It returned, or is new: its failures before are ignored, except for their time.
                *record = ServerRecord { calm_since: record.calm_since.max(since), failed: 0 };
            }
            self.advertised.push(AdvertisedServer { name: server.name, address: server.address, live: true });
        }
        for gone in before {
            let replaced = self
                .advertised
                .iter()
                .any(|advertised| advertised.name == gone.name || advertised.address == gone.address);
            if !replaced && self.advertised.len() < MOST {
                self.advertised.push(AdvertisedServer { live: false, ..gone });
            }
        }
        let known = self.order();
        self.records.retain(|address, _| known.contains(address));
    }

    /// The server in use did not answer: switches to the next one.
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

    /// Records that this server did not answer when it was tried.
    pub fn avoid(&mut self, address: &str, now: Timestamp) {
        let record = self.records.entry(address.to_owned()).or_default();
        *record = ServerRecord { calm_since: now, failed: record.failed.saturating_add(1) };
    }

    /// A preferred server to return to, and the earliest time, `now` or later: of all preferred ones, the
    /// first that may be used. The caller switches to it only once it answers.
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

    /// Uses this server from now on, as it answers.
    pub fn move_to(&mut self, address: &str) {
        if let Some(record) = self.records.get_mut(address) {
            record.failed = 0;
        }
        address.clone_into(&mut self.current);
    }

    /// Every address, the preferred ones first: live servers, then configured ones, then those that were live
    /// once. Within each group every machine has an order of its own, which does not depend on the other
    /// servers.
    fn order(&self) -> Vec<String> {
        let here = self.configured.iter().any(|address| is_this_machine(address));
        let callable = |advertised: &&AdvertisedServer| {
            advertised.address.starts_with("https://") && (here || !is_this_machine(&advertised.address))
        };
        let named = |live: bool| {
            let advertised =
                self.advertised.iter().filter(callable).filter(move |advertised| advertised.live == live);
            advertised.map(|advertised| (self.weight(advertised.name.as_str()), &advertised.address))
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

    /// How much this machine prefers a server: among many, each is the highest equally often.
    fn weight(&self, server: &str) -> u64 {
        let mut digest = Digest::default();
        digest.add(self.me.as_bytes());
        digest.add(server.as_bytes());
        delay::mix(digest.finish(), 0)
    }
}

/// Whether an address is a loopback or unspecified one: on another machine it would mean that machine.
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
