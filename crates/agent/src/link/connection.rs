//! The line: which server is called now, and as whom. Shared by the tasks of the link.

use std::sync::Arc;

use bellwether_api::client::{Access, CallError, Client};
use bellwether_core::local::servers::{KnownServers, LiveServer};
use bellwether_core::words::time::Timestamp;
use tokio::sync::watch;

use super::contact::ServerContact;
use super::server_list::SavedServers;
use crate::identity::Identity;

/// The line to the control plane. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    state: Arc<watch::Sender<ConnectionState>>,
    contact: watch::Sender<ServerContact>,
}

#[derive(Debug)]
struct ConnectionState {
    identity: Identity,
    servers: KnownServers,
    /// The tag of those that were told of.
    tag: String,
    /// Kept while neither server nor identity changes, so that calls share connections.
    client: Option<Client>,
}

impl Connection {
    /// A line to these servers, and those that were told of before. `seed` chooses when a better one is gone to.
    pub(super) fn new(
        identity: Identity,
        (servers, known): (Vec<String>, SavedServers),
        contact: watch::Sender<ServerContact>,
        (seed, now): (u64, Timestamp),
    ) -> Self {
        let me = format!("{}/{}", identity.namespace, identity.node);
        let servers = KnownServers::new(&me, seed, (servers, known.servers), now);
        let state = ConnectionState { identity, servers, tag: known.tag, client: None };
        Self { state: Arc::new(watch::Sender::new(state)), contact }
    }

    /// The client of the server that is called.
    pub(super) fn client(&self) -> Result<Client, CallError> {
        let mut made = Ok(());
        self.state.send_if_modified(|state| {
            if state.client.is_none() {
                match Client::new(&state.access(state.servers.current().to_owned())) {
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

    /// The server that is called answered.
    pub(super) fn answered(&self, now: Timestamp) {
        let server = self.server();
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

    /// It did not: the next one is called.
    pub(super) fn failed(&self, reason: &CallError, now: Timestamp) {
        let server = self.server();
        self.contact.send_modify(|contact| {
            contact.server = server.clone();
            contact.failed(format!("could not {reason}"));
        });
        self.state.send_modify(|state| {
            state.servers.failed(now);
            if state.servers.current() != server {
                let client = state.client.take();
                state.client = client.and_then(|client| client.towards(state.servers.current()).ok());
            }
        });
    }

    /// The tag of the servers that were told of.
    pub(super) fn tag(&self) -> String {
        self.state.borrow().tag.clone()
    }

    /// Takes in which servers have their place now. Answers what is to be kept of it.
    pub(super) fn told(&self, tag: String, in_place: Vec<LiveServer>, now: Timestamp) -> SavedServers {
        self.state.send_modify(|state| {
            state.servers.tell(in_place, now);
            state.tag = tag;
        });
        let state = self.state.borrow();
        SavedServers { tag: state.tag.clone(), servers: state.servers.told().to_vec() }
    }

    /// A better server than the one that is called, if there is one, and from when on it may be gone to.
    pub(super) fn better(&self, now: Timestamp) -> Option<(String, Timestamp)> {
        self.state.borrow().servers.better(now)
    }

    /// A client of that server, to find out whether it answers.
    pub(super) fn towards(&self, server: String) -> Result<Client, CallError> {
        let state = self.state.borrow();
        match &state.client {
            Some(client) => client.towards(&server),
            None => Client::new(&state.access(server)),
        }
    }

    /// It does not.
    pub(super) fn avoid(&self, server: &str, now: Timestamp) {
        self.state.send_modify(|state| state.servers.avoid(server, now));
    }

    /// It does, to this client: it is called from now on.
    pub(super) fn move_to(&self, client: Client) {
        let server = client.server().to_owned();
        self.contact.send_modify(|contact| contact.server.clone_from(&server));
        self.state.send_modify(|state| {
            state.servers.move_to(&server);
            state.client = Some(client);
        });
    }

    fn server(&self) -> String {
        self.state.borrow().servers.current().to_owned()
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

impl ConnectionState {
    fn access(&self, server: String) -> Access {
        Access { server, ca: Some(self.identity.ca.clone()), identity: self.identity.for_client() }
    }
}
