//! Nodes: machines that run an agent. The node is written by operations and when it joins; its presence only
//! by the liveness decider, which every server runs for the nodes that hold sessions with it, and the leader
//! for the nodes of servers that are gone.

use alloc::string::String;
use alloc::vec::Vec;

use crate::access::NamePattern;
use crate::records::annotation::Annotation;
use crate::records::authorities::NodeTrust;
use crate::words::counter::RescanNumber;
use crate::words::label::Labels;
use crate::words::name::{ClusterName, NodeName, ServerName, ServiceName};
use crate::words::percent::Amount;
use crate::words::time::Timestamp;

/// A machine that runs an agent, as operations and its join describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name of the node, unique in its namespace.
    pub name: NodeName,
    /// Labels that selectors match, besides the name.
    pub labels: Labels,
    /// Time of its last join, by the server's clock.
    pub joined_at: Timestamp,
    /// SHA-256 of its current client certificate's public key, lower-case hex. Only a client with this key, or the next one,
    /// acts as the node.
    pub key_fingerprint: String,
    /// The same of the key that its certificate was renewed for, until it shows that one: then it is the current one. Both act as
    /// the node until then, since the answer to the renewal may not have arrived.
    pub next_key_fingerprint: Option<String>,
    /// Which authorities it knows; `None` if there has only been the one that the installation was founded with.
    pub trust: Option<NodeTrust>,
    /// Pause of this node by a person; rollouts never change it.
    pub pause: Option<Annotation>,
    /// Cordon or drain of this node by a person.
    pub cordon: Option<Cordon>,
    /// Who decommissioned it, when and why. A decommissioned node is excluded from all counts and may not
    /// connect.
    pub decommissioned: Option<Annotation>,
    /// Number of the last rescan of its facts that a person requested; zero if nobody did.
    pub rescan: RescanNumber,
    /// The cluster whose manager it is: a logical node, which another node's agent hosts; `None` for a machine.
    pub logical: Option<ClusterName>,
    /// The services that it may register; what it registers besides is not in the catalogue.
    pub services: Vec<NamePattern>,
}

impl Node {
    /// Whether a client with the key of this fingerprint acts as the node. The fingerprints are no secrets.
    #[must_use]
    pub fn has_key(&self, fingerprint: &str) -> bool {
        self.key_fingerprint == fingerprint || self.is_next_key(fingerprint)
    }

    /// Whether it is the fingerprint of the next key.
    #[must_use]
    pub fn is_next_key(&self, fingerprint: &str) -> bool {
        self.next_key_fingerprint.as_deref() == Some(fingerprint)
    }

    /// The node whose key is the next one, the one before being none of it any more.
    #[must_use]
    pub fn with_next_key(mut self) -> Self {
        if let Some(next) = self.next_key_fingerprint.take() {
            self.key_fingerprint = next;
        }
        self
    }

    /// Whether it may register instances of a service.
    #[must_use]
    pub fn may_register(&self, service: &ServiceName) -> bool {
        self.services.iter().any(|pattern| pattern.matches(service.as_str()))
    }

    /// The services that it may register; `None` if it may register all.
    #[must_use]
    pub fn services_if_limited(&self) -> Option<Vec<NamePattern>> {
        (!self.services.contains(&NamePattern::Any)).then(|| self.services.clone())
    }
}

/// A cordon by a person: the node is assigned no new versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cordon {
    /// Who cordoned the node, when and why.
    pub annotation: Annotation,
    /// Drain of the node, requested or done; `None` for a cordon alone.
    pub drain: Option<Drain>,
}

/// A drain: the node's service instances are withdrawn from discovery, as soon as the budget allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Requested: the instances are still returned to clients.
    Waiting(DrainBudget),
    /// The instances have not been returned to clients since then, by the server's clock.
    Drained(Timestamp),
}

/// How much a drain may take away, and how long it waits for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainBudget {
    /// The most instances of any one service that may be unavailable, this node's included. A share is of the
    /// service's instances, at least one.
    pub max_unavailable: Amount,
    /// Time at which a drain that still waits is given up, by the server's clock.
    pub deadline: Timestamp,
}

impl Cordon {
    /// State and author, in one line for people.
    #[must_use]
    pub fn line(&self) -> String {
        self.annotation.describe(if self.is_drained() { "drained" } else { "cordoned" })
    }

    /// Whether the node's service instances are withdrawn from discovery.
    #[must_use]
    pub const fn is_drained(&self) -> bool {
        matches!(self.drain, Some(Drain::Drained(_)))
    }

    /// Budget of a drain that has not begun.
    #[must_use]
    pub const fn waiting_drain(&self) -> Option<DrainBudget> {
        match self.drain {
            Some(Drain::Waiting(budget)) => Some(budget),
            Some(Drain::Drained(_)) | None => None,
        }
    }
}

/// State of a node's connection to the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PresenceState {
    /// The node joined but has never opened a session.
    Never,
    /// A session is open, or closed only a moment ago.
    Up,
    /// Without a session for longer than a short interruption.
    Suspect,
    /// Without a session for longer than the limit. Not the same as failed: its services may be healthy.
    Unreachable,
}

/// Presence of a node: its state, since when, and the server that determined it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    /// The presence state.
    pub contact: PresenceState,
    /// Time it entered this state, by the server's clock.
    pub since: Timestamp,
    /// The server that holds the node's session, or held its last one.
    pub server: Option<ServerName>,
}

impl PresenceState {
    /// Name shown in the API, the CLI and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Up => "up",
            Self::Suspect => "suspect",
            Self::Unreachable => "unreachable",
        }
    }
}
