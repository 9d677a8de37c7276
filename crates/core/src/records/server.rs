//! Servers: the processes of the control plane, and the leader among them. Each server writes its own record,
//! bound to its own lease, and the leader the record of its leadership: they expire with the process.

use alloc::string::String;
use alloc::vec::Vec;

use crate::words::name::{SecretKeyId, ServerName};
use crate::words::time::Timestamp;

/// A live process of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name of the server, unique among the live ones.
    pub name: ServerName,
    /// URL at which agents and people reach it, like `https://10.0.0.1:7420`.
    pub address: String,
    /// The release it runs.
    pub version: String,
    /// The keys for secrets that it has, the newest last.
    pub secret_keys: Vec<SecretKeyId>,
    /// Time it registered, by its own clock.
    pub since: Timestamp,
}

/// The leader. Commits of deciders are guarded by the revision at which this record was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// Name of the leading server.
    pub server: ServerName,
    /// Start of its leadership, by its own clock.
    pub since: Timestamp,
}
