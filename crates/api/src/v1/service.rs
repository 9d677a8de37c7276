//! The service catalogue: views for people, and updates for the agents' copies.

pub mod definition;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use bellwether_core::catalogue::CatalogueService as Known;
use bellwether_core::catalogue::instance as core;
use bellwether_core::catalogue::log;
use bellwether_core::words::name::{ServiceName, Tag};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::registrations::{addresses, shape_of};
use crate::shape::{ShapeError, read};

/// Whether a service instance is functional.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case", from = "String")]
pub enum InstanceStatus {
    /// Every check passes, or there is none.
    Passing,
    /// A check warns and none fails: the instance is functional, but needs attention.
    Warning,
    /// At least one check fails, or has no result yet.
    Failing,
    /// Its node is unreachable: the result of its checks is not known.
    Unreachable,
    /// A status that only newer servers know: an update that contains it cannot be used.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    Unknown,
}

impl InstanceStatus {
    /// The status as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Warning => "warning",
            Self::Failing => "failing",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
        }
    }
}

impl From<String> for InstanceStatus {
    fn from(word: String) -> Self {
        match word.as_str() {
            "passing" => Self::Passing,
            "warning" => Self::Warning,
            "failing" => Self::Failing,
            "unreachable" => Self::Unreachable,
            _ => Self::Unknown,
        }
    }
}

impl std::fmt::Display for InstanceStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl PartialEq<&str> for InstanceStatus {
    fn eq(&self, word: &&str) -> bool {
        self.as_str() == *word
    }
}

/// A service with the number of its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServiceSummary {
    /// Service name.
    pub name: String,
    /// Number of registered instances.
    pub addressable: usize,
    /// Number of functional instances.
    pub functional: usize,
    /// All tags of its instances.
    pub tags: BTreeSet<String>,
}

/// A service with its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServiceView {
    /// Service name.
    pub name: String,
    /// Number of registered instances.
    pub addressable: usize,
    /// Number of functional instances.
    pub functional: usize,
    /// The instances, ordered by node and name.
    pub instances: Vec<Instance>,
    /// Revision of the catalogue; pass it as `index` to wait for the next change.
    pub revision: u64,
}

/// One instance of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Instance {
    /// Name of the node that registered it.
    pub node: String,
    /// Name of the instance, unique among the instances of the service on its node.
    pub name: String,
    /// Addresses by interface.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    pub addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Port; absent if the instance has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Tags.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Metadata for the users of the service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// The result of its checks, or `unreachable`.
    pub status: InstanceStatus,
    /// The reason for the status, one line; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Time of the last change of the status, in milliseconds since the Unix epoch, by the server's clock.
    pub since_ms: u64,
}

/// The changes that a copy of the catalogue lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CatalogueUpdate {
    /// Index of the catalogue after these changes; the next request contains it.
    pub index: u64,
    /// Whether the changes are the whole catalogue: the copy then discards what it had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// The changes, oldest first.
    pub changes: Vec<CatalogueChange>,
}

/// One change of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum CatalogueChange {
    /// A service was registered for the first time.
    ServiceKnown {
        /// Service name.
        service: String,
    },
    /// A service without instances was forgotten.
    ServiceForgotten {
        /// Service name.
        service: String,
    },
    /// The addresses of a node changed.
    Host {
        /// Node name.
        node: String,
        /// Addresses by interface.
        #[schema(value_type = BTreeMap<String, Vec<String>>)]
        addresses: BTreeMap<String, Vec<IpAddr>>,
    },
    /// A node left the catalogue.
    HostGone {
        /// Node name.
        node: String,
    },
    /// An instance was added or changed.
    Put {
        /// Service name.
        service: String,
        /// The instance.
        instance: Instance,
    },
    /// An instance was removed.
    Removed {
        /// Service name.
        service: String,
        /// Node name.
        node: String,
        /// Name of the instance.
        name: String,
    },
    /// A change that only newer servers know: the copy must be discarded and read again.
    #[serde(other, skip_serializing)]
    #[schema(ignore)]
    Unknown,
}

impl ServiceSummary {
    /// The summary of a service.
    #[must_use]
    pub fn of(name: &ServiceName, service: &Known) -> Self {
        let tags = service.instances().flat_map(|instance| &instance.tags);
        Self {
            name: name.to_string(),
            addressable: service.addressable(),
            functional: service.functional(),
            tags: tags.map(ToString::to_string).collect(),
        }
    }
}

