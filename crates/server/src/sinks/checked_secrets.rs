//! The secrets of a sink that were read before there was an event to sign: which they were, and when they are read again.

use bellwether_core::records::sink::{Sink, SinkTarget};
use bellwether_core::words::counter::{Revision, SinkRevision};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::fleet::Fleet;

/// Time until secrets are read again that cannot sign: a provider may have another value, of which nobody tells.
const AGAIN: Span = Span::from_secs(60);

/// The secrets that were read.
#[derive(Debug)]
pub(super) struct CheckedSecrets {
    sink: SinkRevision,
    secrets: Vec<Option<Revision>>,
    /// When they are read again; `None` if they can sign.
    pub(super) again: Option<Timestamp>,
}

impl CheckedSecrets {
    /// Those of a sink as they are now; `failed` is when they could not sign.
    pub(super) fn of(fleet: &Fleet, sink: &Sink, failed: Option<Timestamp>) -> Self {
        Self { sink: sink.revision, secrets: revisions(fleet, sink), again: failed.map(|at| at.plus(AGAIN)) }
    }

    /// Whether what was found still counts.
    pub(super) fn is_fresh(&self, fleet: &Fleet, sink: &Sink, now: Timestamp) -> bool {
        self.again.is_none_or(|at| at > now)
            && self.sink == sink.revision
            && self.secrets == revisions(fleet, sink)
    }
}

fn revisions(fleet: &Fleet, sink: &Sink) -> Vec<Option<Revision>> {
    let SinkTarget::Webhook(webhook) = &sink.target else { return Vec::new() };
    webhook.secrets.iter().map(|name| fleet.secrets.get(name).map(|kept| kept.revision)).collect()
}
