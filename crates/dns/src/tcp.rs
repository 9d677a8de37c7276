//! TCP: for answers that no packet holds. Owns connections and their limits: how many, how long without a question, how
//! many questions. One question of a connection is worked on at a time; the others wait in the client's own buffers.

use std::sync::Arc;
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::config::DnsLimits;
use crate::counts::add;
use crate::resolver::{AnswerLimits, MessageAction, Resolver, ShuffleSeeds};
use crate::wire::MAX_TCP_BYTES;
use crate::wire::code::ResponseCode;

/// Pause after a connection could not be accepted, as when there are no file descriptors left.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until it is stopped.
pub(crate) async fn serve(
    resolver: Arc<Resolver>,
    listener: TcpListener,
    (limits, slots): (DnsLimits, Arc<Semaphore>),
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
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "accepting a DNS connection");
                tokio::time::sleep(ERROR_PAUSE).await;
                continue;
            }
        };
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            add(&resolver.counters.connections_refused);
            continue;
        };
        let (resolver, limits, token) = (resolver.clone(), limits.clone(), token.clone());
        tasks.spawn("dns-connection", async move {
            // The first arm only waits; what the second leaves undone when all is stopped, its client asks again.
            tokio::select! {
                () = token.cancelled() => {}
                ended = converse(&resolver, stream, &limits) => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a DNS connection ended");
                    }
                }
            }
            drop(slot);
        });
    }
}

/// One connection: question, answer, question.
async fn converse(resolver: &Resolver, stream: TcpStream, limits: &DnsLimits) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let (mut seeds, mut message, mut out, mut frame) = (ShuffleSeeds::new(), vec![], vec![], vec![]);
    // Too many connections for each to keep anything.
    let mut cache = resolver.cache(0);
    for _ in 0..limits.questions_per_connection {
        timeout(limits.idle, receive(&mut stream, &mut message)).await??;
        cache.renew(&resolver.zone.borrow());
        let way = AnswerLimits { limit: Some(MAX_TCP_BYTES), seed: seeds.next() };
        match resolver.respond(&mut cache, &message, way, &mut out) {
            MessageAction::Send => {}
            // Whoever sends noise over a connection has lost the thread.
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

/// A message after its length.
async fn receive(stream: &mut BufReader<TcpStream>, message: &mut Vec<u8>) -> std::io::Result<()> {
    let length = stream.read_u16().await?;
    message.resize(usize::from(length), 0);
    stream.read_exact(message).await.map(|_| ())
}
