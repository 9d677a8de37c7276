use std::collections::BTreeMap;
use std::net::IpAddr;

use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::instance::{Instance, InstanceState};
use bellwether_core::dns::zone::{ZoneOrigin, ZoneSettings};
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::time::Timestamp;
use proptest::prelude::*;
use simple_dns::Packet;

use super::*;
use crate::config::{DnsLimits, ForwardConfig};
use crate::wire::MAX_TCP_BYTES;

fn zone() -> Zone {
    let mut catalogue = Catalogue::default();
    for number in 0..150_u8 {
        let at = |ten: u8| {
            let list = vec![IpAddr::from([10, ten, 0, number])];
            Addresses(BTreeMap::from([("eth0".parse().unwrap(), list)]))
        };
        let node = format!("node-{number}");
        catalogue.set_host(&node.parse().unwrap(), Some(at(0)));
        let instance = Instance {
            name: "main".parse().unwrap(),
            node: node.parse().unwrap(),
            addresses: at(number % 2),
            port: Some(80),
            tags: ["blue".parse().unwrap()].into(),
            meta: BTreeMap::new(),
            level: InstanceState::Passing,
            since: Timestamp::EPOCH,
        };
        catalogue.put(&"web".parse().unwrap(), instance);
    }
    let settings = ZoneSettings::new("dc1".parse().unwrap(), "node-1".parse().unwrap());
    Zone { origin: Arc::new(ZoneOrigin::new(settings).unwrap()), catalogue, serial: 1, stale_since: None }
}

fn resolver(forwards: bool) -> Resolver {
    let (_, zone) = watch::channel(Arc::new(zone()));
    let forward = ForwardConfig::to(["192.0.2.1:53".parse().unwrap()]);
    let forwarder = forwards.then(|| Arc::new(Forwarder::new(forward)));
    let clients = Clients::new(&DnsLimits::default());
    Resolver { zone, counters: Arc::default(), forwarder, clients }
}

/// A query without EDNS, or with this payload size.
fn message(name: &str, kind: u16, payload: Option<u16>) -> Vec<u8> {
    let mut message = vec![7, 9, 1, 0x10, 0, 1, 0, 0, 0, 0, 0, u8::from(payload.is_some())];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend_from_slice(label.as_bytes());
    }
    message.push(0);
    message.extend_from_slice(&kind.to_be_bytes());
    message.extend_from_slice(&[0, 1]);
    if let Some(payload) = payload {
        message.extend_from_slice(&[0, 0, 41]);
        message.extend_from_slice(&payload.to_be_bytes());
        message.extend_from_slice(&[0, 0, 0x80, 0, 0, 0]);
    }
    message
}

/// The response code, with the upper bits from EDNS; `None` if the message is dropped or forwarded.
fn code(resolver: &Resolver, message: &[u8]) -> Option<u8> {
    let mut out = Vec::new();
    match resolver.respond(&mut resolver.cache(0), message, AnswerLimits { limit: None, seed: 1 }, &mut out) {
        MessageAction::Send => Some(out[3] & 15),
        MessageAction::Drop | MessageAction::Forward(..) => None,
    }
}

fn changed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut message = message("web.service.bw.internal", 1, Some(1_232));
    change(&mut message);
    message
}

#[test]
fn a_malformed_message_is_dropped_or_gets_its_code() {
    let resolver = resolver(false);
    for (message, expected) in [
        (changed(|_| ()), Some(0)),
        (changed(|message| message.truncate(11)), None),
        (changed(|message| message[2] |= 0x80), None),
        (changed(|message| message[2] |= 0x28), Some(4)),
        (changed(|message| message[5] = 0), Some(1)),
        (changed(|message| message[5] = 2), Some(1)),
        (changed(|message| message[12] = 0xC0), Some(1)),
        (changed(|message| message[12] = 64), Some(1)),
        (changed(|message| message.truncate(20)), Some(1)),
        (changed(|message| message.push(0)), Some(1)),
        (changed(|message| message[11] = 200), Some(1)),
        // EDNS twice, EDNS not at the root, an unknown version of EDNS, EDNS as the queried type.
        (
            changed(|message| {
                message[11] = 2;
                message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
            }),
            Some(1),
        ),
        (changed(|message| drop(message.splice(41..42, [1, b'x', 0]))), Some(1)),
        (changed(|message| message[47] = 1), Some(0)),
        (message("web.service.bw.internal", 41, None), Some(1)),
        (message("", 2, None), Some(5)),
    ] {
        assert_eq!(code(&resolver, &message), expected, "{message:?}");
    }
    let counts = resolver.counters.read(None);
    assert_eq!((counts.dropped, counts.not_imp, counts.bad_vers, counts.form_err), (2, 1, 1, 10));
}

