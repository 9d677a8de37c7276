//! Writing an answer. Owns the bytes, their limit and what is left out beyond it; never which records there are.
//!
//! Records are whole or not there. What does not fit of the answer itself is left out and the answer marked as truncated;
//! what does not fit of the addresses beside it is left out in silence, as it can be asked for (RFC 2181).

use std::net::IpAddr;

use bellwether_core::answer::zone::{Said, Zone};
use bellwether_core::answer::{Apex, Data};

use super::code::{
    CLASS_IN, Code, TYPE_A, TYPE_AAAA, TYPE_HINFO, TYPE_NS, TYPE_OPT, TYPE_PTR, TYPE_SOA, TYPE_SRV,
};
use super::query::{Edns, Head, Query};
use super::{HEAD_BYTES, MAX_UDP_BYTES};

/// A pointer to the name in the question, which stands right after the head.
const QUESTION_NAME: u16 = 0xC000 + 12;

/// Furthest place that a pointer can name, in bytes from the head.
const MAX_POINTER: usize = 0x3FFF;

/// EDNS as it is answered: no options.
const EDNS_BYTES: usize = 11;

/// How long others may keep a copy of the zone, should anybody ever: refresh, retry and expiry in seconds. There are no
/// transfers, so these are only what customary tools expect to see.
const SOA_TIMERS: [u32; 3] = [3_600, 600, 86_400];

/// An answer that is being written.
pub(crate) struct Reply<'b> {
    out: &'b mut Vec<u8>,
    limit: usize,
    edns: Option<Edns>,
    counts: [u16; 3],
    /// Where each target's name stands; 0 for one that is not there.
    places: Vec<usize>,
    truncated: bool,
}

/// What an answer consists of.
pub(crate) struct Content<'a> {
    pub(crate) records: Vec<Data<'a>>,
    pub(crate) targets: Vec<Said<'a>>,
    pub(crate) apex: Apex,
}

impl Content<'_> {
    /// No records.
    pub(crate) const fn none() -> Self {
        Self { records: Vec::new(), targets: Vec::new(), apex: Apex::Domain }
    }
}

/// An answer to what is not a question: a head and nothing else.
pub(crate) fn bare(head: Head, code: Code, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&head.id.to_be_bytes());
    out.extend_from_slice(&(head.flags & 0x7900 | 0x8000 | u16::from(code.bits().0)).to_be_bytes());
    out.extend_from_slice(&[0; 8]);
}

impl<'b> Reply<'b> {
    /// Begins an answer of at most `limit` bytes: at least 512, so that head, question, EDNS and SOA always fit.
    pub(crate) fn to(query: &Query, limit: u16, out: &'b mut Vec<u8>) -> Self {
        out.clear();
        // The head follows when everything is known.
        out.extend_from_slice(&[0; HEAD_BYTES]);
        out.extend_from_slice(&query.question);
        let edns = query.edns;
        let limit = usize::from(limit) - edns.map_or(0, |_| EDNS_BYTES);
        Self { out, limit, edns, counts: [0; 3], places: Vec::new(), truncated: false }
    }

    /// Writes the records, then the addresses of what they point at; or, if there are none, the start of authority.
    pub(crate) fn fill(&mut self, zone: &Zone, query: &Query, content: &Content<'_>) {
        let domain = self.domain(zone, query, content.apex);
        if content.records.is_empty() {
            let owner = match (content.apex, domain) {
                (Apex::Domain, Some(pointer)) => pointer,
                (Apex::Question, _) | (Apex::Domain, None) => QUESTION_NAME,
            };
            let start = self.record(owner, TYPE_SOA, zone.origin.negative_ttl_secs());
            self.soa(zone, domain);
            self.end(start, 1);
            return;
        }
        self.places.resize(content.targets.len(), 0);
        for data in &content.records {
            if !self.data(zone, &content.targets, *data, domain) {
                self.truncated = true;
                return;
            }
        }
        for data in &content.records {
            let (Data::Srv { target, .. } | Data::Ns { target }) = *data else { return };
            let (Some(said), Some(place)) = (content.targets.get(target), self.places.get_mut(target)) else {
                continue;
            };
            // Each target once, however many ports it has.
            let place = std::mem::take(place);
            if place != 0 && !self.beside(zone, *said, place) {
                return;
            }
        }
    }

    /// Ends the answer; says whether it was cut.
    pub(crate) fn finish(self, query: &Query, code: Code, extra_flags: u16) -> bool {
        let (low, high) = code.bits();
        if let Some(edns) = self.edns {
            self.out.push(0);
            self.out.extend_from_slice(&TYPE_OPT.to_be_bytes());
            self.out.extend_from_slice(&MAX_UDP_BYTES.to_be_bytes());
            self.out.extend_from_slice(&[high, 0, u8::from(edns.dnssec_ok) << 7, 0, 0, 0]);
        }
        let [answers, authority, beside] = self.counts;
        // Of the client's flags: recursion desired, checking disabled.
        let flags = 0x8000 | extra_flags | (query.head.flags & 0x0110) | u16::from(low);
        let flags = if self.truncated { flags | 0x0200 } else { flags };
        let beside = beside + u16::from(self.edns.is_some());
        let head = [query.head.id, flags, 1, answers, authority, beside];
        for (place, number) in self.out.chunks_exact_mut(2).zip(head) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        self.truncated
    }

