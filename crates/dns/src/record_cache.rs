//! Records that were asked for before, ready to be sent again. Owns when they are forgotten: with the zone they are from,
//! and when there are too many; never what they say.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_core::dns::name::DnsName;
use bellwether_core::dns::zone::Zone;

use crate::wire::records::RecordSet;

/// How much a listener keeps, in bytes. When it is full all of it is forgotten: what is asked for often is soon there again.
pub(crate) const MAX_BYTES: usize = 8 << 20;

/// What each entry costs besides its records, in bytes, roughly.
const ENTRY_BYTES: usize = 128;

/// The records of names that were asked for, as of one zone. Each listener has its own, so that none waits for another.
#[derive(Debug)]
pub(crate) struct RecordCache {
    zone: Arc<Zone>,
    records: HashMap<Vec<u8>, Arc<RecordSet>>,
    bytes: usize,
    most_bytes: usize,
    key: Vec<u8>,
}

impl RecordCache {
    /// An empty one that keeps at most so many bytes; with none, every question is looked up.
    pub(crate) fn new(zone: Arc<Zone>, most_bytes: usize) -> Self {
        Self { zone, records: HashMap::new(), bytes: 0, most_bytes, key: Vec::new() }
    }

    /// The zone that answers come from now; with another one than before, everything is forgotten.
    pub(crate) fn renew(&mut self, zone: &Arc<Zone>) {
        if !Arc::ptr_eq(&self.zone, zone) {
            self.zone = zone.clone();
            self.forget();
        }
    }

    /// The zone whose records these are.
    pub(crate) fn zone(&self) -> Arc<Zone> {
        self.zone.clone()
    }

    /// The records for a question, if they are here.
    pub(crate) fn find(&mut self, name: &DnsName, kind: u16) -> Option<Arc<RecordSet>> {
        self.key.clear();
        self.key.extend_from_slice(&kind.to_be_bytes());
        self.key.extend_from_slice(name.bytes());
        self.records.get(&self.key).cloned()
    }

    /// Keeps the records for the question that was looked for last. Only for names that exist: of others there are too many.
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
    fn records_are_kept_until_the_zone_changes_and_never_without_bound() {
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
