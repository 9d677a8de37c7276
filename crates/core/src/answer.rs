//! What DNS answers: a question and a zone in, records out. Owns which names there are and which records they have; never
//! bytes, sockets or whose turn it is to be asked.
//!
//! | name, before the domain | asks for |
//! |---|---|
//! | `[tag.]<service>.service[.<datacentre>]` | A, AAAA, SRV of the instances that serve |
//! | `any.<service>.service[.<datacentre>]` | the same of all that are registered |
//! | `_<service>._<tcp, udp or tag>.service[.<datacentre>]` | SRV of those that serve |
//! | `<node>.node[.<datacentre>]` | A, AAAA of the node |
//! | `<address in hexadecimal>.addr[.<datacentre>]` | that address, as SRV names it when it is not its node's |
//! | `ns`, and the domain itself | the node that answers; SOA, NS |
//!
//! Addresses of nodes and instances have a PTR. A tag that is called `any` is asked for by `_<service>._any`, one that is
//! called `tcp` by `tcp.<service>`.

pub mod chance;
pub mod name;
mod subject;
#[cfg(test)]
mod tests;
pub mod zone;

use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::catalogue::Service;
use crate::catalogue::instance::{Addresses, Instance};
use crate::words::name::{NodeName, ServiceName};
use name::Name;
use subject::{Subject, Which};
use zone::{Said, Zone};

/// Which records are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Names and ports.
    Srv,
    /// The name of an address.
    Ptr,
    /// The start of authority.
    Soa,
    /// The name server.
    Ns,
    /// Whatever there is; answered with as little as RFC 8482 allows.
    Any,
    /// Anything else; there is none of it.
    Other,
}

/// What is to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The name is there, with these records of the kind; none if it has none of it.
    Here {
        /// All of them, each once; [`chance::Chance`] puts them in the order of the moment. Their owner is the name in the question.
        records: Vec<Data<'a>>,
        /// The names that SRV and NS records point at, each once, by [`Data`]'s index.
        targets: Vec<Said<'a>>,
        /// What the zone is called as far as this name goes.
        apex: Apex,
    },
    /// The zone has no such name, and none below it.
    NoSuchName,
    /// The name is not of this zone: to be refused, or asked elsewhere.
    Elsewhere,
}

/// The owner of the start of authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apex {
    /// The domain.
    Domain,
    /// The name in the question: each known address is a zone of its own, so that no more is claimed of all addresses.
    Question,
}

/// A record's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data<'a> {
    /// A or AAAA.
    Address(IpAddr),
    /// SRV, of priority and weight 1.
    Srv {
        /// Where it listens.
        port: u16,
        /// Which of the answer's targets.
        target: usize,
    },
    /// PTR.
    Ptr(Said<'a>),
    /// NS.
    Ns {
        /// Which of the answer's targets.
        target: usize,
    },
    /// SOA.
    Soa,
    /// What stands for everything: HINFO with `RFC8482`.
    Everything,
}

/// Answers a question about `name`.
#[must_use]
pub fn answer<'a>(zone: &'a Zone, name: &Name, kind: Kind) -> Answer<'a> {
    let catalogue = &zone.catalogue;
    match subject::read(&zone.origin, name) {
        Subject::Apex => apex(kind, Apex::Domain),
        Subject::Between => here(kind, Vec::new()),
        Subject::NameServer => here(kind, addresses(kind, zone.addresses(Said::NameServer))),
        Subject::Node(node) => {
            let node = NodeName::parse(node).ok().and_then(|node| catalogue.host(&node));
            let found = node.map(|host| here(kind, addresses(kind, host.all())));
            found.unwrap_or(Answer::NoSuchName)
        }
        Subject::Address(address) => {
            if !is_known(zone, address) {
                return Answer::NoSuchName;
            }
            here(kind, addresses(kind, [address].into_iter()))
        }
        Subject::Reverse(address) => reverse(zone, address, kind),
        Subject::Service { service, which, protocol } => {
            let service = ServiceName::parse(service).ok().and_then(|service| catalogue.service(&service));
            let Some(service) = service else { return Answer::NoSuchName };
            let Some(chosen) = choose(service, which) else { return Answer::NoSuchName };
            match kind {
                Kind::Srv => srv(zone, &chosen),
                Kind::A | Kind::Aaaa if protocol => here(kind, Vec::new()),
                Kind::A | Kind::Aaaa => {
                    let all = chosen.iter().flat_map(|instance| instance.addresses.all());
                    here(kind, addresses(kind, all))
                }
                Kind::Ptr | Kind::Soa | Kind::Ns | Kind::Any | Kind::Other => here(kind, Vec::new()),
            }
        }
        Subject::Nowhere => Answer::NoSuchName,
        Subject::Elsewhere => Answer::Elsewhere,
    }
}