impl From<&core::InstanceState> for InstanceStatus {
    fn from(from: &core::InstanceState) -> Self {
        match from {
            core::InstanceState::Passing => Self::Passing,
            core::InstanceState::Warning { .. } => Self::Warning,
            core::InstanceState::Failing { .. } => Self::Failing,
            core::InstanceState::Unreachable => Self::Unreachable,
        }
    }
}

impl From<&core::Instance> for Instance {
    fn from(from: &core::Instance) -> Self {
        Self {
            node: from.node.to_string(),
            name: from.name.to_string(),
            addresses: shape_of(&from.addresses),
            port: from.port,
            tags: from.tags.iter().map(ToString::to_string).collect(),
            meta: from.meta.clone(),
            status: (&from.level).into(),
            reason: match &from.level {
                core::InstanceState::Warning { reason } | core::InstanceState::Failing { reason } => {
                    reason.to_string()
                }
                core::InstanceState::Passing | core::InstanceState::Unreachable => String::new(),
            },
            since_ms: from.since.as_millis(),
        }
    }
}

impl TryFrom<Instance> for core::Instance {
    type Error = ShapeError;
    fn try_from(from: Instance) -> Result<Self, ShapeError> {
        let reason: Arc<str> = from.reason.into();
        let level = match from.status {
            InstanceStatus::Passing => core::InstanceState::Passing,
            InstanceStatus::Warning => core::InstanceState::Warning { reason },
            InstanceStatus::Failing => core::InstanceState::Failing { reason },
            InstanceStatus::Unreachable => core::InstanceState::Unreachable,
            InstanceStatus::Unknown => {
                return Err(ShapeError::at("status", "this release does not know the value"));
            }
        };
        let tags = from.tags.iter().map(|tag| read::<Tag>("tags", tag));
        Ok(Self {
            name: read("name", &from.name)?,
            node: read("node", &from.node)?,
            addresses: addresses(&from.addresses)?,
            port: from.port,
            tags: tags.collect::<Result<_, _>>()?,
            meta: from.meta,
            level,
            since: Timestamp::from_millis(from.since_ms),
        })
    }
}

impl From<&log::CatalogueChange> for CatalogueChange {
    fn from(from: &log::CatalogueChange) -> Self {
        match from {
            log::CatalogueChange::ServiceKnown(service) => {
                Self::ServiceKnown { service: service.to_string() }
            }
            log::CatalogueChange::ServiceForgotten(service) => {
                Self::ServiceForgotten { service: service.to_string() }
            }
            log::CatalogueChange::Host(node, Some(at)) => {
                Self::Host { node: node.to_string(), addresses: shape_of(at) }
            }
            log::CatalogueChange::Host(node, None) => Self::HostGone { node: node.to_string() },
            log::CatalogueChange::Put(service, instance) => {
                Self::Put { service: service.to_string(), instance: (&**instance).into() }
            }
            log::CatalogueChange::Removed(service, node, name) => {
                Self::Removed { service: service.to_string(), node: node.to_string(), name: name.to_string() }
            }
        }
    }
}

impl TryFrom<CatalogueChange> for log::CatalogueChange {
    type Error = ShapeError;
    fn try_from(from: CatalogueChange) -> Result<Self, ShapeError> {
        Ok(match from {
            CatalogueChange::ServiceKnown { service } => Self::ServiceKnown(read("service", &service)?),
            CatalogueChange::ServiceForgotten { service } => {
                Self::ServiceForgotten(read("service", &service)?)
            }
            CatalogueChange::Host { node, addresses: at } => {
                Self::Host(read("node", &node)?, Some(Arc::new(addresses(&at)?)))
            }
            CatalogueChange::HostGone { node } => Self::Host(read("node", &node)?, None),
            CatalogueChange::Put { service, instance } => {
                Self::Put(read("service", &service)?, Arc::new(instance.try_into()?))
            }
            CatalogueChange::Removed { service, node, name } => {
                Self::Removed(read("service", &service)?, read("node", &node)?, read("name", &name)?)
            }
            CatalogueChange::Unknown => {
                return Err(ShapeError::at("change", "this release does not know the value"));
            }
        })
    }
}
