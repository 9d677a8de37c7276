//! The receiver of a sink: a webhook or a file.

use bellwether_api::list::JsonRow;
use bellwether_api::list::tables::EVENTS;
use bellwether_api::v1::cloud_event::CloudEvent;
use bellwether_api::v1::event::Event;
use bellwether_core::decide::sinks::{FailedAttempt, FailureKind, may_have};
use bellwether_core::records::sink::{Sink, SinkTarget};
use bellwether_core::words::name::Namespace;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;

use super::file::FileAppender;
use super::settings::SinkSettings;
use super::signature::keys;
use super::webhook::WebhookCaller;
use crate::secrets::keyring::Keyring;
use crate::secrets::provider::Providers;

/// What sends events to receivers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendingContext<'a> {
    /// Addresses and directories.
    pub(crate) settings: &'a SinkSettings,
    /// The keys of secrets.
    pub(crate) keyring: &'a Keyring,
    /// The programs that have other secrets.
    pub(crate) providers: &'a Providers,
    /// The namespace of the sink.
    pub(crate) namespace: &'a Namespace,
}

/// The receiver of a sink.
#[derive(Debug)]
pub(crate) enum Receiver {
    /// An HTTP endpoint.
    Webhook(Box<WebhookCaller>),
    /// A file.
    File(FileAppender),
}

impl Receiver {
    /// The receiver of a sink.
    pub(crate) fn of(sink: &Sink, context: SendingContext<'_>) -> Self {
        let SinkSettings { directory, addresses, ca_file } = context.settings;
        match &sink.target {
            SinkTarget::Webhook(webhook) => Self::Webhook(Box::new(WebhookCaller::new(
                webhook.clone(),
                addresses.clone(),
                ca_file.clone(),
            ))),
            SinkTarget::File(file) => {
                Self::File(FileAppender::new(directory.as_deref(), context.namespace, file.clone()))
            }
        }
    }

    /// Sends an event. Answers what the receiver said.
    pub(crate) async fn send(
        &mut self,
        context: SendingContext<'_>,
        world: &World,
        (sink, event): (&Sink, &CloudEvent),
        now: Timestamp,
    ) -> Result<String, FailedAttempt> {
        let own = |reason| FailedAttempt { kind: FailureKind::Own, reason, retry_after: None };
        match self {
            Self::File(file) => file.send(event).await.map_err(own),
            Self::Webhook(caller) => {
                let fleet = world.fleets.get(context.namespace);
                let fleet = fleet.ok_or_else(|| own("the namespace does not exist".to_owned()))?;
                let secrets = (context.keyring, context.providers);
                let keys = keys(secrets, (fleet, context.namespace), sink).await.map_err(own)?;
                caller.send(event, &keys, now).await
            }
        }
    }

    /// Has what was sent survive a loss of power of this machine.
    pub(crate) async fn sync(&self) -> std::io::Result<()> {
        match self {
            Self::Webhook(_) => Ok(()),
            Self::File(file) => file.sync().await,
        }
    }
}

/// Whether an event is for a sink.
pub(crate) fn is_for(sink: &Sink, event: &Event, now: Timestamp) -> bool {
    may_have(&sink.name, &event.subject)
        && (sink.filter == bellwether_core::words::filter::Filter::all()
            || JsonRow::new(event, &EVENTS, now).is_ok_and(|row| sink.filter.matches(&row)))
}
