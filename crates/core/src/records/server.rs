//! Servers: the processes of the control plane, and which of them leads. Each server writes the record of itself, bound to
//! its own lease, and the leader the record of its leadership: they go when the process does.

use alloc::string::String;

use crate::words::name::ServerName;
use crate::words::time::Timestamp;

/// A process of the control plane that has its place among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name; no other server has it at the same time.
    pub name: ServerName,
    /// Where agents and people call it, like `https://10.0.0.1:7420`.
    pub address: String,
    /// The release it runs.
    pub version: String,
    /// When it took its place, by its own clock.
    pub since: Timestamp,
}

/// Who leads. The revision at which this was written is what a decider's commit is guarded by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// Which server.
    pub server: ServerName,
    /// Since when, by its own clock.
    pub since: Timestamp,
}
