//! Discovery of a cluster's members from outside: where the list is, which is part of the cluster, and what it said, which the leader
//! writes, and the operation that accepts that members are gone.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::fmt;

use crate::words::name::ClusterName;
use crate::words::time::{Span, Timestamp};

/// Default time between two reads of a list, as of Prometheus.
pub const DEFAULT_INTERVAL: Span = Span::from_secs(60);

/// Shortest such time.
pub const MIN_INTERVAL: Span = Span::from_secs(1);

/// Longest such time.
pub const MAX_INTERVAL: Span = Span::from_secs(24 * 60 * 60);

/// Most members of a list.
pub const MAX_LISTED: usize = 10_000;

/// Longest list as it is stored, in bytes: it is one record, and a transaction has it with its events.
pub const MAX_LIST_BYTES: usize = 256 << 10;

/// Longest reason that is kept, in bytes: one readable line.
pub const MAX_REASON_BYTES: usize = 512;

/// Where the members of a cluster are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// Where the list is.
    pub source: DiscoverySource,
    /// Time between two reads of it.
    pub interval: Span,
}

/// Where a list of members is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiscoverySource {
    /// An HTTP endpoint.
    Url(String),
    /// A file on the machine of the server that leads, below the directory of the namespace.
    File(String),
}

impl fmt::Display for DiscoverySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::File(path) => write!(f, "file {path}"),
        }
    }
}

/// What the list of a cluster's members said last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterDiscovery {
    /// The cluster.
    pub cluster: ClusterName,
    /// The members by the host of their targets. One of the name of a node is that node; others are unknown.
    pub members: BTreeMap<String, ListedMember>,
    /// When they changed last.
    pub changed_at: Timestamp,
    /// Why the list cannot be read; `None` if it was read last.
    pub failure: Option<DiscoveryFailure>,
    /// Members that the list does not have any more, and that stay until a person accepts it.
    pub held: Option<HeldMembers>,
}

/// A member as it is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedMember {
    /// Its targets, as `host:port`.
    pub targets: BTreeSet<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// Why a list cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryFailure {
    /// The last reason, in one line.
    pub reason: String,
    /// Since when it cannot be read.
    pub since: Timestamp,
}

/// Members that the list does not have any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldMembers {
    /// Their hosts.
    pub hosts: BTreeSet<String>,
    /// Since when they wait for a person.
    pub since: Timestamp,
}

impl ClusterDiscovery {
    /// What is known before the list was read.
    #[must_use]
    pub const fn none(cluster: ClusterName) -> Self {
        Self { cluster, members: BTreeMap::new(), changed_at: Timestamp::EPOCH, failure: None, held: None }
    }
}
