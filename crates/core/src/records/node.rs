//! Nodes: machines that run an agent. The node is written by people's operations and by joining; its presence only by
//! the liveness decider, which every server runs
//! for the nodes that hold sessions with it, and the leader for those of servers that are gone.

use alloc::string::String;

use crate::records::annotation::Annotation;
use crate::words::label::Labels;
use crate::words::name::{NodeName, ServerName};
use crate::words::time::Timestamp;

/// A machine that runs an agent, as people and its join describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name of the node, unique in its namespace.
    pub name: NodeName,
    /// What selectors see besides the name.
    pub labels: Labels,
    /// When it last joined, by the server's clock.
    pub joined_at: Timestamp,
    /// SHA-256 of its current client certificate's public key, lower-case hex. Only its bearer is this node.
    pub key_fingerprint: String,
    /// Who paused it, since when and why. Rollouts never touch this.
    pub pause: Option<Annotation>,
    /// Who cordoned or drained it.
    pub cordon: Option<Cordon>,
    /// Who decommissioned it, when and why. Such a node counts nowhere and may not connect.
    pub decommissioned: Option<Annotation>,
}

/// A person's word that a node is to be told nothing new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cordon {
    /// Who, when and why.
    pub annotation: Annotation,
    /// Whether what it offers is not to serve others any more.
    pub drained: bool,
}

impl Cordon {
    /// The word and who said it, for a person.
    #[must_use]
    pub fn line(&self) -> String {
        self.annotation.describe(if self.drained { "drained" } else { "cordoned" })
    }
}

/// What the control plane knows of a node's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PresenceState {
    /// It joined but never held a session.
    Never,
    /// A session is open, or was a moment ago.
    Up,
    /// Quiet for longer than a hiccup.
    Suspect,
    /// Quiet past the limit. Not the same as failed: its services may be fine.
    Unreachable,
}

/// A node's contact, since when, and by whom that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    /// The state.
    pub contact: PresenceState,
    /// When it became that, by the server's clock.
    pub since: Timestamp,
    /// The server that it holds its session with, or held the last one.
    pub server: Option<ServerName>,
}

impl PresenceState {
    /// The word shown for it everywhere.
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
