use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use proptest::prelude::*;

use super::zone::{ZoneOrigin, ZoneSettings};
use super::*;
use crate::catalogue::Catalogue;
use crate::catalogue::instance::InstanceState;
use crate::words::time::{Span, Timestamp};

fn settings() -> ZoneSettings {
    ZoneSettings::new("dc1".parse().unwrap(), "ns-1".parse().unwrap())
}

fn addresses(list: &[&str]) -> Addresses {
    let list = list.iter().map(|address| address.parse().unwrap()).collect();
    Addresses(BTreeMap::from([("eth0".parse().unwrap(), list)]))
}

/// `node addresses port tags level`, lists with commas, `-` for none.
fn instance(text: &str) -> Instance {
    let [node, at, port, tags, level] = *text.split(' ').collect::<Vec<_>>() else { panic!("{text}") };
    let list = |text: &str| -> Vec<String> {
        text.split(',').filter(|one| *one != "-").map(ToString::to_string).collect()
    };
    let at = list(at);
    Instance {
        name: format!("on-{port}").parse().unwrap(),
        node: node.parse().unwrap(),
        addresses: addresses(&at.iter().map(String::as_str).collect::<Vec<_>>()),
        port: port.parse().ok(),
        tags: list(tags).iter().map(|tag| tag.parse().unwrap()).collect::<BTreeSet<_>>(),
        meta: BTreeMap::new(),
        level: match level {
            "passing" => InstanceState::Passing,
            "warning" => InstanceState::Warning { reason: "slow".into() },
            "failing" => InstanceState::Failing { reason: "down".into() },
            _ => InstanceState::Unreachable,
        },
        since: Timestamp::EPOCH,
    }
}

fn zone() -> Zone {
    let mut catalogue = Catalogue::default();
    catalogue.set_host(&"ns-1".parse().unwrap(), Some(addresses(&["10.0.0.9"])));
    for number in 1..=4 {
        let at = [format!("10.0.0.{number}"), format!("fd00::{number}")];
        let at = addresses(&[at[0].as_str(), at[1].as_str()]);
        catalogue.set_host(&format!("web-{number}").parse().unwrap(), Some(at));
    }
    for text in [
        "web-1 10.0.0.1,fd00::1 80 blue,any passing",
        "web-2 10.0.0.2,fd00::2 80 green,tcp warning",
        "web-3 10.0.0.3,fd00::3 80 blue failing",
        "web-4 10.0.0.4,fd00::4 80 red unreachable",
        "web-1 10.0.0.1,10.1.0.1 8080 Blue passing",
        "web-2 10.0.0.2 - - passing",
    ] {
        catalogue.put(&"web".parse().unwrap(), instance(text));
    }
    catalogue.put(&"api".parse().unwrap(), instance("web-1 10.1.0.1 90 - failing"));
    catalogue.hear_of(&"gone".parse().unwrap());
    Zone { origin: Arc::new(ZoneOrigin::new(settings()).unwrap()), catalogue, serial: 7, stale_since: None }
}

fn said(zone: &Zone, said: AnswerName<'_>) -> String {
    let mut bytes = Vec::new();
    zone.origin.write(said, &mut bytes);
    let (mut name, mut rest) = (DnsName::default(), &bytes[..]);
    while let Some((label, after)) = super::name::split(rest).filter(|(label, _)| !label.is_empty()) {
        name.push(label).unwrap();
        rest = after;
    }
    assert_eq!(rest, [0], "a name ends with the root");
    name.to_string()
}

/// The records in order of their text, or what is said instead.
fn ask(zone: &Zone, name: &str, kind: RecordType) -> String {
    match answer(zone, &name.parse().unwrap(), kind) {
        DnsAnswer::NxDomain => "no such name".into(),
        DnsAnswer::OtherZone => "elsewhere".into(),
        DnsAnswer::Records { records, targets, .. } => {
            let show = |data: &RecordData<'_>| match *data {
                RecordData::Address(address) => address.to_string(),
                RecordData::Srv { port, target } => format!("{} {port}", said(zone, targets[target])),
                RecordData::Ptr(name) => said(zone, name),
                RecordData::Ns { target } => said(zone, targets[target]),
                RecordData::Soa => "soa".into(),
                RecordData::Everything => "everything".into(),
            };
            let mut shown: Vec<String> = records.iter().map(show).collect();
            shown.sort();
            shown.join(" ")
        }
    }
}

