//! The connections of a client: TCP and TLS, with the times after which a server counts as gone.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tower_service::Service;

use super::tls;

/// Pooled connections, and requests over them.
pub(super) type Http = legacy::Client<Connector, Full<Bytes>>;

/// Interval of pings on a connection, and time for the answer to one: a broken connection is noticed within
/// their sum. A server declares a node unreachable if it has not received anything from it for 14 s.
const PINGS: Pings = Pings { every: Duration::from_secs(6), deadline: Duration::from_secs(5) };

/// The same for a client of several servers: the next one is to answer within the deadline of the call.
const PINGS_OF_SEVERAL: Pings = Pings { every: Duration::from_secs(2), deadline: Duration::from_secs(3) };

/// Longest time to connect over TCP. TLS has no limit of its own: a server answers a whole fleet one handshake after the other.
const TCP_LIMIT: Duration = Duration::from_secs(5);

/// Longest time to connect to one of two servers, TLS included, and half of the usual deadline of a call; with more servers each
/// has its share of it.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Shortest limit: a handshake on a busy machine.
const SHORTEST_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
struct Pings {
    every: Duration,
    deadline: Duration,
}

/// Connections by this TLS configuration for a client of so many servers.
pub(super) fn http(tls: rustls::ClientConfig, servers: usize) -> Http {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(Duration::from_secs(15)));
    tcp.set_connect_timeout(Some(TCP_LIMIT));
    let is_machine = tls.alpn_protocols.iter().any(|protocol| protocol == tls::MACHINE);
    let limit = connect_limit(servers);
    let pings = if limit.is_some() { PINGS_OF_SEVERAL } else { PINGS };
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(90))
        .http2_keep_alive_interval(pings.every)
        .http2_keep_alive_timeout(pings.deadline)
        // The server does not ping agents; their requests show that they are alive.
        .http2_keep_alive_while_idle(is_machine)
        .build(Connector { inner: HttpsConnector::from((tcp, tls)), limit })
}

/// Longest time to connect to one server when there are others.
fn connect_limit(servers: usize) -> Option<Duration> {
    let others = u32::try_from(servers).ok()?.checked_sub(1).filter(|others| *others > 0)?;
    Some((CONNECT_LIMIT * 2 / (others + 1)).clamp(SHORTEST_LIMIT, CONNECT_LIMIT))
}

/// Connects to a server, within a limit if there is one.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    inner: HttpsConnector<HttpConnector>,
    limit: Option<Duration>,
}

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type ConnectError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.inner.call(uri);
        let Some(limit) = self.limit else { return Box::pin(connecting) };
        Box::pin(async move {
            let connected = tokio::time::timeout(limit, connecting).await;
            connected.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_servers_share_the_deadline_of_a_call() {
        let limits = [1, 2, 3, 5, 9].map(connect_limit);
        let seconds = limits.map(|limit| limit.map(|limit| limit.as_secs()));
        assert_eq!(seconds, [None, Some(5), Some(3), Some(2), Some(2)]);
    }
}
