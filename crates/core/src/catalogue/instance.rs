//! One instance of a service: where it is, and whether it serves.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;

use crate::words::addresses::Addresses;
use crate::words::name::{InstanceName, NodeName, Tag};
use crate::words::time::Timestamp;

/// One instance of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Which one among those of its node.
    pub name: InstanceName,
    /// The node that offers it; it never outlives the node.
    pub node: NodeName,
    /// Where it is reached.
    pub addresses: Addresses,
    /// Its port; none for what has no port of its own.
    pub port: Option<u16>,
    /// What its like is told apart by.
    pub tags: BTreeSet<Tag>,
    /// Whatever its users want to know besides.
    pub meta: BTreeMap<String, String>,
    /// Whether it serves.
    pub level: InstanceState,
    /// Since when its level is that, by the server's clock.
    pub since: Timestamp,
}

/// Whether an instance serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceState {
    /// All its checks pass, or it has none.
    Passing,
    /// It serves, but somebody should look at it.
    Warning {
        /// Which check, and what it said; one line.
        reason: Arc<str>,
    },
    /// At least one check fails, or none has answered yet.
    Failing {
        /// Which check, and what it said; one line.
        reason: Arc<str>,
    },
    /// Its node is not heard from: what its checks say is not known.
    Unreachable,
}

impl InstanceState {
    /// Whether others may be sent to it.
    #[must_use]
    pub const fn serves(&self) -> bool {
        match self {
            Self::Passing | Self::Warning { .. } => true,
            Self::Failing { .. } | Self::Unreachable => false,
        }
    }

    /// The word shown for it everywhere.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Warning { .. } => "warning",
            Self::Failing { .. } => "failing",
            Self::Unreachable => "unreachable",
        }
    }
}
