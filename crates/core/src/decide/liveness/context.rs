//! What the liveness decider knows besides the fleet: which server it runs on, who leads, and the limits.

use crate::records::server::Server;
use crate::records::versioned::Versioned;
use crate::words::map::Map;
use crate::words::name::ServerName;
use crate::words::time::Span;

/// How long a node may be quiet. Counted from the end of its last session; a session that dies without a word is
/// noticed by its pings, which stay away, within 14 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresenceLimits {
    /// Quiet for so long is `suspect`.
    pub suspect: Span,
    /// Quiet for so long is `unreachable`. Longer than `suspect`.
    pub unreachable: Span,
    /// What nodes are given besides to find a server again, when theirs went or began anew.
    pub reconnect: Span,
}

impl Default for PresenceLimits {
    /// 5 s and 15 s: with the pings that is at most 19 s and 29 s after a cable is cut. 15 s for a whole fleet to find
    /// another server: agents call again within 8 s, and ten thousand handshakes take a few more.
    fn default() -> Self {
        Self { suspect: Span::from_secs(5), unreachable: Span::from_secs(15), reconnect: Span::from_secs(15) }
    }
}

/// From where it is looked, and with which limits.
#[derive(Debug, Clone, Copy)]
pub struct LivenessContext<'a> {
    /// The server that looks.
    pub me: &'a ServerName,
    /// The servers that have their place now.
    pub servers: &'a Map<ServerName, Versioned<Server>>,
    /// Whether it leads, and so looks after the nodes of servers that are gone.
    pub leads: bool,
    /// How long a node may be quiet.
    pub limits: PresenceLimits,
}

impl LivenessContext<'_> {
    pub(super) fn lives(&self, server: &ServerName) -> bool {
        self.servers.contains_key(server)
    }
}
