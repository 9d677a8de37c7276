//! The line: which server is called now, and as whom. Shared by the tasks of the link.

use std::sync::Arc;

use bellwether_api::client::{Access, CallError, Client};
use bellwether_core::words::time::Timestamp;
use tokio::sync::watch;

use super::contact::Contact;
use crate::identity::Identity;

/// The line to the control plane. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Line {
    state: Arc<watch::Sender<State>>,
    contact: watch::Sender<Contact>,
}

#[derive(Debug)]
struct State {
    identity: Identity,
    servers: Vec<String>,
    /// Which of them is called, counted past the end.
    turn: usize,
    /// Kept while neither server nor identity changes, so that calls share connections.
    client: Option<Client>,
}

impl Line {
    /// A line to these servers. `seed` chooses which is called first, so that a fleet spreads over them.
    pub(super) fn new(
        identity: Identity,
        servers: Vec<String>,
        contact: watch::Sender<Contact>,
        seed: u64,
    ) -> Self {
        let turn = usize::try_from(seed >> 33).unwrap_or_default();
        let state = State { identity, servers, turn, client: None };
        Self { state: Arc::new(watch::Sender::new(state)), contact }
    }

    /// The client of the server whose turn it is.
    pub(super) fn client(&self) -> Result<Client, CallError> {
        let mut made = Ok(());
        self.state.send_if_modified(|state| {
            if state.client.is_none() {
                match Client::new(&state.access()) {
                    Ok(client) => state.client = Some(client),
                    Err(error) => made = Err(error),
                }
            }
            false
        });
        made?;
        let state = self.state.borrow();
        state.client.clone().ok_or_else(|| CallError::Setup {
            what: "the server address".to_owned(),
            reason: "it changed just now".to_owned(),
        })
    }

    /// The server whose turn it is answered.
    pub(super) fn answered(&self, now: Timestamp) {
        let server = self.state.borrow().server();
        self.contact.send_modify(|contact| {
            contact.server = server;
            contact.answered(now);
        });
    }

    /// The catalogue that it sent could not be understood, for this reason; or it was understood again.
    pub(super) fn misread(&self, reason: Option<String>) {
        self.contact.send_modify(|contact| contact.misread = reason);
    }

    /// The order that it sent was refused, for this reason; or one was taken.
    pub(super) fn refused(&self, reason: Option<String>) {
        self.contact.send_modify(|contact| contact.refused = reason);
    }

    /// It did not: the next one's turn.
    pub(super) fn failed(&self, reason: &CallError) {
        let server = self.state.borrow().server();
        self.contact.send_modify(|contact| {
            contact.server = server;
            contact.failed(format!("could not {reason}"));
        });
        self.state.send_modify(|state| {
            if state.servers.len() > 1 {
                state.turn = state.turn.wrapping_add(1);
                state.client = None;
            }
        });
    }

    /// Who is calling.
    pub(super) fn identity(&self) -> Identity {
        self.state.borrow().identity.clone()
    }

    /// Calls as `identity` from now on.
    pub(super) fn renewed(&self, identity: Identity) {
        self.state.send_modify(|state| {
            state.identity = identity;
            state.client = None;
        });
    }
}

impl State {
    fn server(&self) -> String {
        let index = self.turn.checked_rem(self.servers.len()).unwrap_or_default();
        self.servers.get(index).cloned().unwrap_or_default()
    }

    fn access(&self) -> Access {
        Access {
            server: self.server(),
            ca: Some(self.identity.ca.clone()),
            identity: self.identity.for_client(),
        }
    }
}
