//! One HTTP exchange with a hook: a new connection to an address that may be called, no redirects, a bounded response.

use bytes::Bytes;
use http::{HeaderValue, Method, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::client::legacy::Error as CallError;

use super::settings::HookSettings;
use crate::outside_call::{client, refused_address};
use crate::tls_client::{self, innermost, place};

/// Largest response, in bytes: a thousand names with reasons fit many times.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Most characters of a response's first line in the log.
const MAX_LINE: usize = 120;

/// A request to a hook.
#[derive(Debug)]
pub(super) struct HookRequest {
    pub(super) method: Method,
    pub(super) url: String,
    /// JSON, or empty.
    pub(super) body: String,
    pub(super) bearer: Option<String>,
}

/// A hook's response.
#[derive(Debug)]
pub(super) struct HookReply {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl HookReply {
    /// The status, as a message. The first line of the response is in the log alone: it may be of a program that answers whoever
    /// reaches it, and the message is shown to everybody who may read the rollout.
    pub(super) fn refusal(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let line: String = text.lines().next().unwrap_or_default().trim().chars().take(MAX_LINE).collect();
        if line.is_empty() {
            format!("status {}", self.status)
        } else {
            tracing::info!(status = self.status, line, "a hook refused its call");
            format!(
                "status {}; the first line of the answer is in the log of the server that leads",
                self.status
            )
        }
    }
}

/// Sends the request and reads the response; connects a second time if the first attempt fails.
pub(super) async fn send(request: &HookRequest, settings: &HookSettings) -> Result<HookReply, String> {
    let uri: Uri =
        request.url.parse().map_err(|error| format!("{} is not a valid URL: {error}", request.url))?;
    let tls = tls_client::config(&uri, settings.ca_file.as_deref()).await?;
    // One for each exchange: calls are rare, and the trusted authorities may change between them.
    let client = client(tls, &settings.addresses);
    let once = || async { client.request(prepared(request, &uri)?).await.map_err(ExchangeError::Call) };
    let answer = match once().await {
        Err(ExchangeError::Call(error)) if error.is_connect() => once().await,
        other => other,
    };
    let answer = answer.map_err(|trouble| trouble.text(&uri))?;
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            "the response is larger than 1 MiB".to_owned()
        } else {
            format!("the response is incomplete: {}", innermost(&*error))
        }
    })?;
    Ok(HookReply { status, body: body.to_bytes() })
}

enum ExchangeError {
    Request(String),
    Call(CallError),
}

impl ExchangeError {
    fn text(self, uri: &Uri) -> String {
        match self {
            Self::Request(reason) => reason,
            Self::Call(error) if error.is_connect() => refused_address(&error)
                .unwrap_or_else(|| format!("cannot connect to {}: {}", place(uri), innermost(&error))),
            Self::Call(error) => format!("no answer: {}", innermost(&error)),
        }
    }
}

fn prepared(request: &HookRequest, uri: &Uri) -> Result<http::Request<Full<Bytes>>, ExchangeError> {
    let mut builder = http::Request::builder().method(request.method.clone()).uri(uri.clone());
    if !request.body.is_empty() {
        builder = builder.header(header::CONTENT_TYPE, "application/json");
    }
    if let Some(token) = &request.bearer {
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let mut value =
            value.map_err(|_| ExchangeError::Request("the token has invalid characters".to_owned()))?;
        value.set_sensitive(true);
        builder = builder.header(header::AUTHORIZATION, value);
    }
    let body = Full::new(Bytes::from(request.body.clone()));
    builder.body(body).map_err(|error| ExchangeError::Request(format!("{uri} is not a valid URL: {error}")))
}