fn check(questions: &[(&str, RecordType, &str)]) {
    let zone = zone();
    for (name, kind, expected) in questions {
        assert_eq!(ask(&zone, name, *kind), *expected, "{name} {kind:?}");
        let loud = format!("{}.", name.to_uppercase());
        assert_eq!(ask(&zone, &loud, *kind), *expected, "{loud} {kind:?}");
    }
}

#[test]
fn a_service_is_its_functional_instances_at_all_their_addresses_each_once() {
    check(&[
        ("web.service.bw.internal", RecordType::A, "10.0.0.1 10.0.0.2 10.1.0.1"),
        ("web.service.bw.internal", RecordType::Aaaa, "fd00::1 fd00::2"),
        ("web.service.dc1.bw.internal", RecordType::A, "10.0.0.1 10.0.0.2 10.1.0.1"),
        ("api.service.bw.internal", RecordType::A, ""),
    ]);
}

#[test]
fn a_tag_narrows_and_any_widens() {
    check(&[
        ("blue.web.service.bw.internal", RecordType::A, "10.0.0.1 10.1.0.1"),
        ("green.web.service.dc1.bw.internal", RecordType::Aaaa, "fd00::2"),
        ("red.web.service.bw.internal", RecordType::A, ""),
        ("pink.web.service.bw.internal", RecordType::A, "no such name"),
        ("any.web.service.bw.internal", RecordType::Aaaa, "fd00::1 fd00::2 fd00::3 fd00::4"),
        ("any.api.service.bw.internal", RecordType::A, "10.1.0.1"),
        ("tcp.web.service.bw.internal", RecordType::A, "10.0.0.2"),
    ]);
}

#[test]
fn srv_names_the_node_when_the_instance_is_wherever_its_node_is_and_else_its_addresses() {
    let (one, two) = ("web-1.node.dc1.bw.internal 80", "web-2.node.dc1.bw.internal 80");
    let others = "0a000001.addr.dc1.bw.internal 8080 0a010001.addr.dc1.bw.internal 8080";
    let all = format!("{others} {one} {two}");
    check(&[
        ("web.service.bw.internal", RecordType::Srv, &all),
        ("_web._tcp.service.bw.internal", RecordType::Srv, &all),
        ("_web._udp.service.dc1.bw.internal", RecordType::Srv, &all),
        ("green.web.service.bw.internal", RecordType::Srv, two),
        ("_web._green.service.bw.internal", RecordType::Srv, two),
        ("_web._any.service.bw.internal", RecordType::Srv, one),
        ("any.api.service.bw.internal", RecordType::Srv, "0a010001.addr.dc1.bw.internal 90"),
        ("_web._tcp.service.bw.internal", RecordType::A, ""),
        ("_nobody._tcp.service.bw.internal", RecordType::Srv, "no such name"),
        ("_web._pink.service.bw.internal", RecordType::Srv, "no such name"),
    ]);
}

#[test]
fn nodes_and_names_of_addresses_resolve() {
    check(&[
        ("web-3.node.bw.internal", RecordType::A, "10.0.0.3"),
        ("web-3.node.dc1.bw.internal", RecordType::Aaaa, "fd00::3"),
        ("web-3.node.bw.internal", RecordType::Srv, ""),
        ("web-9.node.bw.internal", RecordType::A, "no such name"),
        ("0a010001.addr.dc1.bw.internal", RecordType::A, "10.1.0.1"),
        ("0a010001.addr.bw.internal", RecordType::Aaaa, ""),
        ("fd000000000000000000000000000002.addr.bw.internal", RecordType::Aaaa, "fd00::2"),
        ("7f000001.addr.bw.internal", RecordType::A, "no such name"),
        ("+a010001.addr.bw.internal", RecordType::A, "no such name"),
        ("ns.bw.internal", RecordType::A, "10.0.0.9"),
    ]);
}

