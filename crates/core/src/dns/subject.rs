//! The subject of a question. Owns the grammar of names; never whether the subject exists.

use core::net::IpAddr;
use core::str;

use super::name::{DnsName, split};
use super::zone::ZoneOrigin;

/// Most labels of a name before the domain, other than that of a node: `tag.web.service.dc1`.
const MAX_LABELS: usize = 4;

/// The subject of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuerySubject<'q> {
    /// The domain itself.
    Apex,
    /// The name server of the zone.
    NameServer,
    /// An empty non-terminal: names below it exist: `service.bw.internal`.
    Between,
    /// The instances of a service.
    Service {
        /// The service's name as in the question.
        service: &'q str,
        /// Filter of its instances.
        which: InstanceFilter<'q>,
        /// Whether it is `_service._protocol`, which has SRV records only, no addresses.
        protocol: bool,
    },
    /// A node, or a domain that names of nodes are in: labels, each after its length byte.
    Node(&'q [u8]),
    /// A name that encodes an address.
    Address(IpAddr),
    /// A reverse lookup of an address.
    Reverse(IpAddr),
    /// A name under the domain that does not exist.
    Nowhere,
    /// A name outside of the domain.
    Elsewhere,
}

/// Filter of a service's instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstanceFilter<'q> {
    /// Functional instances.
    Functional,
    /// Functional instances with a tag, compared without case.
    Tagged(&'q str),
    /// All registered instances.
    Addressable,
}

/// The subject of a name.
pub(super) fn read<'q>(origin: &ZoneOrigin, name: &'q DnsName) -> QuerySubject<'q> {
    let mut labels = [""; MAX_LABELS];
    // The last labels before the domain so far, the newest last, each with the bytes before it.
    let mut last = [(b"".as_slice(), b"".as_slice()); 2];
    let (mut count, mut rest, domain) = (0, name.bytes(), origin.domain.bytes());
    while rest != domain {
        // It is below the domain only while more labels than the domain's are left.
        let Some((label, after)) = split(rest).filter(|_| rest.len() > domain.len()) else {
            return reverse(name).map_or(QuerySubject::Elsewhere, QuerySubject::Reverse);
        };
        if let Some(place) = labels.get_mut(count) {
            // A label that is not text matches nothing, like the empty label, which no name contains.
            *place = text(label).unwrap_or_default();
        }
        let before = name.bytes().len() - rest.len();
        last = [last[1], (label, name.bytes().get(..before).unwrap_or_default())];
        (count, rest) = (count + 1, after);
    }
    if let Some(node) = node_of(origin, last) {
        return QuerySubject::Node(node);
    }
    let Some(labels) = labels.get(..count) else { return QuerySubject::Nowhere };
    match labels {
        [] => QuerySubject::Apex,
        ["ns"] => QuerySubject::NameServer,
        [only] if *only == origin.datacentre.as_str() => QuerySubject::Between,
        [before @ .., last] if *last == origin.datacentre.as_str() => below(before),
        _ => below(labels),
    }
}

/// The labels of a node's name, or of its end, if they are before `node` and perhaps the datacentre.
fn node_of<'q>(origin: &ZoneOrigin, last: [(&[u8], &'q [u8]); 2]) -> Option<&'q [u8]> {
    let [first, second] = last;
    let (label, before) = if second.0 == origin.datacentre.as_str().as_bytes() { first } else { second };
    (label == b"node" && !before.is_empty()).then_some(before)
}

/// The subject of the labels before the domain and the datacentre.
fn below<'q>(labels: &[&'q str]) -> QuerySubject<'q> {
    match labels {
        ["service" | "node" | "addr"] => QuerySubject::Between,
        [digits, "addr"] => address(digits).map_or(QuerySubject::Nowhere, QuerySubject::Address),
        [service, "service"] => alone(service),
        [first, second, "service"] => beside(first, second),
        _ => QuerySubject::Nowhere,
    }
}

fn alone(service: &str) -> QuerySubject<'_> {
    if service.starts_with('_') {
        // `_web._blue.service` may exist below `_blue.service`: to be certain would take a search of all
        // services.
        return QuerySubject::Between;
    }
    QuerySubject::Service { service, which: InstanceFilter::Functional, protocol: false }
}

fn beside<'q>(first: &'q str, second: &'q str) -> QuerySubject<'q> {
    let (service, which, protocol) = match (first.strip_prefix('_'), second.strip_prefix('_')) {
        (Some(service), Some("tcp" | "udp")) => (service, InstanceFilter::Functional, true),
        (Some(service), Some(tag)) => (service, InstanceFilter::Tagged(tag), true),
        (Some(_) | None, _) if first == "any" => (second, InstanceFilter::Addressable, false),
        (Some(_) | None, _) => (second, InstanceFilter::Tagged(first), false),
    };
    QuerySubject::Service { service, which, protocol }
}

fn text(label: &[u8]) -> Option<&str> {
    str::from_utf8(label).ok()
}

/// An address written as 8 or 32 hexadecimal digits.
fn address(digits: &str) -> Option<IpAddr> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    match digits.len() {
        8 => u32::from_str_radix(digits, 16).ok().map(|bits| IpAddr::V4(bits.into())),
        32 => u128::from_str_radix(digits, 16).ok().map(|bits| IpAddr::V6(bits.into())),
        _ => None,
    }
}

/// The address of a complete name under `in-addr.arpa` or `ip6.arpa`.
fn reverse(name: &DnsName) -> Option<IpAddr> {
    let mut labels = name.labels();
    if name.bytes().ends_with(b"\x07in-addr\x04arpa") {
        let mut octets = [0; 4];
        for octet in octets.iter_mut().rev() {
            *octet = octet_of(labels.next()?)?;
        }
        let whole = labels.eq([b"in-addr".as_slice(), b"arpa"]);
        return whole.then(|| octets.into());
    }
    if name.bytes().ends_with(b"\x03ip6\x04arpa") {
        let mut bits = 0_u128;
        for place in 0..32 {
            bits |= u128::from(nibble_of(labels.next()?)?) << (4 * place);
        }
        let whole = labels.eq([b"ip6".as_slice(), b"arpa"]);
        return whole.then(|| IpAddr::V6(bits.into()));
    }
    None
}

/// A decimal number from 0 to 255, without leading zeros.
fn octet_of(label: &[u8]) -> Option<u8> {
    let plain = label.iter().all(u8::is_ascii_digit) && (label.len() == 1 || !label.starts_with(b"0"));
    text(label).filter(|_| plain)?.parse().ok()
}

fn nibble_of(label: &[u8]) -> Option<u8> {
    match label {
        [digit] if digit.is_ascii_hexdigit() => u8::from_str_radix(text(label)?, 16).ok(),
        _ => None,
    }
}
