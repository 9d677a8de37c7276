//! The zone: the catalogue, and the names by which it is queried. Owns the settings of answers and the names
//! within answers; never which records there are.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::name::{DnsName, MAX_NAME_BYTES};
use crate::catalogue::Catalogue;
use crate::words::name::{Datacentre, NodeName, ServiceName};
use crate::words::time::{Span, Timestamp};

/// Longest domain in bytes: with it, the longest service in the longest datacentre is still a DNS name.
pub const MAX_DOMAIN_BYTES: usize = 100;

/// Longest TTL in seconds: a day. A longer one is cut to it.
const MAX_TTL_SECS: u32 = 86_400;

/// Labels with a meaning of their own next to a datacentre's name, so that no datacentre may have them as its
/// name.
const TAKEN: [&str; 4] = ["service", "node", "addr", "ns"];

/// The label after the names of nodes.
const NODE: &[u8] = b"node";

/// The source of answers: a snapshot of the catalogue, with names and TTLs.
#[derive(Debug, Clone)]
pub struct Zone {
    /// Names and TTLs of the zone.
    pub origin: Arc<ZoneOrigin>,
    /// Snapshot of the service catalogue.
    pub catalogue: Catalogue,
    /// Serial number of the zone; it grows with every change of the catalogue.
    pub serial: u32,
    /// Time since which the catalogue may be out of date, because updates stopped; `None` while it is
    /// current.
    pub stale_since: Option<Timestamp>,
}

/// Names and TTLs of a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneSettings {
    /// The domain of all names. Default `bw.internal`.
    pub domain: String,
    /// The datacentre of the instances; it may be part of a name in a question, and always is in answers.
    pub datacentre: Datacentre,
    /// The node that answers: the zone's name server.
    pub node: NodeName,
    /// TTL of answers, in whole seconds, a day at most. Zero by default: nothing is cached.
    pub ttl: Span,
    /// TTL of negative answers, likewise.
    pub negative_ttl: Span,
}

/// Settings that were checked, in the form that answers need.
#[derive(Debug)]
pub struct ZoneOrigin {
    pub(super) domain: DnsName,
    pub(super) datacentre: Datacentre,
    node: NodeName,
    ttl_secs: u32,
    negative_ttl_secs: u32,
    apex: Vec<u8>,
    here: Vec<u8>,
}

/// Why settings are not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZoneOriginError {
    /// The domain is not valid.
    #[error("{domain:?} is not a valid DNS domain: {reason}")]
    Domain {
        /// The domain that was given.
        domain: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The datacentre's name has another meaning in DNS names.
    #[error("{0} is not a valid datacentre name: it has another meaning in DNS names")]
    Datacentre(Datacentre),
}

