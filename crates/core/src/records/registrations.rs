//! What nodes offer: their addresses, and the instances of services on them. Written only by the node's own agent, through
//! absorption; whether the node is heard from is its presence's business.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;

use crate::words::addresses::Addresses;
use crate::words::name::{EntityName, InstanceName, NodeName, ServiceName, Tag};
use crate::words::time::Timestamp;

/// Most instances on one node.
pub const MAX_INSTANCES: usize = 256;

/// Most tags of one instance, and most entries of its meta.
pub const MAX_WORDS: usize = 64;

/// Longest key or value of an instance's meta, and longest reason, in bytes.
pub const MAX_WORD_BYTES: usize = 512;

/// Most addresses of one node or instance, over all interfaces.
pub const MAX_ADDRESSES: usize = 64;

/// What one node offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRegistrations {
    /// Which node.
    pub node: NodeName,
    /// Where it is reached.
    pub addresses: Addresses,
    /// By service and instance.
    pub instances: BTreeMap<(ServiceName, InstanceName), ServiceRegistration>,
}

/// One instance of a service, as its node offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRegistration {
    /// Where it is reached; where its node is, if it does not say.
    pub addresses: Option<Addresses>,
    /// Its port.
    pub port: Option<u16>,
    /// What its like is told apart by.
    pub tags: BTreeSet<Tag>,
    /// Whatever its users want to know besides.
    pub meta: BTreeMap<String, String>,
    /// The entity it belongs to on its node; none for what stands beside all of them.
    pub entity: Option<EntityName>,
    /// Services that it waits for before it serves.
    pub lacks: BTreeSet<ServiceName>,
    /// What its checks say.
    pub serving: CheckStatus,
    /// Since when they say so, by the server's clock.
    pub since: Timestamp,
}

/// What the checks of an instance say, past their hysteresis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckStatus {
    /// All pass, or there are none.
    Passing,
    /// None fails, one warns.
    Warning {
        /// Which, and what it said; one line.
        reason: Arc<str>,
    },
    /// One fails, or has not answered yet.
    Failing {
        /// Which, and what it said; one line.
        reason: Arc<str>,
    },
}

/// A service that was once offered: its name stays known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownService {
    /// Its name.
    pub name: ServiceName,
    /// When it was first offered, by the server's clock.
    pub first_at: Timestamp,
}

impl CheckStatus {
    /// The word shown for it everywhere.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Warning { .. } => "warning",
            Self::Failing { .. } => "failing",
        }
    }

    /// Why it is not simply passing.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Passing => "",
            Self::Warning { reason } | Self::Failing { reason } => reason,
        }
    }
}