#[test]
fn only_recursive_queries_outside_the_zone_are_forwarded() {
    let resolver = resolver(true);
    assert_eq!(code(&resolver, &message("example.org", 1, None)), None);
    assert_eq!(code(&resolver, &message("1.2.0.192.in-addr.arpa", 12, None)), None);
    assert_eq!(code(&resolver, &message("nobody.service.bw.internal", 1, None)), Some(3));
    let mut undesired = message("example.org", 1, None);
    undesired[2] = 0;
    assert_eq!(code(&resolver, &undesired), Some(5));
}

fn messages() -> impl Strategy<Value = Vec<u8>> {
    let names = [
        "web.service.bw.internal",
        "_web._tcp.service.bw.internal",
        "blue.web.service.dc1.bw.internal",
        "node-1.node.bw.internal",
        "nobody.service.bw.internal",
        "1.0.0.10.in-addr.arpa",
        "1.0.1.10.in-addr.arpa",
        "bw.internal",
        "",
    ];
    let kinds = [1, 2, 5, 6, 12, 28, 33, 41, 252, 255];
    let payload = proptest::option::of(any::<u16>());
    (proptest::sample::select(names.to_vec()), proptest::sample::select(kinds.to_vec()), payload)
        .prop_map(|(name, kind, payload)| message(name, kind, payload))
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 0..4_u8), 0..6);
    (messages(), changes).prop_map(|(mut message, changes)| {
        for (place, byte, how) in changes {
            let place = place.index(message.len());
            match how {
                0 => message[place] = byte,
                1 => message[place] ^= 1 << (byte % 8),
                2 => message.insert(place, byte),
                _ => message.truncate(place.max(1)),
            }
        }
        message
    })
}

/// Puts A and IN where an answer repeats the queried type and class: the other parser does not know all of them.
fn in_known_words(answer: &mut [u8]) {
    if answer[5] == 0 {
        return;
    }
    let mut place = 12;
    while answer[place] != 0 {
        place += 1 + usize::from(answer[place]);
    }
    answer[place + 1..place + 5].copy_from_slice(&[0, 1, 0, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn whatever_comes_in_an_answer_is_whole_and_within_its_limit(
        message in prop_oneof![
            4 => mutated(),
            1 => proptest::collection::vec(any::<u8>(), 0..600),
        ],
        over_tcp in any::<bool>(),
        forwards in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let (resolver, mut out) = (resolver(forwards), vec![1, 2, 3]);
        let way = AnswerLimits { limit: over_tcp.then_some(MAX_TCP_BYTES), seed };
        match resolver.respond(&mut resolver.cache(0), &message, way, &mut out) {
            MessageAction::Send => {
                prop_assert!(over_tcp || out.len() <= 1_232);
                prop_assert_eq!(&out[..2], &message[..2]);
                prop_assert_eq!(out[2] & 0x80, 0x80);
                in_known_words(&mut out);
                let read = Packet::parse(&out);
                prop_assert!(read.is_ok(), "{:?} for {:?}", read, out);
            }
            MessageAction::Drop => prop_assert!(message.len() < 12 || message[2] & 0x80 != 0),
            MessageAction::Forward(query, _) => {
                prop_assert!(forwards);
                // By labels, as a label may contain any byte, dots too.
                let labels: Vec<&[u8]> = query.name.labels().collect();
                prop_assert!(!labels.ends_with(&[b"bw", b"internal"]), "{}", query.name);
            }
        }
    }
}
