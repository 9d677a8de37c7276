//! Messages to the DNS server.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::instance::{Instance, InstanceState};
use bellwether_core::dns::zone::{Zone, ZoneOrigin, ZoneSettings};
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::time::Timestamp;
use bellwether_dns::fuzzing::Answerer;

/// Most bytes of an answer over UDP, whatever a client says that it takes.
const MOST_BYTES: usize = 1_232;

/// A service `web` of so many instances that no answer over UDP has all.
fn zone() -> Zone {
    let mut catalogue = Catalogue::default();
    for number in 0..150_u8 {
        let at = vec![IpAddr::from([10, 0, 0, number])];
        let addresses = Addresses(BTreeMap::from([("eth0".parse().expect("a name"), at)]));
        let node = format!("node-{number}").parse().expect("a name");
        catalogue.set_host(&node, Some(addresses.clone()));
        let instance = Instance {
            name: "main".parse().expect("a name"),
            node,
            addresses,
            port: Some(80),
            tags: ["blue".parse().expect("a tag")].into(),
            meta: BTreeMap::new(),
            level: InstanceState::Passing,
            since: Timestamp::EPOCH,
        };
        catalogue.put(&"web".parse().expect("a name"), instance);
    }
    let settings = ZoneSettings::new("dc1".parse().expect("a name"), "node-1".parse().expect("a name"));
    let origin = Arc::new(ZoneOrigin::new(settings).expect("a zone"));
    Zone { origin, catalogue, serial: 1, stale_since: None }
}

thread_local! {
    static ANSWERER: RefCell<Answerer> = RefCell::new(Answerer::of(zone()));
}

/// A message: it is dropped, or answered as a reply to it that fits into a packet.
pub fn query(data: &[u8]) {
    let Some(answer) = ANSWERER.with_borrow_mut(|answerer| answerer.answer(data)) else { return };
    assert!(answer.len() <= MOST_BYTES, "{} bytes", answer.len());
    assert_eq!(answer.get(..2), data.get(..2), "the id of the query");
    assert!(answer.get(2).is_some_and(|flags| flags & 0x80 != 0), "an answer is one");
}