#[test]
fn a_full_host_name_resolves_and_the_domains_it_is_in_exist() {
    let mut zone = zone();
    let name = "web-1.dc1.node.example.org";
    zone.catalogue.set_host(&name.parse().unwrap(), Some(addresses(&["10.2.0.1"])));
    zone.catalogue.put(&"shop".parse().unwrap(), instance(&format!("{name} 10.2.0.1 443 - passing")));
    let full = format!("{name}.node.dc1.bw.internal");
    for (name, kind, expected) in [
        (&*full, RecordType::A, "10.2.0.1"),
        ("WEB-1.dc1.node.example.org.node.bw.internal", RecordType::A, "10.2.0.1"),
        ("1.0.2.10.in-addr.arpa", RecordType::Ptr, &*full),
        ("shop.service.bw.internal", RecordType::Srv, &format!("{full} 443")),
        ("example.org.node.bw.internal", RecordType::A, ""),
        ("org.node.dc1.bw.internal", RecordType::Any, "everything"),
        ("dc1.node.example.org.node.dc1.bw.internal", RecordType::Aaaa, ""),
        ("web-2.dc1.node.example.org.node.bw.internal", RecordType::A, "no such name"),
        ("ample.org.node.bw.internal", RecordType::A, "no such name"),
        ("x.web-1.dc1.node.example.org.node.bw.internal", RecordType::A, "no such name"),
    ] {
        assert_eq!(ask(&zone, name, kind), expected, "{name} {kind:?}");
    }
    zone.catalogue.set_host(&name.parse().unwrap(), None);
    assert_eq!(ask(&zone, "example.org.node.bw.internal", RecordType::A), "no such name");
    let mut dotted = DnsName::default();
    [&b"web-1.node"[..], b"node", b"bw", b"internal"].iter().for_each(|label| dotted.push(label).unwrap());
    zone.catalogue.set_host(&"web-1.node".parse().unwrap(), Some(addresses(&["10.2.0.1"])));
    assert_eq!(
        answer(&zone, &dotted, RecordType::A),
        DnsAnswer::NxDomain,
        "a dot within a label is no border"
    );
}

#[test]
fn a_node_whose_name_is_too_long_for_the_zone_is_referred_to_by_its_address() {
    let mut zone = zone();
    // With 5 bytes for `node`, 4 for `dc1`, 12 for the domain and 1 for its own first label.
    let longest = [&*"a".repeat(63), &"b".repeat(63), &"c".repeat(63), &"d".repeat(40)].join(".");
    assert_eq!(longest.len(), 232);
    for (name, at, srv, ptr) in [
        (
            longest.clone(),
            "10.2.0.1",
            format!("{longest}.node.dc1.bw.internal 443"),
            format!("{longest}.node.dc1.bw.internal"),
        ),
        (
            format!("{longest}d"),
            "10.2.0.1",
            "0a020001.addr.dc1.bw.internal 443".into(),
            "shop.service.dc1.bw.internal".into(),
        ),
    ] {
        let node = name.parse().unwrap();
        zone.catalogue.set_host(&node, Some(addresses(&[at])));
        let service = "shop".parse().unwrap();
        zone.catalogue.put(&service, instance(&format!("{name} {at} 443 - passing")));
        assert_eq!(ask(&zone, "shop.service.bw.internal", RecordType::Srv), srv);
        assert_eq!(ask(&zone, "1.0.2.10.in-addr.arpa", RecordType::Ptr), ptr);
        zone.catalogue.remove(&service, &node, &"on-443".parse().unwrap());
        zone.catalogue.set_host(&node, None);
    }
    zone.catalogue.set_host(&format!("{longest}d").parse().unwrap(), Some(addresses(&["10.2.0.1"])));
    assert_eq!(ask(&zone, "1.0.2.10.in-addr.arpa", RecordType::Ptr), "0a020001.addr.dc1.bw.internal");
}

