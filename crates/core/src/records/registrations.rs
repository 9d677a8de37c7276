//! Service registrations: the addresses of nodes, and the service instances on them. Written only when the
//! report of the node's own agent is absorbed; whether the node reports at all is in its presence.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;

use crate::words::addresses::Addresses;
use crate::words::counter::MemberNumber;
use crate::words::name::{EnsembleName, EntityName, InstanceName, NodeName, ServiceName, Tag};
use crate::words::time::Timestamp;

/// Most instances on one node.
pub const MAX_INSTANCES: usize = 256;

/// Most tags of one instance, and most entries of its metadata.
pub const MAX_WORDS: usize = 64;

/// Longest key or value of an instance's metadata, and longest reason, in bytes.
pub const MAX_WORD_BYTES: usize = 512;

/// Most addresses of one node or instance, over all interfaces.
pub const MAX_ADDRESSES: usize = 64;

/// The service registrations of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRegistrations {
    /// Name of the node.
    pub node: NodeName,
    /// Addresses of the node.
    pub addresses: Addresses,
    /// Its instances, by service and instance name.
    pub instances: BTreeMap<(ServiceName, InstanceName), ServiceRegistration>,
}

/// One instance of a service, as its node registers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRegistration {
    /// Addresses of the instance; `None` for those of its node.
    pub addresses: Option<Addresses>,
    /// Port of the instance, if it has one.
    pub port: Option<u16>,
    /// Tags that clients select instances by.
    pub tags: BTreeSet<Tag>,
    /// Metadata for clients, by key.
    pub meta: BTreeMap<String, String>,
    /// The entity on the node that the instance belongs to; `None` if it belongs to none.
    pub entity: Option<EntityName>,
    /// Services that it waits for before it becomes functional.
    pub waits_for: BTreeSet<ServiceName>,
    /// Combined state of its checks.
    pub serving: CheckStatus,
    /// Time it entered this check state, by the server's clock.
    pub since: Timestamp,
}

/// Combined state of an instance's checks, after their thresholds for consecutive results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckStatus {
    /// Every check passes, or there are none.
    Passing,
    /// No check fails, at least one warns.
    Warning {
        /// The check and its output, in one line.
        reason: Arc<str>,
    },
    /// At least one check fails, or has no result yet.
    Failing {
        /// The check and its output, in one line.
        reason: Arc<str>,
    },
}

/// A service that is or was registered: its name stays known for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownService {
    /// Name of the service.
    pub name: ServiceName,
    /// Time of its first registration, by the server's clock.
    pub first_at: Timestamp,
    /// Time since which it has no instances, by the server's clock; `None` while it has some. It is forgotten
    /// some time later.
    pub idle_since: Option<Timestamp>,
}

/// The instance as which a member of an ensemble is registered: one of the service that has the name of its ensemble.
#[must_use]
pub fn instance_of_member(
    ensemble: &EnsembleName,
    number: MemberNumber,
) -> Option<(ServiceName, InstanceName)> {
    Some((ensemble.as_str().parse().ok()?, alloc::format!("{ensemble}-{number}").parse().ok()?))
}

impl CheckStatus {
    /// Name shown in the API, the CLI and events.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Warning { .. } => "warning",
            Self::Failing { .. } => "failing",
        }
    }

    /// Whether at least one check fails or has no result yet.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        matches!(self, Self::Failing { .. })
    }

    /// Why it warns or fails; empty while passing.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Passing => "",
            Self::Warning { reason } | Self::Failing { reason } => reason,
        }
    }
}
