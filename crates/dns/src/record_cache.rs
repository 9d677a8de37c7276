//! A cache of encoded records of names that were queried before. It is cleared when the zone changes, and when it is full.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_core::dns::name::DnsName;
use bellwether_core::dns::zone::Zone;

use crate::wire::records::RecordSet;

/// Size of a listener's cache, in bytes. A full cache is cleared: frequent queries soon fill it again.
pub(crate) const MAX_BYTES: usize = 8 << 20;

/// Rough cost of an entry besides its records, in bytes.
const ENTRY_BYTES: usize = 128;

/// The records of queried names, as of one zone. Each listener has its own cache, so that none waits for another.
#[derive(Debug)]
pub(crate) struct RecordCache {
    zone: Arc<Zone>,
    records: HashMap<Vec<u8>, Arc<RecordSet>>,
    bytes: usize,
    most_bytes: usize,
    key: Vec<u8>,
}

impl RecordCache {
    /// An empty cache of at most this many bytes; with zero, nothing is cached.
    pub(crate) fn new(zone: Arc<Zone>, most_bytes: usize) -> Self {
        Self { zone, records: HashMap::new(), bytes: 0, most_bytes, key: Vec::new() }
    }

    /// Sets the zone of further answers; a new zone clears the cache.
    pub(crate) fn renew(&mut self, zone: &Arc<Zone>) {
        if !Arc::ptr_eq(&self.zone, zone) {
            self.zone = zone.clone();
            self.forget();
        }
    }

    /// The zone of the records.
    pub(crate) fn zone(&self) -> Arc<Zone> {
        self.zone.clone()
    }

    /// The records for a question, if they are cached.
    pub(crate) fn find(&mut self, name: &DnsName, kind: u16) -> Option<Arc<RecordSet>> {
        self.key.clear();
        self.key.extend_from_slice(&kind.to_be_bytes());
        self.key.extend_from_slice(name.bytes());
        self.records.get(&self.key).cloned()
    }

    /// Caches the records for the last question. Only for names that exist: there are too many others.
    pub(crate) fn keep(&mut self, records: &Arc<RecordSet>) {
        let bytes = records.weight() + self.key.len() + ENTRY_BYTES;
        if bytes > self.most_bytes {
            return;
        }
        if self.bytes + bytes > self.most_bytes {
            self.forget();
        }
        self.bytes += bytes;
        self.records.insert(self.key.clone(), records.clone());
    }

    fn forget(&mut self) {
        self.records.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::catalogue::Catalogue;
    use bellwether_core::dns::zone::{ZoneOrigin, ZoneSettings};

    use super::*;

    fn zone() -> Arc<Zone> {
        let settings = ZoneSettings::new("dc1".parse().unwrap(), "a".parse().unwrap());
        let origin = Arc::new(ZoneOrigin::new(settings).unwrap());
        Arc::new(Zone { origin, catalogue: Catalogue::default(), serial: 1, stale_since: None })
    }

    #[test]
    fn records_are_cached_until_the_zone_changes_and_within_the_limit() {
        let (first, name) = (zone(), "web.service.bw.internal".parse().unwrap());
        let mut cache = RecordCache::new(first.clone(), MAX_BYTES);
        assert!(cache.find(&name, 1).is_none());
        cache.keep(&Arc::default());
        cache.renew(&first);
        assert!(cache.find(&name, 1).is_some() && cache.find(&name, 28).is_none());
        cache.renew(&zone());
        assert!(cache.find(&name, 1).is_none());
        for number in 0..100_000_u32 {
            cache.find(&format!("{number}.node.bw.internal").parse().unwrap(), 1);
            cache.keep(&Arc::default());
            assert!(cache.bytes <= MAX_BYTES);
        }
        assert!(cache.records.len() * ENTRY_BYTES <= MAX_BYTES);
    }
}
