//! One POST to a data store's HTTP interface, with a limit on the answer.

pub(crate) mod stream;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::address::{broken, connect};
use super::answer::{MAX_ANSWER_BYTES, ProbeError};
use super::tls::connect_tls;
use crate::config::data_store::TlsFiles;

/// Posts a JSON text and answers the body as JSON.
pub(crate) async fn post(
    authority: &str,
    tls: Option<&TlsFiles>,
    path: &str,
    body: &str,
) -> Result<serde_json::Value, ProbeError> {
    match tls {
        Some(files) => {
            send(connect_tls(authority, files).await?, authority, request(authority, path, body)?).await
        }
        None => send(connect(authority).await?, authority, request(authority, path, body)?).await,
    }
}

/// Gets a path without TLS and answers the body as JSON.
pub(crate) async fn get(authority: &str, path: &str) -> Result<serde_json::Value, ProbeError> {
    let request = ::http::Request::get(path)
        .header(::http::header::HOST, authority)
        .header(::http::header::USER_AGENT, "bellwether-agent")
        .header(::http::header::CONNECTION, "close")
        .body(Full::new(Bytes::new()))
        .map_err(|error| ProbeError::Unknown(error.to_string()))?;
    send(connect(authority).await?, authority, request).await
}

fn request(authority: &str, path: &str, body: &str) -> Result<::http::Request<Full<Bytes>>, ProbeError> {
    ::http::Request::post(path)
        .header(::http::header::HOST, authority)
        .header(::http::header::CONTENT_TYPE, "application/json")
        .header(::http::header::USER_AGENT, "bellwether-agent")
        .header(::http::header::CONNECTION, "close")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .map_err(|error| ProbeError::Unknown(error.to_string()))
}

async fn send<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    authority: &str,
    request: ::http::Request<Full<Bytes>>,
) -> Result<serde_json::Value, ProbeError> {
    let failed = |error: hyper::Error| ended(authority, &error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let asking = async {
        let answer = sender.send_request(request).await.map_err(failed)?;
        let status = answer.status();
        let limited = Limited::new(answer.into_body(), MAX_ANSWER_BYTES);
        let bytes =
            limited.collect().await.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
                Some(_) => ProbeError::Unknown(format!(
                    "{authority}: the answer has more than {MAX_ANSWER_BYTES} bytes"
                )),
                None => match error.downcast_ref::<hyper::Error>() {
                    Some(error) => ended(authority, error),
                    None => unknown(authority, error),
                },
            })?;
        let bytes = bytes.to_bytes();
        if !status.is_success() {
            let text = message(&bytes);
            return Err(ProbeError::Unknown(format!("{authority}: status {}: {text}", status.as_u16())));
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| ProbeError::Unknown(format!("{authority}: not JSON: {error}")))
    };
    // The connection is driven beside the request, and dropped with it.
    let mut connection = std::pin::pin!(connection);
    let mut asking = std::pin::pin!(asking);
    let mut driven = false;
    loop {
        tokio::select! {
            answer = &mut asking => return answer,
            ended = &mut connection, if !driven => {
                driven = true;
                if let Err(error) = &ended {
                    return Err(self::ended(authority, error));
                }
            }
        }
    }
}

/// What an answer with an error says: the message that is in it, if it is JSON.
pub(super) fn message(bytes: &[u8]) -> String {
    let json = serde_json::from_slice::<serde_json::Value>(bytes).ok();
    let message =
        json.as_ref().and_then(|json| ["message", "error"].iter().find_map(|key| json.get(key)?.as_str()));
    message.map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), str::to_owned)
}

/// What the end of a connection says: one that is closed in the middle of an answer broke off.
fn ended(authority: &str, error: &hyper::Error) -> ProbeError {
    let of_system =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    match of_system {
        Some(error) => broken(authority, error),
        None if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
            ProbeError::Broken(format!("{authority}: {error}"))
        }
        None => unknown(authority, error),
    }
}

fn unknown(authority: &str, error: impl std::fmt::Display) -> ProbeError {
    ProbeError::Unknown(format!("{authority}: {error}"))
}
