//! Reading a query: what is a valid one, and what is not.

use bellwether_core::dns::name::DnsName;

use super::code::TYPE_OPT;
use super::{HEAD_BYTES, MAX_UDP_BYTES, PLAIN_UDP_BYTES};

/// Most records after the question, such as EDNS and a signature. Real clients send one or two.
const MAX_RECORDS: u16 = 8;

/// A query as received.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) head: QueryHeader,
    pub(crate) name: DnsName,
    /// The question section: the name as the client wrote it, type and class.
    pub(crate) question: Vec<u8>,
    pub(crate) kind: u16,
    pub(crate) class: u16,
    pub(crate) edns: Option<Edns>,
}

/// The used fields of a message's header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryHeader {
    pub(crate) id: u16,
    /// The flags as received: operation, recursion desired, checking disabled and others.
    pub(crate) flags: u16,
}

/// The client's EDNS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edns {
    pub(crate) payload: u16,
    pub(crate) version: u8,
    pub(crate) dnssec_ok: bool,
}

/// Why bytes are not a query.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueryError {
    /// No header, or an answer: dropped, because a reply could be answered again and again.
    Noise,
    /// Another operation than a query.
    Operation(QueryHeader),
    /// Malformed.
    Shape(QueryHeader),
}

impl QueryHeader {
    pub(crate) const fn is_recursion_desired(self) -> bool {
        self.flags & 0x0100 != 0
    }
}

impl Query {
    /// The size of UDP answers that the client accepts, in bytes.
    pub(crate) fn udp_limit(&self) -> u16 {
        self.edns.map_or(PLAIN_UDP_BYTES, |edns| edns.payload.clamp(PLAIN_UDP_BYTES, MAX_UDP_BYTES))
    }
}

/// Reads a query.
pub(crate) fn read(bytes: &[u8]) -> Result<Query, QueryError> {
    let mut reader = Reader { rest: bytes };
    let (head, counts) = reader.head().ok_or(QueryError::Noise)?;
    if head.flags & 0x8000 != 0 {
        return Err(QueryError::Noise);
    }
    if head.flags & 0x7800 != 0 {
        return Err(QueryError::Operation(head));
    }
    let bad = QueryError::Shape(head);
    let [questions, records @ ..] = counts;
    let total = records.iter().fold(0_u16, |sum, count| sum.saturating_add(*count));
    if questions != 1 || total > MAX_RECORDS {
        return Err(bad);
    }
    let name = reader.name().ok_or(bad)?;
    let kind = reader.number().ok_or(bad)?;
    let class = reader.number().ok_or(bad)?;
    let end = bytes.len() - reader.rest.len();
    let question = bytes.get(HEAD_BYTES..end).unwrap_or_default().to_vec();
    let mut edns = None;
    for _ in 0..total {
        if let Some(found) = reader.record().ok_or(bad)?
            && edns.replace(found).is_some()
        {
            return Err(bad);
        }
    }
    if reader.rest.is_empty() { Ok(Query { head, name, question, kind, class, edns }) } else { Err(bad) }
}

/// The rest of a message. Each read takes from its front, so that reading ends.
struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (front, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(front)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    fn head(&mut self) -> Option<(QueryHeader, [u16; 4])> {
        let head = QueryHeader { id: self.number()?, flags: self.number()? };
        Some((head, [self.number()?, self.number()?, self.number()?, self.number()?]))
    }

    /// A name without pointers: before the question there is nothing to point at.
    fn name(&mut self) -> Option<DnsName> {
        let mut name = DnsName::default();
        loop {
            // A length above 63 would be a pointer.
            match self.byte()? {
                0 => return Some(name),
                length => name.push(self.take(usize::from(length))?).ok()?,
            }
        }
    }

    /// Reads a record; returns it if it is EDNS.
    fn record(&mut self) -> Option<Option<Edns>> {
        let at_root = self.skip_name()?;
        let (kind, payload) = (self.number()?, self.number()?);
        let [_, version, flags @ ..]: [u8; 4] = self.take(4)?.try_into().ok()?;
        let length = self.number()?;
        self.take(usize::from(length))?;
        if kind != TYPE_OPT {
            return Some(None);
        }
        let dnssec_ok = u16::from_be_bytes(flags) & 0x8000 != 0;
        at_root.then_some(Some(Edns { payload, version, dnssec_ok }))
    }

    /// Skips a name, which may end with a pointer; returns whether it was the root.
    fn skip_name(&mut self) -> Option<bool> {
        let mut at_root = true;
        loop {
            match self.byte()? {
                0 => return Some(at_root),
                length @ 1..=63 => _ = self.take(usize::from(length))?,
                192.. => return self.byte().map(|_| false),
                64..=191 => return None,
            }
            at_root = false;
        }
    }
}
