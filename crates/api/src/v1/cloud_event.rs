//! Events as sinks send them: CloudEvents 1.0 in the structured mode of their JSON format.

use bellwether_core::words::time::Timestamp;
use bellwether_core::words::zone::rfc3339;
use serde::{Deserialize, Serialize};

use super::event::Event;

/// Media type of an event.
pub const CLOUD_EVENT: &str = "application/cloudevents+json";

/// Version of the specification.
const VERSION: &str = "1.0";

/// What the type of every event begins with.
const TYPE: &str = "bellwether.";

/// An event as a receiver gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudEvent {
    /// Version of the specification.
    pub specversion: String,
    /// Identifier of the event, unique in its source, and the same each time that the event is sent.
    pub id: String,
    /// The installation and the namespace.
    pub source: String,
    /// `bellwether.` and the kind of the event.
    #[serde(rename = "type")]
    pub kind: String,
    /// The object that changed.
    pub subject: String,
    /// Time of the event by RFC 3339.
    pub time: String,
    /// Media type of `data`.
    pub datacontenttype: String,
    /// The namespace.
    pub namespace: String,
    /// Number of the event in its namespace, with as many digits as to be in order as a text.
    pub sequence: String,
    /// Identifier of the event that led to it, as in the extension for correlation; absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causationid: Option<String>,
    /// The event, as the API answers it.
    pub data: Event,
}

impl CloudEvent {
    /// The event of a namespace of an installation.
    #[must_use]
    pub fn of(installation: &str, namespace: &str, event: Event) -> Self {
        Self {
            specversion: VERSION.to_owned(),
            id: format!("{namespace}-{}", event.seq),
            source: format!("/bellwether/{installation}/namespaces/{namespace}"),
            kind: format!("{TYPE}{}", event.kind),
            subject: event.subject.clone(),
            time: rfc3339(Timestamp::from_millis(event.time_ms)),
            datacontenttype: "application/json".to_owned(),
            namespace: namespace.to_owned(),
            sequence: format!("{:020}", event.seq),
            causationid: event.caused_by.map(|cause| format!("{namespace}-{cause}")),
            data: event,
        }
    }
}
