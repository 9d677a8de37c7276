//! Asking a service over HTTP on this machine: the status that was configured passes, or any
//! success. The body is not read.

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The status by which a service says that too many requests.
const TOO_MANY: u16 = 429;

/// Sends one GET.
pub(super) async fn ask(authority: &str, path: &str, wanted: Option<u16>) -> Result<Option<String>, String> {
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
    let driving = async {
        if let Err(error) = connection.await {
            tracing::trace!(%error, "a check's connection ended");
        }
        // The answer, or its absence, comes out of the sender.
        std::future::pending::<()>().await
    };
    // Dropping the connection when there is an answer is how this ends it.
    let answer = tokio::select! {
        answer = sender.send_request(request) => answer.map_err(failed)?,
        () = driving => return Err("the connection was closed".to_owned()),
    };
    let status = answer.status();
    match wanted {
        Some(wanted) if status.as_u16() != wanted => Err(format!("status {}, not {wanted}", status.as_u16())),
        None if status.as_u16() == TOO_MANY => Ok(Some("too many requests".to_owned())),
        None if !status.is_success() => Err(format!("status {}", status.as_u16())),
        Some(_) | None => Ok(None),
    }
}
