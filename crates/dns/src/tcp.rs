//! TCP, for answers that do not fit into a packet: limits on connections, on the time without a query, and on queries. The
//! queries of a connection are answered one at a time; further ones wait in the client's buffers.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::config::DnsLimits;
use crate::connections::Connections;
use crate::counts::add;
use crate::resolver::{AnswerLimits, MessageAction, Resolver, ShuffleSeeds};
use crate::wire::MAX_TCP_BYTES;
use crate::wire::code::ResponseCode;

/// Pause after a failed accept, for instance for want of file descriptors.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until `tasks` is stopped.
pub(crate) async fn serve(
    resolver: Arc<Resolver>,
    listener: TcpListener,
    limits: DnsLimits,
    connections: Arc<Connections>,
    tasks: Tasks,
) {
    let token = tasks.token();
    loop {
        // Both arms only wait.
        let accepted = tokio::select! {
            biased;
            () = token.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a DNS connection");
                tokio::time::sleep(ERROR_PAUSE).await;
                continue;
            }
        };
        let Some(place) = connections.place(client.ip()) else {
            add(&resolver.counters.connections_refused);
            continue;
        };
        let (resolver, limits, token) = (resolver.clone(), limits.clone(), token.clone());
        tasks.spawn("dns-connection", async move {
            // The first arm only waits; when the second is dropped, the client asks again.
            tokio::select! {
                () = token.cancelled() => {}
                ended = converse(&resolver, stream, client.ip(), &limits) => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a DNS connection ended");
                    }
                }
            }
            drop(place);
        });
    }
}

/// One connection: queries and answers in turn.
async fn converse(
    resolver: &Resolver,
    stream: TcpStream,
    client: IpAddr,
    limits: &DnsLimits,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let (mut seeds, mut message, mut out, mut frame) = (ShuffleSeeds::new(), vec![], vec![], vec![]);
    let is_allowed = resolver.clients.is_allowed(client);
    // There may be too many connections for each to have a cache.
    let mut cache = resolver.cache(0);
    for _ in 0..limits.questions_per_connection {
        timeout(limits.idle, receive(&mut stream, &mut message)).await??;
        cache.renew(&resolver.zone.borrow());
        let way = AnswerLimits { limit: Some(MAX_TCP_BYTES), seed: seeds.next() };
        let action = if is_allowed {
            resolver.respond(&mut cache, &message, way, &mut out)
        } else {
            resolver.decline(&message, 0, &mut out)
        };
        match action {
            MessageAction::Send => {}
            // A client that sends malformed messages over a connection has lost their boundaries.
            MessageAction::Drop => return Ok(()),
            MessageAction::Forward(query, forwarder) => {
                if let Some(_slot) = forwarder.slot() {
                    out = resolver.ask_elsewhere(&forwarder, &query, MAX_TCP_BYTES).await;
                } else {
                    resolver.fail(&query, ResponseCode::ServFail, &mut out);
                }
            }
        }
        let length = u16::try_from(out.len()).map_err(std::io::Error::other)?;
        frame.clear();
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(&out);
        timeout(limits.idle, stream.write_all(&frame)).await??;
    }
    stream.shutdown().await
}

/// Writes a message after its length.
async fn receive(stream: &mut BufReader<TcpStream>, message: &mut Vec<u8>) -> std::io::Result<()> {
    let length = stream.read_u16().await?;
    message.resize(usize::from(length), 0);
    stream.read_exact(message).await.map(|_| ())
}
