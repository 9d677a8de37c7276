//! The catalogue as it travels: to people, whole; to agents, what they lack of it.

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
    /// A status that only newer servers know: whoever reads it cannot use the update.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    Unknown,
}

impl InstanceStatus {
    /// The word as it is written.
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

/// A service and how many offer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServiceSummary {
    /// Its name.
    pub name: String,
    /// Instances that are registered.
    pub addressable: usize,
    /// Instances that serve.
    pub functional: usize,
    /// Every tag that an instance has.
    pub tags: BTreeSet<String>,
}

/// A service with its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServiceView {
    /// Its name.
    pub name: String,
    /// Instances that are registered.
    pub addressable: usize,
    /// Instances that serve.
    pub functional: usize,
    /// The instances, by node and name.
    pub instances: Vec<Instance>,
    /// What to name as `index` to hear of the next change of the catalogue.
    pub revision: u64,
}

/// One instance of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Instance {
    /// The node that offers it.
    pub node: String,
    /// Which one among those of its node.
    pub name: String,
    /// Where it is reached: addresses by interface.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    pub addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Its port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What its like is told apart by.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Whatever its users want to know besides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// The result of its checks, or `unreachable`.
    pub status: InstanceStatus,
    /// Why it is not simply passing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Since when its level is that, by the server's clock.
    pub since_ms: u64,
}

/// What a copy of the catalogue lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CatalogueUpdate {
    /// What to name the next time.
    pub index: u64,
    /// These are all there is: what was known before is to be forgotten.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// In order.
    pub changes: Vec<CatalogueChange>,
}

/// One change of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum CatalogueChange {
    /// A service's name became known.
    ServiceKnown {
        /// Its name.
        service: String,
    },
    /// A node has these addresses.
    Host {
        /// Which.
        node: String,
        /// By interface.
        #[schema(value_type = BTreeMap<String, Vec<String>>)]
        addresses: BTreeMap<String, Vec<IpAddr>>,
    },
    /// A node left.
    HostGone {
        /// Which.
        node: String,
    },
    /// An instance appeared or changed.
    Put {
        /// Of which service.
        service: String,
        /// It.
        instance: Instance,
    },
    /// An instance is gone.
    Removed {
        /// Of which service.
        service: String,
        /// From which node.
        node: String,
        /// Which one.
        name: String,
    },
    /// One that only newer programs know: whoever reads it has lost the thread.
    #[serde(other, skip_serializing)]
    #[schema(ignore)]
    Unknown,
}

impl ServiceSummary {
    /// A service and how many offer it.
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
            InstanceStatus::Unknown => return Err(ShapeError::at("status", "this version does not know it")),
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
                return Err(ShapeError::at("change", "this version does not know it"));
            }
        })
    }
}
