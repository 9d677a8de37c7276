//! Writing an answer: its size limit, and what is left out beyond it.
//!
//! Records are never cut. If the answer section does not fit, the rest is left out and the answer marked as truncated; if the
//! additional section does not fit, the rest is left out without a mark, because clients can query it (RFC 2181).

use bellwether_core::dns::random::RandomStream;

use super::code::{ResponseCode, TYPE_OPT};
use super::query::{Edns, Query, QueryHeader};
use super::records::RecordSet;
use super::{HEAD_BYTES, MAX_UDP_BYTES};

/// Largest offset that a pointer can have, in bytes from the start of the header.
const MAX_POINTER: usize = 0x3FFF;

/// The EDNS record of answers: no options.
const EDNS_BYTES: usize = 11;

/// An answer being written.
pub(crate) struct ReplyWriter<'b> {
    out: &'b mut Vec<u8>,
    limit: usize,
    edns: Option<Edns>,
    answers: u16,
    authority: u16,
    beside: u16,
    truncated: bool,
}

/// An answer to a malformed query: only a header.
pub(crate) fn bare(head: QueryHeader, code: ResponseCode, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&head.id.to_be_bytes());
    out.extend_from_slice(&(head.flags & 0x7900 | 0x8000 | u16::from(code.bits().0)).to_be_bytes());
    out.extend_from_slice(&[0; 8]);
}

impl<'b> ReplyWriter<'b> {
    /// Begins an answer of at most `limit` bytes: at least 512, so that header, question, EDNS and SOA always fit.
    pub(crate) fn to(query: &Query, limit: u16, out: &'b mut Vec<u8>) -> Self {
        out.clear();
        // The header is written at the end.
        out.extend_from_slice(&[0; HEAD_BYTES]);
        out.extend_from_slice(&query.question);
        let edns = query.edns;
        let limit = usize::from(limit) - edns.map_or(0, |_| EDNS_BYTES);
        Self { out, limit, edns, answers: 0, authority: 0, beside: 0, truncated: false }
    }

    /// Writes the records in a random order, then the addresses of their targets; without records, the SOA.
    pub(crate) fn fill(&mut self, records: &RecordSet, seed: u64) {
        if let Some(authority) = &records.authority {
            self.authority = u16::from(self.push(records.bytes(authority)));
        }
        let mut chance = RandomStream::new(seed);
        let mut left: Vec<_> = records.answers.iter().collect();
        let mut rest = left.as_mut_slice();
        // The offset of each target's name; 0 for one that was left out.
        let mut places = vec![0; records.target_count()];
        let mut targets = Vec::with_capacity(places.len().min(32));
        while !rest.is_empty() {
            chance.pick_first(rest);
            let Some((record, after)) = rest.split_first_mut() else { break };
            let start = self.out.len();
            if !self.push(records.bytes(record)) {
                self.truncated = true;
                return;
            }
            self.answers += 1;
            if let Some((target, name)) = record.target
                && let Some(place) = places.get_mut(target).filter(|place| **place == 0)
            {
                *place = start + name;
                targets.push((target, *place));
            }
            rest = after;
        }
        for (target, place) in targets {
            if !self.beside(records, target, place) {
                return;
            }
        }
    }

    /// Ends the answer; returns whether it was truncated.
    pub(crate) fn finish(self, query: &Query, code: ResponseCode, extra_flags: u16) -> bool {
        let (low, high) = code.bits();
        if let Some(edns) = self.edns {
            self.out.push(0);
            self.out.extend_from_slice(&TYPE_OPT.to_be_bytes());
            self.out.extend_from_slice(&MAX_UDP_BYTES.to_be_bytes());
            self.out.extend_from_slice(&[high, 0, u8::from(edns.dnssec_ok) << 7, 0, 0, 0]);
        }
        // Of the client's flags: recursion desired, checking disabled.
        let flags = 0x8000 | extra_flags | (query.head.flags & 0x0110) | u16::from(low);
        let flags = if self.truncated { flags | 0x0200 } else { flags };
        let beside = self.beside + u16::from(self.edns.is_some());
        let head = [query.head.id, flags, 1, self.answers, self.authority, beside];
        for (place, number) in self.out.chunks_exact_mut(2).zip(head) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        self.truncated
    }

    /// Adds a record if it fits.
    fn push(&mut self, record: &[u8]) -> bool {
        let fits = self.out.len() + record.len() <= self.limit;
        if fits {
            self.out.extend_from_slice(record);
        }
        fits
    }

    /// Adds all addresses of a target, or none; false if they do not fit.
    fn beside(&mut self, records: &RecordSet, target: usize, place: usize) -> bool {
        let Some(pointer) = u16::try_from(place).ok().filter(|_| place <= MAX_POINTER) else { return false };
        let (length, before) = (self.out.len(), self.beside);
        for address in records.addresses(target) {
            self.out.extend_from_slice(&(0xC000 | pointer).to_be_bytes());
            if !self.push(address) {
                self.out.truncate(length);
                self.beside = before;
                return false;
            }
            self.beside += 1;
        }
        true
    }
}