    /// Where the domain stands in the question, as a pointer; nowhere in the names of addresses.
    fn domain(&self, zone: &Zone, query: &Query, apex: Apex) -> Option<u16> {
        let before = query.name.bytes().len().checked_sub(zone.origin.domain().bytes().len())?;
        match apex {
            Apex::Domain => u16::try_from(before).ok().map(|before| QUESTION_NAME + before),
            Apex::Question => None,
        }
    }

    /// One record of the answer; false if it does not fit.
    fn data(&mut self, zone: &Zone, targets: &[Said<'_>], data: Data<'_>, domain: Option<u16>) -> bool {
        let ttl = zone.origin.ttl_secs();
        let start = match data {
            Data::Address(address) => self.address(QUESTION_NAME, address, ttl),
            Data::Srv { port, target } => {
                let start = self.record(QUESTION_NAME, TYPE_SRV, ttl);
                let [high, low] = port.to_be_bytes();
                self.out.extend_from_slice(&[0, 1, 0, 1, high, low]);
                self.target(zone, targets, target);
                start
            }
            Data::Ns { target } => {
                let start = self.record(QUESTION_NAME, TYPE_NS, ttl);
                self.target(zone, targets, target);
                start
            }
            Data::Ptr(said) => {
                let start = self.record(QUESTION_NAME, TYPE_PTR, ttl);
                zone.origin.write(said, self.out);
                start
            }
            Data::Soa => {
                let start = self.record(QUESTION_NAME, TYPE_SOA, ttl);
                self.soa(zone, domain);
                start
            }
            Data::Everything => {
                let start = self.record(QUESTION_NAME, TYPE_HINFO, ttl);
                self.out.extend_from_slice(b"\x07RFC8482\x00");
                start
            }
        };
        self.end(start, 0)
    }

    /// Writes a target's name, without pointers as RFC 2782 wants it, and remembers where.
    fn target(&mut self, zone: &Zone, targets: &[Said<'_>], target: usize) {
        let Some(said) = targets.get(target) else { return };
        if let Some(place) = self.places.get_mut(target) {
            *place = self.out.len();
        }
        zone.origin.write(*said, self.out);
    }

    /// The addresses of a target, all or none; false if they do not fit.
    fn beside(&mut self, zone: &Zone, said: Said<'_>, place: usize) -> bool {
        let (length, before) = (self.out.len(), self.counts);
        for address in zone.addresses(said) {
            let pointer = u16::try_from(place).ok().filter(|_| place <= MAX_POINTER);
            let start = match pointer {
                Some(pointer) => self.address(0xC000 | pointer, address, zone.origin.ttl_secs()),
                None => return false,
            };
            if !self.end(start, 2) {
                self.out.truncate(length);
                self.counts = before;
                return false;
            }
        }
        true
    }

    fn address(&mut self, owner: u16, address: IpAddr, ttl: u32) -> Started {
        match address {
            IpAddr::V4(address) => {
                let start = self.record(owner, TYPE_A, ttl);
                self.out.extend_from_slice(&address.octets());
                start
            }
            IpAddr::V6(address) => {
                let start = self.record(owner, TYPE_AAAA, ttl);
                self.out.extend_from_slice(&address.octets());
                start
            }
        }
    }

    fn soa(&mut self, zone: &Zone, domain: Option<u16>) {
        for (said, label) in [(Said::NameServer, &b"\x02ns"[..]), (Said::Contact, b"\x0ahostmaster")] {
            match domain {
                Some(pointer) => {
                    self.out.extend_from_slice(label);
                    self.out.extend_from_slice(&pointer.to_be_bytes());
                }
                None => zone.origin.write(said, self.out),
            }
        }
        let [refresh, retry, expire] = SOA_TIMERS;
        for number in [zone.serial, refresh, retry, expire, zone.origin.negative_ttl_secs()] {
            self.out.extend_from_slice(&number.to_be_bytes());
        }
    }

    /// Begins a record; its length follows when it ends.
    fn record(&mut self, owner: u16, kind: u16, ttl: u32) -> Started {
        let start = self.out.len();
        let ([a, b], [c, d], [e, f]) = (owner.to_be_bytes(), kind.to_be_bytes(), CLASS_IN.to_be_bytes());
        let [g, h, i, j] = ttl.to_be_bytes();
        self.out.extend_from_slice(&[a, b, c, d, e, f, g, h, i, j, 0, 0]);
        Started { start, data: self.out.len() }
    }

    /// Ends a record of one of the three sections; false, and it is not there, if it does not fit.
    fn end(&mut self, started: Started, section: usize) -> bool {
        let Started { start, data } = started;
        let length = u16::try_from(self.out.len() - data).ok();
        let place = self.out.get_mut(data - 2..data).and_then(|place| place.first_chunk_mut());
        let (Some(place), Some(length), Some(count)) = (place, length, self.counts.get_mut(section)) else {
            self.out.truncate(start);
            return false;
        };
        *place = length.to_be_bytes();
        if self.out.len() > self.limit {
            self.out.truncate(start);
            return false;
        }
        *count += 1;
        true
    }
}

/// Where a record and its data begin.
struct Started {
    start: usize,
    data: usize,
}
