//! One question's way to its answer, over whatever transport. Owns which code a message gets; never sockets.

#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use bellwether_core::dns::zone::Zone;
use bellwether_core::dns::{DnsAnswer, RecordType, SoaOwner, answer};
use tokio::sync::watch;

use crate::counts::{Counters, add};
use crate::forward::Forwarder;
use crate::record_cache::RecordCache;
use crate::wire::PLAIN_UDP_BYTES;
use crate::wire::code::{CLASS_IN, ResponseCode, TYPE_AXFR, TYPE_IXFR, TYPE_OPT, kind};
use crate::wire::query::{Query, QueryError, QueryHeader, read};
use crate::wire::records::RecordSet;
use crate::wire::reply::{ReplyWriter, bare};

/// The answer is this zone's own word.
const AUTHORITATIVE: u16 = 0x0400;

/// Other zones are asked about for those who want it.
const RECURSION_AVAILABLE: u16 = 0x0080;

/// What every listener needs.
#[derive(Debug)]
pub(crate) struct Resolver {
    pub(crate) zone: watch::Receiver<Arc<Zone>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) forwarder: Option<Arc<Forwarder>>,
}

/// What is to be done about a message.
#[derive(Debug)]
pub(crate) enum MessageAction {
    /// Send what was written.
    Send,
    /// Nothing.
    Drop,
    /// Ask elsewhere.
    Forward(Box<Query>, Arc<Forwarder>),
}

/// Chance by which records are ordered: no secret, different in each process.
pub(crate) struct ShuffleSeeds(u64);

impl ShuffleSeeds {
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
pub(crate) struct AnswerLimits {
    /// In bytes; over UDP it is the client's to say.
    pub(crate) limit: Option<u16>,
    pub(crate) seed: u64,
}

impl Resolver {
    /// Somewhere to keep that many bytes of records.
    pub(crate) fn cache(&self, most_bytes: usize) -> RecordCache {
        RecordCache::new(self.zone.borrow().clone(), most_bytes)
    }

    /// Reads a message and writes its answer.
    pub(crate) fn respond(
        &self,
        cache: &mut RecordCache,
        message: &[u8],
        way: AnswerLimits,
        out: &mut Vec<u8>,
    ) -> MessageAction {
        let query = match read(message) {
            Ok(query) => query,
            Err(QueryError::Noise) => {
                add(&self.counters.dropped);
                return MessageAction::Drop;
            }
            Err(QueryError::Operation(head)) => return self.bare(head, ResponseCode::NotImp, out),
            Err(QueryError::Shape(head)) => return self.bare(head, ResponseCode::FormErr, out),
        };
        let limit = way.limit.unwrap_or_else(|| query.udp_limit());
        let found = objection(&query).map_or_else(|| look_up(cache, &query), LookupResult::Not);
        let mut reply = ReplyWriter::to(&query, limit, out);
        let (code, own) = match found {
            LookupResult::Records(records, code) => {
                reply.fill(&records, way.seed);
                (code, AUTHORITATIVE)
            }
            LookupResult::Elsewhere => match &self.forwarder {
                Some(forwarder) if query.head.is_recursion_desired() => {
                    return MessageAction::Forward(Box::new(query), forwarder.clone());
                }
                Some(_) | None => (ResponseCode::Refused, 0),
            },
            LookupResult::Not(code) => (code, 0),
        };
        if reply.finish(&query, code, own | self.recursion()) {
            add(&self.counters.truncated);
        }
        self.counters.answered(code);
        MessageAction::Send
    }

    /// Asks others about a question; SERVFAIL if they do not answer.
    pub(crate) async fn ask_elsewhere(&self, forwarder: &Forwarder, query: &Query, limit: u16) -> Vec<u8> {
        if let Some(answer) = forwarder.ask(query, limit).await {
            add(&self.counters.forwarded);
            return answer;
        }
        let mut out = Vec::new();
        self.fail(query, ResponseCode::ServFail, &mut out);
        out
    }

    /// Writes an answer without records.
    pub(crate) fn fail(&self, query: &Query, code: ResponseCode, out: &mut Vec<u8>) {
        ReplyWriter::to(query, PLAIN_UDP_BYTES, out).finish(query, code, self.recursion());
        self.counters.answered(code);
    }

    fn bare(&self, head: QueryHeader, code: ResponseCode, out: &mut Vec<u8>) -> MessageAction {
        bare(head, code, out);
        self.counters.answered(code);
        MessageAction::Send
    }

    const fn recursion(&self) -> u16 {
        if self.forwarder.is_some() { RECURSION_AVAILABLE } else { 0 }
    }
}

/// What there is for a question.
enum LookupResult {
    Records(Arc<RecordSet>, ResponseCode),
    Elsewhere,
    Not(ResponseCode),
}

/// What the zone has for a question, from the shelf if it was asked before.
fn look_up(cache: &mut RecordCache, query: &Query) -> LookupResult {
    if let Some(records) = cache.find(&query.name, query.kind) {
        return LookupResult::Records(records, ResponseCode::NoError);
    }
    let zone = cache.zone();
    match answer(&zone, &query.name, kind(query.kind)) {
        DnsAnswer::Records { records, targets, apex } => {
            let records = Arc::new(RecordSet::new(&zone, &query.name, (&records, &targets, apex)));
            // Any other type would be a place of its own for the same nothing.
            if kind(query.kind) != RecordType::Other {
                cache.keep(&records);
            }
            LookupResult::Records(records, ResponseCode::NoError)
        }
        DnsAnswer::NxDomain => {
            let records = RecordSet::new(&zone, &query.name, (&[], &[], SoaOwner::Domain));
            LookupResult::Records(Arc::new(records), ResponseCode::NxDomain)
        }
        DnsAnswer::OtherZone => LookupResult::Elsewhere,
    }
}

/// Why a question is not answered whatever it is about.
fn objection(query: &Query) -> Option<ResponseCode> {
    if query.edns.is_some_and(|edns| edns.version > 0) {
        return Some(ResponseCode::BadVers);
    }
    match query.kind {
        TYPE_OPT => Some(ResponseCode::FormErr),
        // Transfers of whole zones: there are none.
        TYPE_AXFR | TYPE_IXFR => Some(ResponseCode::Refused),
        _ => (query.class != CLASS_IN).then_some(ResponseCode::Refused),
    }
}