/// A name within an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerName<'a> {
    /// `<node>.node.<datacentre>.<domain>`, if [`ZoneOrigin::fits`].
    Node(&'a NodeName),
    /// `<address in hexadecimal>.addr.<datacentre>.<domain>`
    Address(IpAddr),
    /// `<service>.service.<datacentre>.<domain>`
    Service(&'a ServiceName),
    /// `ns.<domain>`
    NameServer,
    /// `hostmaster.<domain>`
    Contact,
    /// `<domain>`
    Apex,
}

impl ZoneSettings {
    /// Default settings for a node of a datacentre.
    #[must_use]
    pub fn new(datacentre: Datacentre, node: NodeName) -> Self {
        Self { domain: "bw.internal".into(), datacentre, node, ttl: Span::ZERO, negative_ttl: Span::ZERO }
    }
}

impl ZoneOrigin {
    /// Checks settings.
    ///
    /// # Errors
    /// [`ZoneOriginError`] with the rule that is broken.
    pub fn new(settings: ZoneSettings) -> Result<Self, ZoneOriginError> {
        let ZoneSettings { domain: text, datacentre, node, ttl, negative_ttl } = settings;
        let domain = domain(&text).map_err(|reason| ZoneOriginError::Domain { domain: text, reason })?;
        if TAKEN.contains(&datacentre.as_str()) {
            return Err(ZoneOriginError::Datacentre(datacentre));
        }
        let mut apex = domain.bytes().to_vec();
        apex.push(0);
        let mut here = Vec::new();
        push_label(&mut here, datacentre.as_str().as_bytes());
        here.extend_from_slice(&apex);
        let (ttl_secs, negative_ttl_secs) = (seconds(ttl), seconds(negative_ttl));
        Ok(Self { domain, datacentre, node, ttl_secs, negative_ttl_secs, apex, here })
    }

    /// The domain of all names.
    #[must_use]
    pub const fn domain(&self) -> &DnsName {
        &self.domain
    }

    /// TTL of answers, in seconds.
    #[must_use]
    pub const fn ttl_secs(&self) -> u32 {
        self.ttl_secs
    }

    /// TTL of negative answers, in seconds.
    #[must_use]
    pub const fn negative_ttl_secs(&self) -> u32 {
        self.negative_ttl_secs
    }

    /// Whether a node's name with `node`, the datacentre and the domain is not too long for a DNS name.
    #[must_use]
    pub fn fits(&self, node: &NodeName) -> bool {
        // Each label has one more byte than the text has without its dots; the root's is not counted.
        let labels = node.as_str().len() + 1 + NODE.len() + 1;
        labels + self.here.len() <= MAX_NAME_BYTES + 1
    }

    /// Writes a name in wire form: each label after its length byte, with the root's empty one last.
    pub fn write(&self, said: AnswerName<'_>, out: &mut Vec<u8>) {
        let under_here = |out: &mut Vec<u8>, first: &[u8], kind: &[u8]| {
            push_label(out, first);
            push_label(out, kind);
            out.extend_from_slice(&self.here);
        };
        match said {
            AnswerName::Node(name) => {
                name.as_str().split('.').for_each(|label| push_label(out, label.as_bytes()));
                push_label(out, NODE);
                out.extend_from_slice(&self.here);
            }
            AnswerName::Service(name) => under_here(out, name.as_str().as_bytes(), b"service"),
            AnswerName::Address(IpAddr::V4(address)) => {
                under_here(out, &hex::<8>(&address.octets()), b"addr")
            }
            AnswerName::Address(IpAddr::V6(address)) => {
                under_here(out, &hex::<32>(&address.octets()), b"addr")
            }
            AnswerName::NameServer => {
                push_label(out, b"ns");
                out.extend_from_slice(&self.apex);
            }
            AnswerName::Contact => {
                push_label(out, b"hostmaster");
                out.extend_from_slice(&self.apex);
            }
            AnswerName::Apex => out.extend_from_slice(&self.apex),
        }
    }
}

impl Zone {
    /// The addresses that a name resolves to by itself; none for names of services.
    pub fn addresses<'a>(&'a self, said: AnswerName<'a>) -> impl Iterator<Item = IpAddr> + 'a {
        let (node, address) = match said {
            AnswerName::Node(name) => (Some(name), None),
            AnswerName::NameServer => (Some(&self.origin.node), None),
            AnswerName::Address(address) => (None, Some(address)),
            AnswerName::Service(_) | AnswerName::Contact | AnswerName::Apex => (None, None),
        };
        let host = node.and_then(|name| self.catalogue.host(name));
        host.into_iter().flat_map(|addresses| addresses.all()).chain(address)
    }
}

fn domain(text: &str) -> Result<DnsName, &'static str> {
    let name: DnsName = text.parse().map_err(|_| "its labels have 1 to 63 characters")?;
    if name.bytes().is_empty() {
        return Err("it is empty");
    }
    if name.bytes().len() > MAX_DOMAIN_BYTES {
        return Err("it is longer than 100 characters");
    }
    let fit = |label: &[u8]| label.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    if !name.labels().all(fit) {
        return Err("its labels are of letters, digits and '-'");
    }
    if name.labels().last() == Some(b"arpa") {
        return Err("names of addresses are under arpa");
    }
    Ok(name)
}

fn seconds(span: Span) -> u32 {
    u32::try_from(span.as_millis() / 1_000).map_or(MAX_TTL_SECS, |seconds| seconds.min(MAX_TTL_SECS))
}

/// Labels here are labels of node names, service and datacentre names and keywords: 63 bytes at most.
fn push_label(out: &mut Vec<u8>, label: &[u8]) {
    out.push(u8::try_from(label.len()).unwrap_or(0));
    out.extend_from_slice(label);
}

fn hex<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut digits = [b'0'; N];
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    for (digit, nibble) in digits.iter_mut().zip(nibbles) {
        *digit = if nibble < 10 { b'0' + nibble } else { b'a' + (nibble - 10) };
    }
    digits
}
