//! One POST whose answer is read piece by piece, as long as it is.

use std::pin::Pin;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use super::{MAX_ANSWER_BYTES, ProbeError, TlsFiles, connect, connect_tls, ended, message, request, unknown};

/// An answer, and the connection that it comes on.
pub(crate) struct StreamedAnswer {
    authority: String,
    body: Incoming,
    /// Drives the connection; `None` once that has ended.
    connection: Option<Connection>,
    /// Without it the connection would be closed.
    _sender: SendRequest<Full<Bytes>>,
}

type Connection = Pin<Box<dyn Future<Output = Result<(), hyper::Error>> + Send>>;

/// Posts a JSON text, and answers once the head of the answer is there.
pub(crate) async fn post_streamed(
    authority: &str,
    tls: Option<&TlsFiles>,
    path: &str,
    body: &str,
) -> Result<StreamedAnswer, ProbeError> {
    let failed = |error: hyper::Error| ended(authority, &error);
    let (mut sender, mut connection): (_, Connection) = match tls {
        None => {
            let stream = connect(authority).await?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
            (sender, Box::pin(connection))
        }
        Some(files) => {
            let stream = connect_tls(authority, files).await?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
            (sender, Box::pin(connection))
        }
    };
    let request = request(authority, path, body)?;
    let mut connection_left = true;
    let answer = {
        let mut asking = std::pin::pin!(sender.send_request(request));
        loop {
            tokio::select! {
                answer = &mut asking => break answer.map_err(failed)?,
                ended = &mut connection, if connection_left => {
                    connection_left = false;
                    ended.map_err(failed)?;
                }
            }
        }
    };
    let status = answer.status();
    let (authority, body) = (authority.to_owned(), answer.into_body());
    let connection = connection_left.then_some(connection);
    let mut answer = StreamedAnswer { authority, body, connection, _sender: sender };
    if status.is_success() {
        return Ok(answer);
    }
    let mut said = Vec::new();
    while let Some(piece) = answer.next().await?
        && said.len() < MAX_ANSWER_BYTES
    {
        said.extend_from_slice(&piece);
    }
    Err(unknown(&answer.authority, format!("status {}: {}", status.as_u16(), message(&said))))
}

impl StreamedAnswer {
    /// The next piece; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ProbeError> {
        loop {
            let Self { authority, body, connection, .. } = self;
            let driven = async {
                match connection {
                    Some(connection) => connection.await,
                    None => std::future::pending().await,
                }
            };
            // Both only wait, and what has come stays in the body.
            tokio::select! {
                biased;
                frame = body.frame() => match frame {
                    None => return Ok(None),
                    Some(Err(error)) => return Err(ended(authority, &error)),
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            return Ok(Some(data));
                        }
                    }
                },
                end = driven => {
                    self.connection = None;
                    end.map_err(|error| ended(&self.authority, &error))?;
                }
            }
        }
    }
}
