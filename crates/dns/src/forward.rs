//! Forwarding of queries outside the zone: deadlines, retries, and which answers are accepted. Queries in the zone are never
//! forwarded.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::config::ForwardConfig;
use crate::wire::code::TYPE_OPT;
use crate::wire::query::Query;
use crate::wire::{HEAD_BYTES, MAX_TCP_BYTES, MAX_UDP_BYTES};

/// How often each resolver is tried before the client gets SERVFAIL, because packets get lost.
const ROUNDS: usize = 2;

/// The forwarder: its resolvers, and its limit on queries at once.
#[derive(Debug)]
pub(crate) struct Forwarder {
    config: ForwardConfig,
    slots: Arc<Semaphore>,
}

/// A permit to forward one query.
#[derive(Debug)]
pub(crate) struct ForwardPermit(
    #[expect(dead_code, reason = "held until it is dropped")] OwnedSemaphorePermit,
);

impl Forwarder {
    pub(crate) fn new(config: ForwardConfig) -> Self {
        let slots = Arc::new(Semaphore::new(config.at_once));
        Self { config, slots }
    }

    /// A permit, if there is one left.
    pub(crate) fn slot(&self) -> Option<ForwardPermit> {
        self.slots.clone().try_acquire_owned().ok().map(ForwardPermit)
    }

    /// Forwards a query; returns the answer with the client's own id, of at most `limit` bytes.
    pub(crate) async fn ask(&self, query: &Query, limit: u16) -> Option<Vec<u8>> {
        let mut answer = timeout(self.config.deadline, self.ask_all(query)).await.ok()??;
        answer.get_mut(..2)?.copy_from_slice(&query.head.id.to_be_bytes());
        if answer.len() > usize::from(limit) {
            // Only the question is left, and the mark of truncation.
            answer.truncate(HEAD_BYTES + query.question.len());
            let flags = answer.get_mut(2)?;
            *flags |= 0x02;
            answer.get_mut(6..HEAD_BYTES)?.fill(0);
            push_edns(query, &mut answer);
        }
        Some(answer)
    }

    /// The first answer that is not a failure of its resolver; without one, any answer.
    async fn ask_all(&self, query: &Query) -> Option<Vec<u8>> {
        let mut last = None;
        for upstream in self.config.upstreams.iter().cycle().take(self.config.upstreams.len() * ROUNDS) {
            let asked = timeout(self.config.patience, ask_one(*upstream, query)).await;
            match asked.map_err(std::io::Error::from).flatten() {
                Ok(answer) if is_helpful(&answer) => return Some(answer),
                Ok(answer) => last = Some(answer),
                Err(error) => tracing::debug!(%upstream, %error, "no answer from an upstream resolver"),
            }
        }
        last
    }
}

/// Over UDP, and over TCP after a truncated answer.
async fn ask_one(upstream: SocketAddr, query: &Query) -> std::io::Result<Vec<u8>> {
    let mut number = [0; 2];
    getrandom::fill(&mut number).map_err(|error| std::io::Error::other(error.to_string()))?;
    let question = question(number, query);
    let any: SocketAddr = match upstream {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    // One socket per query: its port is random as well, and only this resolver can reach it.
    let socket = UdpSocket::bind(any).await?;
    socket.connect(upstream).await?;
    socket.send(&question).await?;
    let mut buffer = vec![0; usize::from(MAX_TCP_BYTES)];
    let length = loop {
        let length = socket.recv(&mut buffer).await?;
        if is_answer(&question, buffer.get(..length).unwrap_or_default(), query) {
            break length;
        }
    };
    buffer.truncate(length);
    if buffer.get(2).is_some_and(|flags| flags & 0x02 != 0) {
        return ask_tcp(upstream, &question, query).await;
    }
    Ok(buffer)
}

async fn ask_tcp(upstream: SocketAddr, question: &[u8], query: &Query) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(upstream).await?;
    let length = u16::try_from(question.len()).map_err(std::io::Error::other)?;
    let mut message = length.to_be_bytes().to_vec();
    message.extend_from_slice(question);
    stream.write_all(&message).await?;
    let length = stream.read_u16().await?;
    let mut answer = vec![0; usize::from(length)];
    stream.read_exact(&mut answer).await?;
    if is_answer(question, &answer, query) { Ok(answer) } else { Err(std::io::ErrorKind::InvalidData.into()) }
}

/// A message of our own with the client's question: the rest of the client's message was for this server.
fn question(number: [u8; 2], query: &Query) -> Vec<u8> {
    let mut message = number.to_vec();
    // Recursion desired, and the client's checking disabled.
    let flags = 0x0100 | (query.head.flags & 0x0010);
    message.extend_from_slice(&flags.to_be_bytes());
    message.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(&query.question);
    push_edns(query, &mut message);
    message
}

/// Adds EDNS, without options, for a client that uses it.
fn push_edns(query: &Query, message: &mut Vec<u8>) {
    let Some(edns) = query.edns else { return };
    message.push(0);
    message.extend_from_slice(&TYPE_OPT.to_be_bytes());
    message.extend_from_slice(&MAX_UDP_BYTES.to_be_bytes());
    message.extend_from_slice(&[0, 0, u8::from(edns.dnssec_ok) << 7, 0, 0, 0]);
    if let Some(count) = message.get_mut(11) {
        *count = 1;
    }
}

/// Whether this is an answer to that query: same id, same question.
fn is_answer(question: &[u8], answer: &[u8], query: &Query) -> bool {
    let same_question = answer
        .get(HEAD_BYTES..)
        .and_then(|rest| rest.get(..query.question.len()))
        .is_some_and(|asked| asked.eq_ignore_ascii_case(&query.question));
    let an_answer = matches!(answer, [_, _, flags, ..] if flags & 0xF8 == 0x80);
    answer.get(..2) == question.get(..2) && an_answer && answer.get(4..6) == Some(&[0, 1]) && same_question
}

/// Whether the next resolver would not do better: SERVFAIL and REFUSED are about the resolver, not about the name.
fn is_helpful(answer: &[u8]) -> bool {
    answer.get(3).is_some_and(|flags| !matches!(flags & 0x0F, 2 | 5))
}
