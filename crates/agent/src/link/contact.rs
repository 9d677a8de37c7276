//! The contact with the control plane, for the local status.

use bellwether_core::words::time::Timestamp;

/// The contact with the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerContact {
    /// The server in use.
    pub(crate) server: String,
    /// Since when it answers; `None` while it does not.
    pub(crate) connected_since: Option<Timestamp>,
    /// When it last answered, by the agent's clock.
    pub(crate) last_contact: Option<Timestamp>,
    /// Why the last call failed.
    pub(crate) trouble: Option<String>,
    /// Why the last catalogue update cannot be understood, if it could not.
    pub(crate) misread: Option<String>,
    /// Why the last order was refused, if it was.
    pub(crate) refused: Option<String>,
}

impl ServerContact {
    /// Records an answer.
    pub(crate) fn answered(&mut self, now: Timestamp) {
        self.connected_since.get_or_insert(now);
        self.last_contact = Some(now);
        self.trouble = None;
    }

    /// Records a failed call.
    pub(crate) fn failed(&mut self, reason: String) {
        self.connected_since = None;
        self.trouble = Some(reason);
    }
}
