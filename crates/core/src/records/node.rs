//! Nodes: machines that run an agent. The node is written by operations and when it joins; its presence only
//! by the liveness decider, which every server runs for the nodes that hold sessions with it, and the leader
//! for the nodes of servers that are gone.

use alloc::string::String;

use crate::records::annotation::Annotation;
use crate::words::label::Labels;
use crate::words::name::{NodeName, ServerName};
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
    /// SHA-256 of its current client certificate's public key, lower-case hex. Only a client with this key
    /// acts as the node.
    pub key_fingerprint: String,
    /// Pause of this node by a person; rollouts never change it.
    pub pause: Option<Annotation>,
    /// Cordon or drain of this node by a person.
    pub cordon: Option<Cordon>,
    /// Who decommissioned it, when and why. A decommissioned node is excluded from all counts and may not
    /// connect.
    pub decommissioned: Option<Annotation>,
}

/// A cordon by a person: the node is assigned no new versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cordon {
    /// Who cordoned the node, when and why.
    pub annotation: Annotation,
    /// Whether the node is drained too: its service instances are not returned to clients any more.
    pub drained: bool,
}

impl Cordon {
    /// State and author, in one line for people.
    #[must_use]
    pub fn line(&self) -> String {
        self.annotation.describe(if self.drained { "drained" } else { "cordoned" })
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
