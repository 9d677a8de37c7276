//! Sinks of events: requests, answers and stored records.

mod desired;
pub mod state;

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::sink as core;
use bellwether_core::words::counter::SinkRevision;
use bellwether_core::words::filter::Filter;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use self::state::SinkStatus;
use super::labels::{labels_in, labels_out};
use crate::shape::{ShapeError, read, some_object};

/// Request to create a sink, or to change one. It has a webhook or a file. Absent fields take their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SinkSpec {
    /// Filter of the events. Default `all`.
    #[schema(example = "kind = rollout.failed or kind = node.unreachable")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// An HTTP endpoint that receives each event in a request of its own.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub webhook: Option<WebhookSpec>,
    /// A file on the machine of the server that leads, to which each event is appended as a line.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub file: Option<SinkFileSpec>,
    /// Whether nothing is sent. Events wait for as long as they are kept. Default false.
    #[schema(example = false)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Reason for the change, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// An HTTP endpoint that receives events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookSpec {
    /// URL, `http` or `https`. Whoever may get the sink sees it.
    #[schema(example = "https://receiver.example/events")]
    pub url: String,
    /// Names of secrets of the namespace that sign each request, at most two; each has `sink/NAME` among its readers. Unsigned if absent.
    #[schema(example = json!(["audit/key"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Headers that are sent with each request, at most 16. They are no place for secrets: whoever may get the sink sees them.
    #[schema(example = json!({"x-team": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Time limit of one request, `100ms` to `60s`. Default `10s`.
    #[schema(example = "10s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Refusals of one event after which it is a dead letter, 1 to 1,000. Default 20.
    #[schema(example = 20)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Age of an event from which an attempt that fails is the last one, `1s` to `7d`. Default `24h`.
    #[schema(example = "24h")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<String>,
}

/// A file that receives events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SinkFileSpec {
    /// Path below the directory of the namespace, which is in the directory that the configuration of the server names.
    #[schema(example = "events.jsonl")]
    pub path: String,
    /// Size after which another file is begun, in bytes, 65,536 to 17,179,869,184. Default 67,108,864.
    #[schema(example = 67_108_864)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Number of older files that are kept, as `PATH.1`, `PATH.2` and so on, 0 to 100. Default 4.
    #[schema(example = 4)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
}

/// A sink, as it is sent and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Sink {
    /// Its name.
    pub name: String,
    /// Number of its last change, from 1.
    pub revision: u64,
    /// Filter of the events.
    pub filter: String,
    /// The HTTP endpoint that receives the events; absent with a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<Webhook>,
    /// The file that receives the events; absent with a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<SinkFile>,
    /// Whether a person disabled it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How far it is; only in answers, and never stored with the sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SinkStatus>,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// Reason that was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The HTTP endpoint of a sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Webhook {
    /// Its URL.
    pub url: String,
    /// Names of the secrets that sign each request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Headers that are sent with each request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Time limit of one request, in milliseconds.
    pub timeout_ms: u64,
    /// Refusals of one event after which it is a dead letter.
    pub attempts: u32,
    /// Age of an event from which an attempt that fails is the last one, in milliseconds.
    pub max_age_ms: u64,
}

/// The file of a sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkFile {
    /// Path below the directory of the namespace.
    pub path: String,
    /// Size after which another file is begun, in bytes.
    pub max_bytes: u64,
    /// Number of older files that are kept.
    pub keep: u32,
}

/// Request to enable a sink, or to disable it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnableSink {
    /// Whether it sends events. A sink that stopped because its receiver is gone sends again.
    pub enabled: bool,
    /// Reason for the change, recorded in its event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Request to send events again: those from a number on, or the dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayEvents {
    /// Number of the first event that is sent again; all after it are, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Whether the dead letters are sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dead_letters: bool,
    /// Reason, recorded in the event.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What became of a test event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkTest {
    /// Whether it was delivered.
    pub delivered: bool,
    /// What the receiver answered, or why there is no answer.
    pub answer: String,
    /// How long that took, in milliseconds.
    pub took_ms: u64,
    /// Identifier of the test event, as the receiver got it.
    pub id: String,
}

/// What a sink is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredSink {
    /// Where the events go.
    pub target: core::SinkTarget,
    /// Filter of the events.
    pub filter: Filter,
    /// Whether nothing is sent.
    pub disabled: bool,
    /// Reason for the change.
    pub reason: String,
}

impl Sink {
    /// The request that would make this sink.
    #[must_use]
    pub fn spec(&self) -> SinkSpec {
        let webhook = self.webhook.clone().map(|webhook| WebhookSpec {
            url: webhook.url,
            secrets: webhook.secrets,
            headers: webhook.headers,
            timeout: Some(Span::from_millis(webhook.timeout_ms).to_string()),
            attempts: Some(webhook.attempts),
            max_age: Some(Span::from_millis(webhook.max_age_ms).to_string()),
        });
        let file = self.file.clone().map(|file| SinkFileSpec {
            path: file.path,
            max_bytes: Some(file.max_bytes),
            keep: Some(file.keep),
        });
        SinkSpec {
            filter: Some(self.filter.clone()),
            webhook,
            file,
            disabled: self.disabled,
            reason: String::new(),
        }
    }
}

impl From<&core::Sink> for Sink {
    fn from(from: &core::Sink) -> Self {
        let (webhook, file) = match &from.target {
            core::SinkTarget::Webhook(webhook) => {
                let webhook = Webhook {
                    url: webhook.url.clone(),
                    secrets: webhook.secrets.iter().map(ToString::to_string).collect(),
                    headers: webhook.headers.clone(),
                    timeout_ms: webhook.timeout.as_millis(),
                    attempts: webhook.attempts,
                    max_age_ms: webhook.max_age.as_millis(),
                };
                (Some(webhook), None)
            }
            core::SinkTarget::File(file) => {
                let file = SinkFile { path: file.path.clone(), max_bytes: file.max_bytes, keep: file.keep };
                (None, Some(file))
            }
        };
        Self {
            name: from.name.to_string(),
            revision: from.revision.get(),
            filter: from.filter.to_string(),
            webhook,
            file,
            disabled: from.disabled,
            labels: labels_out(&from.labels),
            status: None,
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        }
    }
}

impl TryFrom<Sink> for core::Sink {
    type Error = ShapeError;
    fn try_from(from: Sink) -> Result<Self, ShapeError> {
        let desired = from.spec().desired()?;
        Ok(Self {
            name: read("name", &from.name)?,
            revision: SinkRevision::new(from.revision),
            target: desired.target,
            filter: desired.filter,
            disabled: from.disabled,
            labels: labels_in(&from.labels)?,
            annotation: Annotation {
                by: read("by", &from.by)?,
                reason: from.reason,
                at: Timestamp::from_millis(from.at_ms),
            },
        })
    }
}
