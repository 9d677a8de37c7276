//! DNS answers: from a question and a zone to records. Owns which names exist and which records they have;
//! never bytes, sockets or the order of records.
//!
//! | name, before the domain | asks for |
//! |---|---|
//! | `[tag.]<service>.service[.<datacentre>]` | A, AAAA, SRV of the functional instances |
//! | `any.<service>.service[.<datacentre>]` | the same of all registered instances |
//! | `_<service>._<tcp, udp or tag>.service[.<datacentre>]` | SRV of the functional instances |
//! | `<node>.node[.<datacentre>]` | A, AAAA of the node; its name may have dots |
//! | `<address in hexadecimal>.addr[.<datacentre>]` | that address; SRV uses it for one that is not its
//! node's |
//! | `ns`, and the domain itself | the node that answers; SOA, NS |
//!
//! Addresses of nodes and instances have a PTR. A node whose name is too long for the zone has no name here: SRV
//! and PTR refer to its addresses. Use `_<service>._any` for a tag named `any`, and
//! `tcp.<service>` for one named `tcp`.

pub mod name;
mod subject;
#[cfg(test)]
mod tests;
pub mod zone;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::catalogue::CatalogueService;
use crate::catalogue::instance::Instance;
use crate::words::addresses::Addresses;
use crate::words::name::{NodeName, ServiceName};
use name::DnsName;
use subject::{InstanceFilter, QuerySubject};
use zone::{AnswerName, Zone};

/// Type of the requested records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordType {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Target names and ports.
    Srv,
    /// The name of an address.
    Ptr,
    /// The start of authority.
    Soa,
    /// The name server.
    Ns,
    /// Any type; answered with as little as RFC 8482 allows.
    Any,
    /// Any other type; no name has records of it.
    Other,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsAnswer<'a> {
    /// The name exists, with these records of the type; empty if it has none of it.
    Records {
        /// All records, each once; [`RandomStream`](crate::words::random::RandomStream) shuffles them for
        /// each reply. Their owner is the name in the question.
        records: Vec<RecordData<'a>>,
        /// The names that SRV and NS records refer to, each once; [`RecordData`] holds the index.
        targets: Vec<AnswerName<'a>>,
        /// Owner of the zone's SOA record for this name.
        apex: SoaOwner,
    },
    /// The zone has neither this name nor one below it.
    NxDomain,
    /// The name is outside of the zone: refuse the question, or forward it.
    OtherZone,
}

/// Owner of an SOA record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoaOwner {
    /// The zone's domain.
    Domain,
    /// The name in the question: each known address is a zone of its own, so that no authority is claimed
    /// over other addresses.
    Question,
}

/// A record's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordData<'a> {
    /// A or AAAA: the address.
    Address(IpAddr),
    /// SRV, of priority and weight 1.
    Srv {
        /// Port of the instance.
        port: u16,
        /// Index of the target in the answer's targets.
        target: usize,
    },
    /// PTR: the name.
    Ptr(AnswerName<'a>),
    /// NS.
    Ns {
        /// Index of the target in the answer's targets.
        target: usize,
    },
    /// SOA.
    Soa,
    /// The answer to [`RecordType::Any`]: HINFO with `RFC8482`.
    Everything,
}

/// Answers a question about `name`.
#[must_use]
pub fn answer<'a>(zone: &'a Zone, name: &DnsName, kind: RecordType) -> DnsAnswer<'a> {
    let catalogue = &zone.catalogue;
    match subject::read(&zone.origin, name) {
        QuerySubject::Apex => apex(kind, SoaOwner::Domain),
        QuerySubject::Between => here(kind, Vec::new()),
        QuerySubject::NameServer => here(kind, addresses(kind, zone.addresses(AnswerName::NameServer))),
        QuerySubject::Node(labels) => node(zone, labels, kind),
        QuerySubject::Address(address) => {
            if !is_known(zone, address) {
                return DnsAnswer::NxDomain;
            }
            here(kind, addresses(kind, [address].into_iter()))
        }
        QuerySubject::Reverse(address) => reverse(zone, address, kind),
        QuerySubject::Service { service, which, protocol } => {
            let service = ServiceName::parse(service).ok().and_then(|service| catalogue.service(&service));
            let Some(service) = service else { return DnsAnswer::NxDomain };
            let Some(chosen) = choose(service, which) else { return DnsAnswer::NxDomain };
            match kind {
                RecordType::Srv => srv(zone, &chosen),
                RecordType::A | RecordType::Aaaa if protocol => here(kind, Vec::new()),
                RecordType::A | RecordType::Aaaa => {
                    let all = chosen.iter().flat_map(|instance| instance.addresses.all());
                    here(kind, addresses(kind, all))
                }
                RecordType::Ptr | RecordType::Soa | RecordType::Ns | RecordType::Any | RecordType::Other => {
                    here(kind, Vec::new())
                }
            }
        }
        QuerySubject::Nowhere => DnsAnswer::NxDomain,
        QuerySubject::Elsewhere => DnsAnswer::OtherZone,
    }
}

/// The addresses of a node; no records for a domain that names of nodes are in (RFC 8020).
fn node<'a>(zone: &'a Zone, labels: &[u8], kind: RecordType) -> DnsAnswer<'a> {
    let Some(name) = host_name(labels).and_then(|name| NodeName::parse(&name).ok()) else {
        return DnsAnswer::NxDomain;
    };
    match zone.catalogue.host(&name) {
        Some(host) => here(kind, addresses(kind, host.all())),
        None if zone.catalogue.has_host_in(name.as_str()) => here(kind, Vec::new()),
        None => DnsAnswer::NxDomain,
    }
}

