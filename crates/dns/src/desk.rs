//! One question's way to its answer, over whatever transport. Owns which code a message gets; never sockets.

#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use bellwether_core::answer::zone::Zone;
use bellwether_core::answer::{Answer, Apex, Kind, answer};
use tokio::sync::watch;

use crate::counts::{Counters, add};
use crate::forward::Forwarder;
use crate::shelf::Shelf;
use crate::wire::PLAIN_UDP_BYTES;
use crate::wire::code::{CLASS_IN, Code, TYPE_AXFR, TYPE_IXFR, TYPE_OPT, kind};
use crate::wire::query::{Head, Query, Unreadable, read};
use crate::wire::records::Records;
use crate::wire::reply::{Reply, bare};

/// The answer is this zone's own word.
const AUTHORITATIVE: u16 = 0x0400;

/// Other zones are asked about for those who want it.
const RECURSION_AVAILABLE: u16 = 0x0080;

/// What every listener needs.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) zone: watch::Receiver<Arc<Zone>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) forwarder: Option<Arc<Forwarder>>,
}

/// What is to be done about a message.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send what was written.
    Send,
    /// Nothing.
    Drop,
    /// Ask elsewhere.
    Forward(Box<Query>, Arc<Forwarder>),
}

/// Chance by which records are ordered: no secret, different in each process.
pub(crate) struct Seeds(u64);

impl Seeds {
    pub(crate) fn new() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xd134_2543_de82_ef95);
        self.0
    }
}

/// How much an answer may hold, and the chance by which it is ordered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// In bytes; over UDP it is the client's to say.
    pub(crate) limit: Option<u16>,
    pub(crate) seed: u64,
}

impl Desk {
    /// Somewhere to keep that many bytes of records.
    pub(crate) fn shelf(&self, most_bytes: usize) -> Shelf {
        Shelf::new(self.zone.borrow().clone(), most_bytes)
    }

    /// Reads a message and writes its answer.
    pub(crate) fn respond(&self, shelf: &mut Shelf, message: &[u8], way: Way, out: &mut Vec<u8>) -> Next {
        let query = match read(message) {
            Ok(query) => query,
            Err(Unreadable::Noise) => {
                add(&self.counters.dropped);
                return Next::Drop;
            }
            Err(Unreadable::Operation(head)) => return self.bare(head, Code::NotImp, out),
            Err(Unreadable::Shape(head)) => return self.bare(head, Code::FormErr, out),
        };
        let limit = way.limit.unwrap_or_else(|| query.udp_limit());
        let found = objection(&query).map_or_else(|| look_up(shelf, &query), Found::Not);
        let mut reply = Reply::to(&query, limit, out);
        let (code, own) = match found {
            Found::Records(records, code) => {
                reply.fill(&records, way.seed);
                (code, AUTHORITATIVE)
            }
            Found::Elsewhere => match &self.forwarder {
                Some(forwarder) if query.head.is_recursion_desired() => {
                    return Next::Forward(Box::new(query), forwarder.clone());
                }
                Some(_) | None => (Code::Refused, 0),
            },
            Found::Not(code) => (code, 0),
        };
        if reply.finish(&query, code, own | self.recursion()) {
            add(&self.counters.truncated);
        }
        self.counters.answered(code);
        Next::Send
    }

    /// Asks others about a question; SERVFAIL if they do not answer.
    pub(crate) async fn ask_elsewhere(&self, forwarder: &Forwarder, query: &Query, limit: u16) -> Vec<u8> {
        if let Some(answer) = forwarder.ask(query, limit).await {
            add(&self.counters.forwarded);
            return answer;
        }
        let mut out = Vec::new();
        self.fail(query, Code::ServFail, &mut out);
        out
    }

    /// Writes an answer without records.
    pub(crate) fn fail(&self, query: &Query, code: Code, out: &mut Vec<u8>) {
        Reply::to(query, PLAIN_UDP_BYTES, out).finish(query, code, self.recursion());
        self.counters.answered(code);
    }

    fn bare(&self, head: Head, code: Code, out: &mut Vec<u8>) -> Next {
        bare(head, code, out);
        self.counters.answered(code);
        Next::Send
    }

    const fn recursion(&self) -> u16 {
        if self.forwarder.is_some() { RECURSION_AVAILABLE } else { 0 }
    }
}

/// What there is for a question.
enum Found {
    Records(Arc<Records>, Code),
    Elsewhere,
    Not(Code),
}

/// What the zone has for a question, from the shelf if it was asked before.
fn look_up(shelf: &mut Shelf, query: &Query) -> Found {
    if let Some(records) = shelf.find(&query.name, query.kind) {
        return Found::Records(records, Code::NoError);
    }
    let zone = shelf.zone();
    match answer(&zone, &query.name, kind(query.kind)) {
        Answer::Here { records, targets, apex } => {
            let records = Arc::new(Records::new(&zone, &query.name, (&records, &targets, apex)));
            // Any other type would be a place of its own for the same nothing.
            if kind(query.kind) != Kind::Other {
                shelf.keep(&records);
            }
            Found::Records(records, Code::NoError)
        }
        Answer::NoSuchName => {
            let records = Records::new(&zone, &query.name, (&[], &[], Apex::Domain));
            Found::Records(Arc::new(records), Code::NxDomain)
        }
        Answer::Elsewhere => Found::Elsewhere,
    }
}

/// Why a question is not answered whatever it is about.
fn objection(query: &Query) -> Option<Code> {
    if query.edns.is_some_and(|edns| edns.version > 0) {
        return Some(Code::BadVers);
    }
    match query.kind {
        TYPE_OPT => Some(Code::FormErr),
        // Transfers of whole zones: there are none.
        TYPE_AXFR | TYPE_IXFR => Some(Code::Refused),
        _ => (query.class != CLASS_IN).then_some(Code::Refused),
    }
}
