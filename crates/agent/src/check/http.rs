//! Asking a service over HTTP on this machine: the status that was configured passes, or any
//! success. Of the body, only the beginning is read, and only of a response that fails.

use std::time::Duration;

use bellwether_rt::observed;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::failure::ProbeFailure;
use crate::apply::output::visible;

/// Most of the body of a response that fails, in bytes: enough for its reason.
const MAX_BODY_BYTES: usize = 1_024;

/// Part of the limit of a probe for which the body of a response that fails is awaited.
const BODY_SHARE: u32 = 4;

/// The status by which a service says that too many requests.
const TOO_MANY: u16 = 429;

/// Sends one GET.
pub(super) async fn ask(
    (authority, path): (&str, &str),
    wanted: Option<u16>,
    limit: Duration,
) -> Result<Option<String>, ProbeFailure> {
    let stream = TcpStream::connect(authority).await;
    let stream = stream.map_err(|error| format!("connect to {authority}: {error}"))?;
    let failed = |error: hyper::Error| format!("ask {authority}: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let request = ::http::Request::get(path)
        .header(::http::header::HOST, authority)
        .header(::http::header::USER_AGENT, "bellwether-agent")
        .header(::http::header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let mut driving = std::pin::pin!(async {
        if let Err(error) = connection.await {
            tracing::trace!(%error, "a check's connection ended");
        }
        // The answer, or its absence, comes out of the sender.
        std::future::pending::<()>().await
    });
    // Dropping the connection when there is an answer is how this ends it.
    let answer = tokio::select! {
        answer = sender.send_request(request) => answer.map_err(failed)?,
        () = &mut driving => return Err("the connection was closed".to_owned().into()),
    };
    let status = answer.status();
    let message = match wanted {
        Some(wanted) if status.as_u16() != wanted => format!("status {}, not {wanted}", status.as_u16()),
        None if status.as_u16() == TOO_MANY => return Ok(Some("too many requests".to_owned())),
        None if !status.is_success() => format!("status {}", status.as_u16()),
        Some(_) | None => return Ok(None),
    };
    let mut body = Vec::new();
    // Both arms only read and may be dropped: what was read until then is there.
    tokio::select! {
        read = observed::timeout(limit / BODY_SHARE, beginning(answer.into_body(), &mut body)) => {
            if read.is_err() {
                tracing::trace!(authority, "the body of a failing response is cut off");
            }
        }
        () = driving => {}
    }
    Err(ProbeFailure { message, said: visible(&body) })
}

/// Reads the beginning of a body.
async fn beginning(mut body: Incoming, into: &mut Vec<u8>) {
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let room = MAX_BODY_BYTES.saturating_sub(into.len());
        into.extend(data.iter().take(room));
        if into.len() >= MAX_BODY_BYTES {
            return;
        }
    }
}