/// Labels, each after its length byte, as text with dots between; none if a label is not text or has a dot.
fn host_name(mut labels: &[u8]) -> Option<String> {
    let mut name = String::new();
    while let Some((label, rest)) = name::split(labels) {
        let label = core::str::from_utf8(label).ok().filter(|label| !label.contains('.'))?;
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(label);
        labels = rest;
    }
    Some(name)
}

/// An answer without targets, or the RFC 8482 record for [`RecordType::Any`].
fn here(kind: RecordType, records: Vec<RecordData<'_>>) -> DnsAnswer<'_> {
    let records = if kind == RecordType::Any { vec![RecordData::Everything] } else { records };
    DnsAnswer::Records { records, targets: Vec::new(), apex: SoaOwner::Domain }
}

fn apex<'a>(kind: RecordType, apex: SoaOwner) -> DnsAnswer<'a> {
    let (records, targets) = match kind {
        RecordType::Soa => (vec![RecordData::Soa], vec![]),
        RecordType::Ns => (vec![RecordData::Ns { target: 0 }], vec![AnswerName::NameServer]),
        RecordType::Any => (vec![RecordData::Everything], vec![]),
        RecordType::A | RecordType::Aaaa | RecordType::Srv | RecordType::Ptr | RecordType::Other => {
            (vec![], vec![])
        }
    };
    DnsAnswer::Records { records, targets, apex }
}

/// The addresses of the type, each once.
fn addresses<'a>(kind: RecordType, all: impl Iterator<Item = IpAddr>) -> Vec<RecordData<'a>> {
    let wanted = |address: &IpAddr| match kind {
        RecordType::A => address.is_ipv4(),
        RecordType::Aaaa => address.is_ipv6(),
        RecordType::Srv
        | RecordType::Ptr
        | RecordType::Soa
        | RecordType::Ns
        | RecordType::Any
        | RecordType::Other => false,
    };
    let mut records: Vec<RecordData<'_>> = all.filter(wanted).map(RecordData::Address).collect();
    records.sort_unstable();
    records.dedup();
    records
}

/// Whether an address belongs to a node or an instance.
fn is_known(zone: &Zone, address: IpAddr) -> bool {
    zone.catalogue.owners(address).next().is_some() || zone.catalogue.registrations(address).next().is_some()
}

/// The nodes at an address, or else the services, or else the name of the address.
fn reverse(zone: &Zone, address: IpAddr, kind: RecordType) -> DnsAnswer<'_> {
    if !is_known(zone, address) {
        return DnsAnswer::OtherZone;
    }
    if kind != RecordType::Ptr {
        return apex(kind, SoaOwner::Question);
    }
    let nodes = zone.catalogue.owners(address).filter(|node| zone.origin.fits(node));
    let mut records: Vec<RecordData<'_>> =
        nodes.map(|node| RecordData::Ptr(AnswerName::Node(node))).collect();
    if records.is_empty() {
        let services = zone
            .catalogue
            .registrations(address)
            .map(|service| RecordData::Ptr(AnswerName::Service(service)));
        records.extend(services);
    }
    if records.is_empty() {
        records.push(RecordData::Ptr(AnswerName::Address(address)));
    }
    DnsAnswer::Records { records, targets: Vec::new(), apex: SoaOwner::Question }
}

/// The matching instances; `None` when the name does not exist, because no instance has the tag.
fn choose<'a>(service: &'a CatalogueService, which: InstanceFilter<'_>) -> Option<Vec<&'a Instance>> {
    let serving = |instance: &&Instance| instance.level.serves();
    match which {
        InstanceFilter::Addressable => Some(service.instances().collect()),
        InstanceFilter::Functional => Some(service.instances().filter(serving).collect()),
        InstanceFilter::Tagged(wanted) => {
            let has = |instance: &&Instance| {
                instance.tags.iter().any(|tag| tag.as_str().eq_ignore_ascii_case(wanted))
            };
            let mut tagged = service.instances().filter(has).peekable();
            tagged.peek()?;
            Some(tagged.filter(serving).collect())
        }
    }
}

/// SRV records: they refer to the node when the instance has the node's addresses, else to each of its own.
fn srv<'a>(zone: &'a Zone, chosen: &[&'a Instance]) -> DnsAnswer<'a> {
    let mut found: Vec<(AnswerName<'a>, u16)> = Vec::with_capacity(chosen.len());
    for instance in chosen {
        let Some(port) = instance.port else { continue };
        let host = zone.catalogue.host(&instance.node);
        let fits = zone.origin.fits(&instance.node);
        if fits && host.is_some_and(|host| same(host, &instance.addresses)) {
            found.push((AnswerName::Node(&instance.node), port));
        } else {
            found.extend(instance.addresses.all().map(|address| (AnswerName::Address(address), port)));
        }
    }
    found.sort_unstable();
    found.dedup();
    let (mut records, mut targets) = (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
    for (said, port) in found {
        if targets.last() != Some(&said) {
            targets.push(said);
        }
        records.push(RecordData::Srv { port, target: targets.len() - 1 });
    }
    DnsAnswer::Records { records, targets, apex: SoaOwner::Domain }
}

/// Whether both have the same addresses, whatever the interfaces. Two without any are not the same: there is
/// no target then.
fn same(host: &Addresses, instance: &Addresses) -> bool {
    let sorted = |addresses: &Addresses| {
        let mut all: Vec<IpAddr> = addresses.all().collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    instance.all().next().is_some() && (host == instance || sorted(host) == sorted(instance))
}
