//! UDP: several packets per system call, each answered from the address that it was sent to.

use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::counts::add;
use crate::forward::Forwarder;
use crate::record_cache::MAX_BYTES;
use crate::resolver::{AnswerLimits, MessageAction, Resolver, ShuffleSeeds};
use crate::wire::code::ResponseCode;
use crate::wire::query::Query;

/// Longest datagram. The kernel may join several small ones up to this size; pages that it never writes cost no memory.
const DATAGRAM_BYTES: usize = 65_535;

/// Requested receive buffer of the kernel, in bytes: some thousand queries. The kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;

/// Pause after a socket error, so that a persistent error does not use a whole core.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// A socket that receives queries.
#[derive(Debug)]
pub(crate) struct UdpSocketPort {
    socket: UdpSocket,
    state: UdpSocketState,
}

/// The address to answer to, and the local address to answer from.
#[derive(Debug, Clone, Copy)]
struct ReplyAddress {
    to: SocketAddr,
    from: Option<IpAddr>,
}

/// A query to forward, and where its answer goes.
struct ForwardedQuery {
    query: Box<Query>,
    forwarder: Arc<Forwarder>,
    back: ReplyAddress,
}

impl UdpSocketPort {
    pub(crate) fn new(socket: UdpSocket) -> std::io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // Only a larger buffer than the default helps; a refusal is harmless.
        if state.recv_buffer_size((&socket).into())? < RECEIVE_BUFFER_BYTES
            && let Err(error) = state.set_recv_buffer_size((&socket).into(), RECEIVE_BUFFER_BYTES)
        {
            tracing::debug!(%error, "cannot enlarge the receive buffer");
        }
        Ok(Self { socket, state })
    }

    /// Waits for packets; returns how many, each with its sender.
    async fn receive(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> std::io::Result<usize> {
        let read = || self.state.recv((&self.socket).into(), buffers, metas);
        self.socket.async_io(Interest::READABLE, read).await
    }

    /// Sends an answer. One that cannot be sent is lost, like any packet: the client asks again.
    async fn send(&self, contents: &[u8], back: ReplyAddress) {
        let packet =
            Transmit { destination: back.to, ecn: None, contents, segment_size: None, src_ip: back.from };
        let write = || self.state.try_send((&self.socket).into(), &packet);
        if let Err(error) = self.socket.async_io(Interest::WRITABLE, write).await {
            tracing::debug!(to = %back.to, %error, "cannot send an answer");
        }
    }
}

/// Answers packets until `tasks` is stopped.
pub(crate) async fn serve(resolver: Arc<Resolver>, port: Arc<UdpSocketPort>, tasks: Tasks) {
    let (token, mut seeds, mut out) = (tasks.token(), ShuffleSeeds::new(), Vec::new());
    let mut memory = vec![0; DATAGRAM_BYTES * BATCH_SIZE];
    let mut cache = resolver.cache(MAX_BYTES);
    let mut metas = [RecvMeta::default(); BATCH_SIZE];
    let mut stopped = std::pin::pin!(token.cancelled());
    loop {
        let mut buffers: Vec<_> = memory.chunks_exact_mut(DATAGRAM_BYTES).map(IoSliceMut::new).collect();
        // Both arms only wait; packets are read from the kernel in one call.
        let received = tokio::select! {
            biased;
            () = &mut stopped => return,
            received = port.receive(&mut buffers, &mut metas) => received,
        };
        let count = match received {
            Ok(count) => count,
            Err(error) => {
                tracing::debug!(%error, "cannot read DNS queries");
                tokio::time::sleep(ERROR_PAUSE).await;
                continue;
            }
        };
        cache.renew(&resolver.zone.borrow());
        for (meta, buffer) in metas.iter().zip(&buffers).take(count) {
            let back = ReplyAddress { to: meta.addr, from: meta.dst_ip };
            let joined = buffer.get(..meta.len).unwrap_or_default();
            if joined.is_empty() {
                add(&resolver.counters.dropped);
            }
            for packet in joined.chunks(meta.stride.max(1)) {
                let way = AnswerLimits { limit: None, seed: seeds.next() };
                let declined = resolver.declined(back.to.ip(), packet, &mut out);
                match declined.unwrap_or_else(|| resolver.respond(&mut cache, packet, way, &mut out)) {
                    MessageAction::Send => port.send(&out, back).await,
                    MessageAction::Drop => {}
                    MessageAction::Forward(query, forwarder) => {
                        let forwarded = ForwardedQuery { query, forwarder, back };
                        forward(&resolver, &port, forwarded, &tasks).await;
                    }
                }
            }
        }
    }
}

/// Forwards a query while others are answered.
async fn forward(
    resolver: &Arc<Resolver>,
    port: &Arc<UdpSocketPort>,
    forwarded: ForwardedQuery,
    tasks: &Tasks,
) {
    let ForwardedQuery { query, forwarder, back } = forwarded;
    let Some(slot) = forwarder.slot() else {
        let mut out = Vec::new();
        resolver.fail(&query, ResponseCode::ServFail, &mut out);
        return port.send(&out, back).await;
    };
    let (resolver, port, token) = (resolver.clone(), port.clone(), tasks.token());
    tasks.spawn("dns-forward", async move {
        // The first arm only waits; when the second is dropped, the client asks another server.
        tokio::select! {
            () = token.cancelled() => {}
            out = resolver.ask_elsewhere(&forwarder, &query, query.udp_limit()) => port.send(&out, back).await,
        }
        drop(slot);
    });
}
