//! Resolving one message, over any transport: which answer, and which response code it gets.

#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use bellwether_core::dns::zone::Zone;
use bellwether_core::dns::{DnsAnswer, RecordType, SoaOwner, answer};
use tokio::sync::watch;

use crate::clients::{ClientVerdict, Clients};
use crate::counts::{Counters, add};
use crate::forward::Forwarder;
use crate::record_cache::RecordCache;
use crate::wire::PLAIN_UDP_BYTES;
use crate::wire::code::{CLASS_IN, ResponseCode, TYPE_AXFR, TYPE_IXFR, TYPE_OPT, kind};
use crate::wire::query::{Query, QueryError, QueryHeader, read};
use crate::wire::records::RecordSet;
use crate::wire::reply::{ReplyWriter, bare};

/// The flag of an authoritative answer.
const AUTHORITATIVE: u16 = 0x0400;

/// The flag of an answer from which something was left out.
const TRUNCATED: u16 = 0x0200;

/// The flag of a server that forwards.
const RECURSION_AVAILABLE: u16 = 0x0080;

/// The state that all listeners share.
#[derive(Debug)]
pub(crate) struct Resolver {
    pub(crate) zone: watch::Receiver<Arc<Zone>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) forwarder: Option<Arc<Forwarder>>,
    pub(crate) clients: Clients,
}

/// What to do with a message.
#[derive(Debug)]
pub(crate) enum MessageAction {
    /// Send the answer that was written.
    Send,
    /// Drop it.
    Drop,
    /// Forward it.
    Forward(Box<Query>, Arc<Forwarder>),
}

/// Random seeds for the order of records: not secret, different in each process.
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

/// The size limit of an answer, and the seeds for its order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerLimits {
    /// In bytes; over UDP the client sets it.
    pub(crate) limit: Option<u16>,
    pub(crate) seed: u64,
}

impl Resolver {
    /// A cache of this many bytes.
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

    /// Writes the answer to a message that came over UDP from a client that is not to have what it asks for; `None` for others.
    pub(crate) fn declined(
        &self,
        client: IpAddr,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<MessageAction> {
        match self.clients.judge(client) {
            ClientVerdict::Answer => None,
            ClientVerdict::Refuse => Some(self.decline(message, 0, out)),
            ClientVerdict::Truncate => {
                add(&self.counters.limited);
                Some(self.decline(message, TRUNCATED, out))
            }
            ClientVerdict::Drop => {
                add(&self.counters.limited);
                Some(MessageAction::Drop)
            }
        }
    }

    /// Reads a message and writes an answer without records: a refusal, or that it is truncated.
    pub(crate) fn decline(&self, message: &[u8], flag: u16, out: &mut Vec<u8>) -> MessageAction {
        let code = if flag == TRUNCATED { ResponseCode::NoError } else { ResponseCode::Refused };
        match read(message) {
            Ok(query) => {
                ReplyWriter::to(&query, PLAIN_UDP_BYTES, out).finish(&query, code, flag);
                self.counters.answered(code);
                MessageAction::Send
            }
            Err(_) => {
                add(&self.counters.dropped);
                MessageAction::Drop
            }
        }
    }

    /// Forwards a query; SERVFAIL if no resolver answers.
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

/// The answer to a question.
enum LookupResult {
    Records(Arc<RecordSet>, ResponseCode),
    Elsewhere,
    Not(ResponseCode),
}

/// The zone's records for a question, from the cache if possible.
fn look_up(cache: &mut RecordCache, query: &Query) -> LookupResult {
    if let Some(records) = cache.find(&query.name, query.kind) {
        return LookupResult::Records(records, ResponseCode::NoError);
    }
    let zone = cache.zone();
    match answer(&zone, &query.name, kind(query.kind)) {
        DnsAnswer::Records { records, targets, apex } => {
            let records = Arc::new(RecordSet::new(&zone, &query.name, (&records, &targets, apex)));
            // Every other type would be an entry of its own with no records.
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

/// Why a question is refused whatever its name, if it is.
fn objection(query: &Query) -> Option<ResponseCode> {
    if query.edns.is_some_and(|edns| edns.version > 0) {
        return Some(ResponseCode::BadVers);
    }
    match query.kind {
        TYPE_OPT => Some(ResponseCode::FormErr),
        // Zone transfers are not supported.
        TYPE_AXFR | TYPE_IXFR => Some(ResponseCode::Refused),
        _ => (query.class != CLASS_IN).then_some(ResponseCode::Refused),
    }
}
