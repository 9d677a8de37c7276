//! For a fuzz target: messages are answered without sockets, by what answers those of clients.

use std::sync::Arc;

use bellwether_core::dns::zone::Zone;
use tokio::sync::watch;

use crate::clients::Clients;
use crate::config::DnsLimits;
use crate::record_cache::RecordCache;
use crate::resolver::{AnswerLimits, MessageAction, Resolver};

/// Answers messages from one zone, and forwards none.
#[derive(Debug)]
pub struct Answerer {
    resolver: Resolver,
    cache: RecordCache,
}

impl Answerer {
    /// Answers from this zone.
    #[must_use]
    pub fn of(zone: Zone) -> Self {
        let (_, zone) = watch::channel(Arc::new(zone));
        let clients = Clients::new(&DnsLimits::default());
        let resolver = Resolver { zone, counters: Arc::default(), forwarder: None, clients };
        let cache = resolver.cache(64 << 10);
        Self { resolver, cache }
    }

    /// The answer to a message over UDP; `None` if it is dropped.
    pub fn answer(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let way = AnswerLimits { limit: None, seed: 1 };
        match self.resolver.respond(&mut self.cache, message, way, &mut out) {
            MessageAction::Send => Some(out),
            MessageAction::Drop | MessageAction::Forward(..) => None,
        }
    }
}
