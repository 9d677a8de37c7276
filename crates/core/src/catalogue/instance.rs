//! Service instances: their addresses and state.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;

use crate::words::addresses::Addresses;
use crate::words::name::{InstanceName, NodeName, Tag};
use crate::words::time::Timestamp;

/// One instance of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Name of the instance, unique on its node.
    pub name: InstanceName,
    /// The node that registers it; it is removed with the node.
    pub node: NodeName,
    /// Addresses of the instance.
    pub addresses: Addresses,
    /// Port of the instance; `None` if it has none.
    pub port: Option<u16>,
    /// Tags that clients select instances by.
    pub tags: BTreeSet<Tag>,
    /// Metadata for clients, by key.
    pub meta: BTreeMap<String, String>,
    /// State of the instance.
    pub level: InstanceState,
    /// Time it entered this state, by the server's clock.
    pub since: Timestamp,
}

/// State of a service instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceState {
    /// All its checks pass, or it has none.
    Passing,
    /// At least one check warns; clients may still use it.
    Warning {
        /// The check and its output, in one line.
        reason: Arc<str>,
    },
    /// At least one check fails, or has no result yet.
    Failing {
        /// The check and its output, in one line.
        reason: Arc<str>,
    },
    /// Its node does not report: the state of its checks is unknown.
    Unreachable,
}

impl InstanceState {
    /// Whether clients may be sent to it: passing or warning.
    #[must_use]
    pub const fn serves(&self) -> bool {
        match self {
            Self::Passing | Self::Warning { .. } => true,
            Self::Failing { .. } | Self::Unreachable => false,
        }
    }

    /// Name shown in the API, the CLI and events.
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
