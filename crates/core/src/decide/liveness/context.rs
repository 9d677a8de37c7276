//! Inputs of the liveness decider besides the fleet: the server it runs on, its leadership, and the limits.

use crate::records::server::Server;
use crate::records::versioned::Versioned;
use crate::words::map::Map;
use crate::words::name::ServerName;
use crate::words::time::Span;

/// How long a node may be silent, counted from the end of its last session; a broken session ends after
/// missed pings, within 14 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresenceLimits {
    /// Silence from which a node is `suspect`.
    pub suspect: Span,
    /// Silence from which a node is `unreachable`. Longer than `suspect`.
    pub unreachable: Span,
    /// Additional time for nodes to connect to another server when theirs is gone or has restarted.
    pub reconnect: Span,
}

impl Default for PresenceLimits {
    /// 5 s and 15 s: with the pings that is at most 19 s and 29 s after a cable is cut. 15 s for a whole
    /// fleet to find another server: agents reconnect within 8 s, and ten thousand handshakes take a few
    /// more.
    fn default() -> Self {
        Self { suspect: Span::from_secs(5), unreachable: Span::from_secs(15), reconnect: Span::from_secs(15) }
    }
}

/// The server that decides, and its limits.
#[derive(Debug, Clone, Copy)]
pub struct LivenessContext<'a> {
    /// Name of the deciding server.
    pub me: &'a ServerName,
    /// The live servers.
    pub servers: &'a Map<ServerName, Versioned<Server>>,
    /// Whether it leads, and is therefore responsible for the nodes of servers that are gone.
    pub leads: bool,
    /// How long a node may be silent.
    pub limits: PresenceLimits,
}

impl LivenessContext<'_> {
    pub(super) fn lives(&self, server: &ServerName) -> bool {
        self.servers.contains_key(server)
    }
}