#[test]
fn an_address_has_the_names_of_its_nodes_or_else_of_its_services() {
    let long = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa";
    check(&[
        ("1.0.0.10.in-addr.arpa", RecordType::Ptr, "web-1.node.dc1.bw.internal"),
        (long, RecordType::Ptr, "web-1.node.dc1.bw.internal"),
        ("1.0.1.10.in-addr.arpa", RecordType::Ptr, "api.service.dc1.bw.internal web.service.dc1.bw.internal"),
        ("1.0.0.10.in-addr.arpa", RecordType::A, ""),
        ("1.0.0.10.in-addr.arpa", RecordType::Soa, "soa"),
        ("77.0.0.10.in-addr.arpa", RecordType::Ptr, "elsewhere"),
        ("01.0.0.10.in-addr.arpa", RecordType::Ptr, "elsewhere"),
        ("0.0.10.in-addr.arpa", RecordType::Ptr, "elsewhere"),
        ("x.1.0.0.10.in-addr.arpa", RecordType::Ptr, "elsewhere"),
        ("1.0.0.10.in-addr.arpa.in-addr.arpa", RecordType::Ptr, "elsewhere"),
    ]);
}

#[test]
fn what_is_between_names_exists_and_what_has_no_such_shape_does_not() {
    check(&[
        ("bw.internal", RecordType::A, ""),
        ("bw.internal", RecordType::Soa, "soa"),
        ("bw.internal", RecordType::Ns, "ns.bw.internal"),
        ("dc1.bw.internal", RecordType::A, ""),
        ("service.bw.internal", RecordType::A, ""),
        ("node.dc1.bw.internal", RecordType::A, ""),
        ("addr.bw.internal", RecordType::A, ""),
        ("_tcp.service.bw.internal", RecordType::Srv, ""),
        ("gone.service.bw.internal", RecordType::A, ""),
        ("nobody.service.bw.internal", RecordType::A, "no such name"),
        ("web.service.dc2.bw.internal", RecordType::A, "no such name"),
        ("dc2.bw.internal", RecordType::A, "no such name"),
        ("a.b.web.service.bw.internal", RecordType::A, "no such name"),
        ("a.b.web.service.dc1.bw.internal", RecordType::A, "no such name"),
        ("a.web-1.node.bw.internal", RecordType::A, "no such name"),
        ("ns.dc1.bw.internal", RecordType::A, "no such name"),
        ("web", RecordType::A, "elsewhere"),
        ("internal", RecordType::A, "elsewhere"),
        ("", RecordType::Ns, "elsewhere"),
        ("web.service.xbw.internal", RecordType::A, "elsewhere"),
        ("example.org", RecordType::A, "elsewhere"),
    ]);
}

#[test]
fn everything_is_answered_with_next_to_nothing() {
    check(&[
        ("web.service.bw.internal", RecordType::Any, "everything"),
        ("bw.internal", RecordType::Any, "everything"),
        ("1.0.0.10.in-addr.arpa", RecordType::Any, "everything"),
        ("nobody.service.bw.internal", RecordType::Any, "no such name"),
    ]);
}

#[test]
fn the_order_is_the_seeds_and_each_is_first_at_times() {
    let order = |seed| {
        let (mut chance, mut items) = (crate::words::random::RandomStream::of(seed), [1, 2, 3, 4, 5]);
        (0..5).for_each(|place| chance.pick_first(&mut items[place..]));
        items
    };
    assert_eq!(order(3), order(3));
    let firsts: BTreeSet<i32> = (0..200).map(|seed| order(seed)[0]).collect();
    let orders: BTreeSet<[i32; 5]> = (0..5_000).map(order).collect();
    assert_eq!((firsts.len(), orders.len()), (5, 120));
    crate::words::random::RandomStream::of(1).pick_first::<u8>(&mut []);
}