/// An answer without targets; what stands for everything if that was asked for.
fn here(kind: Kind, records: Vec<Data<'_>>) -> Answer<'_> {
    let records = if kind == Kind::Any { vec![Data::Everything] } else { records };
    Answer::Here { records, targets: Vec::new(), apex: Apex::Domain }
}

fn apex<'a>(kind: Kind, apex: Apex) -> Answer<'a> {
    let (records, targets) = match kind {
        Kind::Soa => (vec![Data::Soa], vec![]),
        Kind::Ns => (vec![Data::Ns { target: 0 }], vec![Said::NameServer]),
        Kind::Any => (vec![Data::Everything], vec![]),
        Kind::A | Kind::Aaaa | Kind::Srv | Kind::Ptr | Kind::Other => (vec![], vec![]),
    };
    Answer::Here { records, targets, apex }
}

/// The addresses of the kind, each once.
fn addresses<'a>(kind: Kind, all: impl Iterator<Item = IpAddr>) -> Vec<Data<'a>> {
    let wanted = |address: &IpAddr| match kind {
        Kind::A => address.is_ipv4(),
        Kind::Aaaa => address.is_ipv6(),
        Kind::Srv | Kind::Ptr | Kind::Soa | Kind::Ns | Kind::Any | Kind::Other => false,
    };
    let mut records: Vec<Data<'_>> = all.filter(wanted).map(Data::Address).collect();
    records.sort_unstable();
    records.dedup();
    records
}

/// Whether an address is a node's or an instance's.
fn is_known(zone: &Zone, address: IpAddr) -> bool {
    zone.catalogue.owners(address).next().is_some() || zone.catalogue.offers(address).next().is_some()
}

/// The nodes at an address, or else the services.
fn reverse(zone: &Zone, address: IpAddr, kind: Kind) -> Answer<'_> {
    if !is_known(zone, address) {
        return Answer::Elsewhere;
    }
    if kind != Kind::Ptr {
        return apex(kind, Apex::Question);
    }
    let mut records: Vec<Data<'_>> =
        zone.catalogue.owners(address).map(|node| Data::Ptr(Said::Node(node))).collect();
    if records.is_empty() {
        let services = zone.catalogue.offers(address).map(|service| Data::Ptr(Said::Service(service)));
        records.extend(services);
    }
    Answer::Here { records, targets: Vec::new(), apex: Apex::Question }
}

/// The instances that are asked for; `None` when the name is not there, as no instance ever had such a tag.
fn choose<'a>(service: &'a Service, which: Which<'_>) -> Option<Vec<&'a Instance>> {
    let serving = |instance: &&Instance| instance.level.serves();
    match which {
        Which::Addressable => Some(service.instances().collect()),
        Which::Functional => Some(service.instances().filter(serving).collect()),
        Which::Tagged(wanted) => {
            let has = |instance: &&Instance| {
                instance.tags.iter().any(|tag| tag.as_str().eq_ignore_ascii_case(wanted))
            };
            let mut tagged = service.instances().filter(has).peekable();
            tagged.peek()?;
            Some(tagged.filter(serving).collect())
        }
    }
}

/// Names and ports: of the node when the instance is wherever the node is, else of each of its addresses.
fn srv<'a>(zone: &'a Zone, chosen: &[&'a Instance]) -> Answer<'a> {
    let mut found: Vec<(Said<'a>, u16)> = Vec::with_capacity(chosen.len());
    for instance in chosen {
        let Some(port) = instance.port else { continue };
        let host = zone.catalogue.host(&instance.node);
        if host.is_some_and(|host| same(host, &instance.addresses)) {
            found.push((Said::Node(&instance.node), port));
        } else {
            found.extend(instance.addresses.all().map(|address| (Said::Address(address), port)));
        }
    }
    found.sort_unstable();
    found.dedup();
    let (mut records, mut targets) = (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
    for (said, port) in found {
        if targets.last() != Some(&said) {
            targets.push(said);
        }
        records.push(Data::Srv { port, target: targets.len() - 1 });
    }
    Answer::Here { records, targets, apex: Apex::Domain }
}

/// Whether two say the same addresses, whatever the interfaces. Nowhere is not the same as nowhere: there is no target then.
fn same(host: &Addresses, instance: &Addresses) -> bool {
    let sorted = |addresses: &Addresses| {
        let mut all: Vec<IpAddr> = addresses.all().collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    instance.all().next().is_some() && (host == instance || sorted(host) == sorted(instance))
}
