//! What is known of the contact with the control plane, for a person at the machine.

use bellwether_core::words::time::Timestamp;

/// The contact with the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerContact {
    /// The server that is called, or was last.
    pub(crate) server: String,
    /// Since when it answers; `None` while it does not.
    pub(crate) connected_since: Option<Timestamp>,
    /// When it last answered, by the agent's clock.
    pub(crate) last_contact: Option<Timestamp>,
    /// Why the last call got no answer.
    pub(crate) trouble: Option<String>,
    /// Why its catalogue was not understood, when it last was not.
    pub(crate) misread: Option<String>,
    /// Why its order was not taken, when it last was not.
    pub(crate) refused: Option<String>,
}

impl ServerContact {
    /// It answered.
    pub(crate) fn answered(&mut self, now: Timestamp) {
        self.connected_since.get_or_insert(now);
        self.last_contact = Some(now);
        self.trouble = None;
    }

    /// It did not.
    pub(crate) fn failed(&mut self, reason: String) {
        self.connected_since = None;
        self.trouble = Some(reason);
    }
}
