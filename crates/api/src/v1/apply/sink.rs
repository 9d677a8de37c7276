//! Documents of sinks.

use std::collections::BTreeMap;

use bellwether_core::records::sink as core;
use serde::{Deserialize, Serialize};

use super::ignored::Ignored;
use super::schema;
use crate::shape::some_object;
use crate::v1::sink::{Sink, SinkFileSpec, SinkSpec, WebhookSpec};

/// The desired state of a sink of events. It has a webhook or a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SinkDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::sink, required)]
    pub kind: Ignored,
    /// Sink name, a DNS label.
    #[schema(example = "audit")]
    pub name: String,
    /// Namespace of the sink. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Filter of the events. Default `all`.
    #[schema(example = "kind = rollout.failed or kind = node.unreachable")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// An HTTP endpoint that receives each event in a request of its own.
    #[schema(example = json!({"url": "https://receiver.example/events", "secrets": ["audit/key"]}))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub webhook: Option<WebhookSpec>,
    /// A file on the machine of the server that leads, to which each event is appended as a line.
    #[schema(example = json!({"path": "events.jsonl"}))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_object")]
    pub file: Option<SinkFileSpec>,
    /// Whether nothing is sent. Events wait for as long as they are kept. Default false.
    #[schema(example = false)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Reason for the change, recorded in its event; it is not compared.
    #[schema(example = "asked for by the auditors")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

impl SinkDocument {
    /// The document of a sink.
    #[must_use]
    pub fn of(sink: &core::Sink) -> Self {
        let shape = Sink::from(sink);
        let SinkSpec { filter, webhook, file, disabled, .. } = shape.spec();
        Self { name: shape.name, labels: shape.labels, filter, webhook, file, disabled, ..Self::default() }
    }

    /// The sink that the document sets.
    #[must_use]
    pub fn spec(&self) -> SinkSpec {
        SinkSpec {
            filter: self.filter.clone(),
            webhook: self.webhook.clone(),
            file: self.file.clone(),
            disabled: self.disabled,
            reason: self.reason.clone(),
        }
    }
}