#[test]
fn settings_that_make_no_names_are_refused() {
    let domain = |text: &str| ZoneOrigin::new(ZoneSettings { domain: text.into(), ..settings() }).map(|_| ());
    assert!(domain("Corp.Example.").is_ok());
    for bad in ["", ".", "a..b", "a_b.c", "10.in-addr.arpa", &"abcdefghi.".repeat(11)] {
        assert!(domain(bad).is_err(), "{bad}");
    }
    let error =
        ZoneOrigin::new(ZoneSettings { datacentre: "node".parse().unwrap(), ..settings() }).unwrap_err();
    assert_eq!(error.to_string(), "node is not a valid datacentre name: it has another meaning in DNS names");
    let long = ZoneOrigin::new(ZoneSettings { ttl: Span::from_secs(90_000), ..settings() }).unwrap();
    assert_eq!((long.ttl_secs(), long.negative_ttl_secs()), (86_400, 0));
}

fn label() -> impl Strategy<Value = Vec<u8>> {
    let words =
        ["web", "_web", "_tcp", "any", "service", "node", "addr", "dc1", "ns", "bw", "internal", "arpa"];
    let word = proptest::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    prop_oneof![4 => word, 1 => proptest::collection::vec(any::<u8>(), 1..64)]
}

proptest! {
    #[test]
    fn every_node_name_that_fits_is_answered_by_the_name_that_answers_contain(
        node in "([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.){0,5}(node|dc1|bw|internal|[a-z0-9]{1,63})"
    ) {
        prop_assume!(node.len() <= 253);
        let (mut zone, node) = (zone(), node.parse::<NodeName>().unwrap());
        zone.catalogue.set_host(&node, Some(addresses(&["10.2.0.1", "fd00::2:1"])));
        let mut bytes = Vec::new();
        zone.origin.write(AnswerName::Node(&node), &mut bytes);
        prop_assert_eq!(zone.origin.fits(&node), bytes.len() <= 255, "RFC 1035");
        if zone.origin.fits(&node) {
            let name = said(&zone, AnswerName::Node(&node));
            prop_assert_eq!(&name, &format!("{node}.node.dc1.bw.internal"));
            prop_assert_eq!(ask(&zone, &name, RecordType::A), "10.2.0.1");
            prop_assert_eq!(ask(&zone, &format!("{node}.node.bw.internal"), RecordType::Aaaa), "fd00::2:1");
            prop_assert_eq!(ask(&zone, "1.0.2.10.in-addr.arpa", RecordType::Ptr), name);
        }
    }

    #[test]
    fn no_name_breaks_the_answer_and_every_target_resolves(
        labels in proptest::collection::vec(label(), 0..6),
        ours in any::<bool>(),
    ) {
        let (zone, mut name) = (zone(), DnsName::default());
        let tail: &[&[u8]] = if ours { &[b"bw", b"internal"] } else { &[] };
        for label in labels.iter().map(Vec::as_slice).chain(tail.iter().copied()) {
            if name.push(label).is_err() {
                break;
            }
        }
        for kind in [RecordType::A, RecordType::Aaaa, RecordType::Srv, RecordType::Ptr, RecordType::Soa, RecordType::Ns, RecordType::Any, RecordType::Other] {
            let DnsAnswer::Records { targets, .. } = answer(&zone, &name, kind) else { continue };
            for target in targets {
                let name: DnsName = said(&zone, target).parse().unwrap();
                let found = [RecordType::A, RecordType::Aaaa].map(|kind| match answer(&zone, &name, kind) {
                    DnsAnswer::Records { records, .. } => records.len(),
                    DnsAnswer::NxDomain | DnsAnswer::OtherZone => 0,
                });
                prop_assert!(found.iter().sum::<usize>() > 0, "{} does not resolve", name);
                prop_assert_eq!(found.iter().sum::<usize>(), zone.addresses(target).count());
            }
        }
    }
}
