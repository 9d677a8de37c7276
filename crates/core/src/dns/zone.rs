//! The zone: the catalogue, and the names under which it is asked for. Owns the settings of the answers and the names that
//! answers say; never which records they have.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::name::DnsName;
use crate::catalogue::Catalogue;
use crate::words::name::{Datacentre, NodeName, ServiceName};
use crate::words::time::{Span, Timestamp};

/// Longest domain in bytes: with it, the longest service in the longest datacentre is still a DNS name.
pub const MAX_DOMAIN_BYTES: usize = 100;

/// Longest time for which answers may be kept, in seconds: a day. A longer one is taken as that.
const MAX_TTL_SECS: u32 = 86_400;

/// Words that stand beside a datacentre's name in a question, so that none may be called so.
const TAKEN: [&str; 4] = ["service", "node", "addr", "ns"];

/// What answers come from: a catalogue as of a moment, and how it is spoken of.
#[derive(Debug, Clone)]
pub struct Zone {
    /// How it is spoken of.
    pub origin: Arc<ZoneOrigin>,
    /// Who offers what, where.
    pub catalogue: Catalogue,
    /// The zone's serial number; larger when the catalogue changed.
    pub serial: u32,
    /// Since when the catalogue may be out of date, because nothing was heard of it; none while it is current.
    pub stale_since: Option<Timestamp>,
}

/// What a zone is called, and how long its answers hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneSettings {
    /// The domain under which all names are. `bw.internal` unless somebody wants another.
    pub domain: String,
    /// The datacentre whose instances these are; may stand in a name, and stands in the names that answers say.
    pub datacentre: Datacentre,
    /// The node that answers: the zone's name server.
    pub node: NodeName,
    /// How long an answer may be kept, in whole seconds, a day at most. Zero by default: every answer is today's.
    pub ttl: Span,
    /// How long "there is no such thing" may be kept, likewise.
    pub negative_ttl: Span,
}

/// Settings that were found to be in order.
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

/// Why settings are not in order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZoneOriginError {
    /// The domain is not one.
    #[error("use {domain:?} as DNS domain: {reason}")]
    Domain {
        /// What was given.
        domain: String,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// The datacentre's name means something else in DNS names.
    #[error("use {0} as datacentre name: it has a meaning of its own in DNS names")]
    Datacentre(Datacentre),
}

/// A name that an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerName<'a> {
    /// `<node>.node.<datacentre>.<domain>`
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
    /// The settings for a node of a datacentre that nobody has changed.
    #[must_use]
    pub fn new(datacentre: Datacentre, node: NodeName) -> Self {
        Self { domain: "bw.internal".into(), datacentre, node, ttl: Span::ZERO, negative_ttl: Span::ZERO }
    }
}

impl ZoneOrigin {
    /// Checks the settings.
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

    /// The domain under which all names are.
    #[must_use]
    pub const fn domain(&self) -> &DnsName {
        &self.domain
    }

    /// How long an answer may be kept, in seconds.
    #[must_use]
    pub const fn ttl_secs(&self) -> u32 {
        self.ttl_secs
    }

    /// How long it may be kept that there is no such thing, in seconds.
    #[must_use]
    pub const fn negative_ttl_secs(&self) -> u32 {
        self.negative_ttl_secs
    }

    /// Writes a name: each label after a byte with its length, and the root's empty one last.
    pub fn write(&self, said: AnswerName<'_>, out: &mut Vec<u8>) {
        let under_here = |out: &mut Vec<u8>, first: &[u8], kind: &[u8]| {
            push_label(out, first);
            push_label(out, kind);
            out.extend_from_slice(&self.here);
        };
        match said {
            AnswerName::Node(name) => under_here(out, name.as_str().as_bytes(), b"node"),
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
    /// The addresses that a name resolves to by itself; none for the names of services.
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

/// Labels here are node, service and datacentre names and words: 63 bytes at most.
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
