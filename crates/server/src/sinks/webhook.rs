//! One request to a webhook: signed, bounded, without following redirects, and to no address that the rules refuse. What it answers is its
//! status and what that says about the event.

use std::path::PathBuf;
use std::sync::Arc;

use bellwether_api::v1::cloud_event::{CLOUD_EVENT, CloudEvent};
use bellwether_core::decide::sinks::{FailedAttempt, FailureKind};
use bellwether_core::records::sink::Webhook;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::zone::http_date;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Error as CallError;

use super::addresses::AddressRules;
use super::settings::literal_address;
use super::signature::{SigningKey, signature};
use crate::outside_call::{HttpClient, USER_AGENT, client, refused_address};
use crate::tls_client::{self, innermost, place};

/// Largest answer that is read, in bytes: its first line is logged, and the connection is used again once all of it was read.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Most characters of an answer's first line that are logged.
const MAX_LINE: usize = 120;

/// Calls a webhook. It keeps a connection between calls.
#[derive(Debug)]
pub(crate) struct WebhookCaller {
    webhook: Webhook,
    rules: Arc<AddressRules>,
    ca_file: Option<PathBuf>,
    client: Option<HttpClient>,
}

impl WebhookCaller {
    pub(super) const fn new(webhook: Webhook, rules: Arc<AddressRules>, ca_file: Option<PathBuf>) -> Self {
        Self { webhook, rules, ca_file, client: None }
    }

    /// Sends an event. Answers what the receiver said.
    pub(super) async fn send(
        &mut self,
        event: &CloudEvent,
        keys: &[SigningKey],
        now: Timestamp,
    ) -> Result<String, FailedAttempt> {
        let timeout = self.webhook.timeout;
        let sent = tokio::time::timeout(timeout.to_duration(), self.call(event, keys, now)).await;
        let sent = sent
            .unwrap_or_else(|_| Err(failed(FailureKind::Unavailable, format!("no answer within {timeout}"))));
        if sent.is_err() {
            // The next attempt connects anew, and reads the authorities again.
            self.client = None;
        }
        sent
    }

    async fn call(
        &mut self,
        event: &CloudEvent,
        keys: &[SigningKey],
        now: Timestamp,
    ) -> Result<String, FailedAttempt> {
        let own = |reason: String| failed(FailureKind::Own, reason);
        let url = &self.webhook.url;
        let uri: Uri = url.parse().map_err(|error| own(format!("{url} is not a valid URL: {error}")))?;
        if let Some(reason) = literal_address(&uri).and_then(|address| self.rules.refusal(address)) {
            return Err(own(reason));
        }
        let request = request(&self.webhook, &uri, (event, keys), now).map_err(own)?;
        let client = match &self.client {
            Some(client) => client.clone(),
            None => {
                let tls = tls_client::config(&uri, self.ca_file.as_deref()).await.map_err(own)?;
                self.client.insert(client(tls, &self.rules)).clone()
            }
        };
        let answer = client.request(request).await.map_err(|error| unreachable_receiver(&uri, &error))?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        judged(parts.status, &parts.headers, &body, now)
    }
}

fn request(
    webhook: &Webhook,
    uri: &Uri,
    (event, keys): (&CloudEvent, &[SigningKey]),
    now: Timestamp,
) -> Result<http::Request<Full<Bytes>>, String> {
    let body = serde_json::to_vec(event).map_err(|error| format!("cannot encode the event: {error}"))?;
    let seconds = now.as_millis() / 1_000;
    let mut request = http::Request::builder()
        .method(Method::POST)
        .uri(uri.clone())
        .header(header::CONTENT_TYPE, CLOUD_EVENT)
        .header(header::USER_AGENT, USER_AGENT)
        .header("webhook-id", &event.id)
        .header("webhook-timestamp", seconds);
    for (name, value) in &webhook.headers {
        request = request.header(name, value);
    }
    if !keys.is_empty() {
        request = request.header("webhook-signature", signature(keys, &event.id, seconds, &body));
    }
    request.body(Full::new(Bytes::from(body))).map_err(|error| format!("cannot write the request: {error}"))
}

/// A receiver that gave no answer.
fn unreachable_receiver(uri: &Uri, error: &CallError) -> FailedAttempt {
    if let Some(refused) = refused_address(error) {
        return failed(FailureKind::Own, refused);
    }
    let reason = match error.is_connect() {
        true => format!("cannot connect to {}: {}", place(uri), innermost(error)),
        false => format!("no answer: {}", innermost(error)),
    };
    failed(FailureKind::Unavailable, reason)
}

/// What an answer says.
fn judged(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<String, FailedAttempt> {
    let said = format!("status {}", status.as_u16());
    if status.is_success() {
        return Ok(said);
    }
    let kind = match status.as_u16() {
        410 => FailureKind::Gone,
        // None of them says anything about this event: the URL or the rights are wrong, or the receiver is busy.
        300..=399 | 401 | 403 | 404 | 405 | 408 | 421 | 425 | 429 | 502 | 503 | 504 => {
            FailureKind::Unavailable
        }
        _ => FailureKind::Refused,
    };
    let reason = match status.is_redirection() {
        true => format!("{said}: redirects are not followed"),
        false => said,
    };
    log_refusal(status, headers, body);
    let asked = headers.get(header::RETRY_AFTER).and_then(|asked| asked.to_str().ok());
    let retry_after = asked.and_then(|asked| match asked.trim().parse() {
        Ok(seconds) => Some(Span::from_secs(seconds)),
        Err(_) => http_date(asked.trim()).map(|at| at.since(now)),
    });
    Err(FailedAttempt { kind, reason, retry_after })
}

/// What a receiver said is in the log alone: it may be a program that answers whoever reaches it, and the failure is shown to everybody who
/// may read the sink.
fn log_refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) {
    let line = String::from_utf8_lossy(body);
    let line: String = line.lines().next().unwrap_or_default().trim().chars().take(MAX_LINE).collect();
    let location = headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
    tracing::info!(status = status.as_u16(), line, location, "a receiver did not take an event");
}

fn failed(kind: FailureKind, reason: String) -> FailedAttempt {
    FailedAttempt { kind, reason, retry_after: None }
}
