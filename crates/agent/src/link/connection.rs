//! The connection: which server is in use, and with which identity. Shared by the tasks of the link.

use std::sync::Arc;

use bellwether_api::client::{Access, CallError, Client};
use bellwether_core::local::servers::{KnownServers, LiveServer};
use bellwether_core::words::time::Timestamp;
use tokio::sync::watch;

use super::contact::ServerContact;
use super::retry::cannot;
use super::server_list::SavedServers;
use super::trust::TrustNews;
use crate::identity::Identity;

/// The connection to the control plane. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    state: Arc<watch::Sender<ConnectionState>>,
    contact: watch::Sender<ServerContact>,
    /// Counts how often the server in use changed.
    moves: watch::Sender<u64>,
    /// What the control plane says of its authorities.
    trust: TrustNews,
}

#[derive(Debug)]
struct ConnectionState {
    identity: Identity,
    servers: KnownServers,
    /// The tag of the advertised servers.
    tag: String,
    /// Reused while neither server nor identity changes, so that calls share connections.
    client: Option<Client>,
}

/// What a connection is made from.
#[derive(Debug)]
pub(crate) struct ConnectionSettings {
    pub(crate) identity: Identity,
    /// The servers of the configuration.
    pub(crate) servers: Vec<String>,
    /// The servers that were advertised to this node before.
    pub(crate) saved: SavedServers,
    pub(crate) contact: watch::Sender<ServerContact>,
    /// Spreads the nodes over the servers, and in time when they move to a better one.
    pub(crate) seed: u64,
    /// The time by the agent's clock.
    pub(crate) now: Timestamp,
}

impl Connection {
    /// A connection to one of the configured or saved servers.
    pub(crate) fn new(settings: ConnectionSettings) -> Self {
        let ConnectionSettings { identity, servers, saved, contact, seed, now } = settings;
        let me = format!("{}/{}", identity.namespace, identity.node);
        let servers = KnownServers::new(&me, seed, servers, saved.servers, now);
        let state = ConnectionState { identity, servers, tag: saved.tag, client: None };
        Self {
            state: Arc::new(watch::Sender::new(state)),
            contact,
            moves: watch::Sender::new(0),
            trust: TrustNews::default(),
        }
    }

    /// The client of the server in use.
    pub(super) fn client(&self) -> Result<Client, CallError> {
        let mut made = Ok(());
        self.state.send_if_modified(|state| {
            if state.client.is_none() {
                match state.new_client(state.servers.current().to_owned()) {
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
            reason: "it has just changed".to_owned(),
        })
    }

    /// Records that the server in use answered.
    pub(super) fn answered(&self, now: Timestamp) {
        let server = self.server();
        self.contact.send_modify(|contact| {
            contact.server = server;
            contact.answered(now);
        });
    }

    /// Records why the catalogue cannot be understood, or `None` when it was again.
    pub(super) fn misread(&self, reason: Option<String>) {
        self.contact.send_modify(|contact| contact.misread = reason);
    }

    /// Records why the order was refused, or `None` when one was accepted.
    pub(super) fn refused(&self, reason: Option<String>) {
        self.contact.send_modify(|contact| contact.refused = reason);
    }

    /// Records that the server in use did not answer, and changes to the next one.
    pub(super) fn failed(&self, error: &CallError, now: Timestamp) {
        let server = self.server();
        self.contact.send_modify(|contact| {
            contact.server = server.clone();
            contact.failed(cannot(error));
        });
        self.state.send_modify(|state| {
            state.servers.failed(now);
            if state.servers.current() != server {
                let client = state.client.take();
                state.client = client.and_then(|client| client.towards(state.servers.current()).ok());
            }
        });
        if self.server() != server {
            self.moved();
        }
    }

    /// The tag of the advertised servers.
    pub(super) fn tag(&self) -> String {
        self.state.borrow().tag.clone()
    }

    /// Takes in which servers are live. Returns what to save of it.
    pub(super) fn advertised(&self, tag: String, live: Vec<LiveServer>, now: Timestamp) -> SavedServers {
        self.state.send_modify(|state| {
            state.servers.update(live, now);
            state.tag = tag;
        });
        let state = self.state.borrow();
        SavedServers { tag: state.tag.clone(), servers: state.servers.advertised().to_vec() }
    }

    /// A better server than the one in use, if there is one, and the time from which on to move to it.
    pub(super) fn better(&self, now: Timestamp) -> Option<(String, Timestamp)> {
        self.state.borrow().servers.better(now)
    }

    /// A client of that server, to probe whether it answers.
    pub(super) fn towards(&self, server: String) -> Result<Client, CallError> {
        let state = self.state.borrow();
        match &state.client {
            Some(client) => client.towards(&server),
            None => state.new_client(server),
        }
    }

    /// Records that the probed server did not answer.
    pub(super) fn avoid(&self, server: &str, now: Timestamp) {
        self.state.send_modify(|state| state.servers.avoid(server, now));
    }

    /// Changes to the server of this client, which answered.
    pub(super) fn move_to(&self, client: Client) {
        let server = client.server().to_owned();
        self.contact.send_modify(|contact| contact.server.clone_from(&server));
        self.state.send_modify(|state| {
            state.servers.move_to(&server);
            state.client = Some(client);
        });
        self.moved();
    }

    /// Changes when another server is used.
    pub(super) fn moves(&self) -> watch::Receiver<u64> {
        self.moves.subscribe()
    }

    fn moved(&self) {
        self.moves.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn server(&self) -> String {
        self.state.borrow().servers.current().to_owned()
    }

    /// Waits until another certificate is in use than that of this identity, or others are trusted, and answers the new one. Cancel safe.
    pub(crate) async fn renewed_from(&self, before: &Identity) -> Option<Identity> {
        let mut states = self.state.subscribe();
        let is_new = |state: &ConnectionState| {
            state.identity.certificate != before.certificate || state.identity.ca != before.ca
        };
        let state = states.wait_for(is_new).await;
        state.ok().map(|state| state.identity.clone())
    }

    /// The identity in use.
    pub(crate) fn identity(&self) -> Identity {
        self.state.borrow().identity.clone()
    }

    /// What the control plane says of its authorities.
    pub(super) const fn trust(&self) -> &TrustNews {
        &self.trust
    }

    /// Waits until the authorities of this version are trusted. Cancel safe.
    pub(super) async fn trusts(&self, version: u64) {
        let mut states = self.state.subscribe();
        // The sender lives as long as this.
        drop(states.wait_for(|state| state.identity.trusted_version() >= version).await);
    }

    /// Uses `identity` from now on.
    pub(crate) fn renewed(&self, identity: Identity) {
        self.state.send_modify(|state| {
            state.identity = identity;
            state.client = None;
        });
    }
}

impl ConnectionState {
    fn new_client(&self, server: String) -> Result<Client, CallError> {
        let Identity { node, ca, is_logical, .. } = &self.identity;
        let access = Access { server, ca: Some(ca.clone()), identity: self.identity.for_client() };
        let client = Client::new(&access)?;
        // Only a server that is up to date may say that a logical node is still hosted here.
        if *is_logical { client.consistent().acting_as(node.as_str()) } else { Ok(client) }
    }
}
