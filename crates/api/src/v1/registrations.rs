//! Service registrations of nodes: requests and stored records.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use bellwether_core::records::registrations as core;
use bellwether_core::records::report::MAX_WAITS_FOR;
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::{InterfaceName, ServiceName, Tag};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, map_from, read, read_some, try_map_from};
use crate::word::words;

words! {
    /// The result of the checks of a service instance.
    CheckStatus {
        /// Every check passes, or there is none.
        Passing = "passing",
        /// A check warns and none fails: the instance is functional, but needs attention.
        Warning = "warning",
        /// At least one check fails, or has no result yet.
        Failing = "failing",
    }
}

/// All service registrations of one node. The agent sends all of them whenever one changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceRegistrations {
    /// Node name; it must be that of the sender.
    pub node: String,
    /// Addresses of the node by interface, at most 64 in all.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    pub addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Registrations of service instances, at most 256.
    #[serde(default)]
    pub instances: Vec<ServiceRegistration>,
}

/// That the service registrations of a node are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Registered {
    /// The revision at which they are recorded, which the next polls name; 0 if others were recorded meanwhile, or it is not known.
    #[serde(default)]
    pub revision: u64,
}

/// The registration of one service instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceRegistration {
    /// Service name, a DNS label.
    pub service: String,
    /// Name of the instance, unique among the instances of the service on this node.
    pub name: String,
    /// Addresses of the instance by interface; those of the node if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Vec<String>>>)]
    pub addresses: Option<BTreeMap<String, Vec<IpAddr>>>,
    /// Port; absent if the instance has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Tags, at most 64.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Metadata for the users of the service, at most 64 entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// Entity that the instance belongs to on its node; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Services that the instance waits for before it becomes functional, at most 64.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub waits_for: BTreeSet<String>,
    /// The result of the instance's checks.
    pub status: CheckStatus,
    /// The reason for the status, one line; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Time of the last change of the status, in milliseconds since the Unix epoch, by the server's clock.
    /// Ignored in requests.
    #[serde(default)]
    pub since_ms: u64,
}

/// Stored record of a service that is or was registered, until it is forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct KnownService {
    /// Service name.
    pub name: String,
    /// Time of its first registration, in milliseconds since the Unix epoch.
    pub first_registered_at_ms: u64,
    /// Time since which it has no instances, in milliseconds since the Unix epoch; absent while it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since_ms: Option<u64>,
}

pub(super) fn shape_of(addresses: &Addresses) -> BTreeMap<String, Vec<IpAddr>> {
    map_from(addresses.0.iter().map(|(interface, list)| (interface.to_string(), list.clone())))
}

/// Reads addresses by interface.
///
/// # Errors
/// [`ShapeError`] at `addresses`.
pub fn addresses(shape: &BTreeMap<String, Vec<IpAddr>>) -> Result<Addresses, ShapeError> {
    if shape.values().map(Vec::len).sum::<usize>() > core::MAX_ADDRESSES {
        let reason = format!("more than {}", core::MAX_ADDRESSES);
        return Err(ShapeError::at("addresses", reason));
    }
    let read = |(interface, list): (&String, &Vec<IpAddr>)| {
        Ok::<(InterfaceName, _), ShapeError>((read("addresses", interface)?, list.clone()))
    };
    Ok(Addresses(try_map_from(shape.iter().map(read))?))
}

/// Reads the services that something waits for.
pub(super) fn waits_for(names: &BTreeSet<String>) -> Result<BTreeSet<ServiceName>, ShapeError> {
    if names.len() > MAX_WAITS_FOR {
        return Err(ShapeError::at("waits_for", format!("more than {MAX_WAITS_FOR}")));
    }
    names.iter().map(|service| read("waits_for", service)).collect()
}

impl From<&core::ServiceRegistrations> for ServiceRegistrations {
    fn from(from: &core::ServiceRegistrations) -> Self {
        let instances = from.instances.iter().map(|((service, name), registration)| ServiceRegistration {
            service: service.to_string(),
            name: name.to_string(),
            addresses: registration.addresses.as_ref().map(shape_of),
            port: registration.port,
            tags: registration.tags.iter().map(ToString::to_string).collect(),
            meta: registration.meta.clone(),
            entity: registration.entity.as_ref().map(ToString::to_string),
            waits_for: registration.waits_for.iter().map(ToString::to_string).collect(),
            status: (&registration.serving).into(),
            reason: registration.serving.reason().to_owned(),
            since_ms: registration.since.as_millis(),
        });
        Self {
            node: from.node.to_string(),
            addresses: shape_of(&from.addresses),
            instances: instances.collect(),
        }
    }
}

impl TryFrom<ServiceRegistrations> for core::ServiceRegistrations {
    type Error = ShapeError;
    fn try_from(from: ServiceRegistrations) -> Result<Self, ShapeError> {
        if from.instances.len() > core::MAX_INSTANCES {
            let reason = format!("more than {}", core::MAX_INSTANCES);
            return Err(ShapeError::at("instances", reason));
        }
        let mut instances = BTreeMap::new();
        for (at, registration) in from.instances.into_iter().enumerate() {
            let place = format!("instances[{at}]");
            let within = |error: ShapeError| error.within(&place);
            let service = read("service", &registration.service).map_err(within)?;
            let name = read("name", &registration.name).map_err(within)?;
            let of = format!("{}/{}", registration.service, registration.name);
            if instances
                .insert((service, name), core::ServiceRegistration::try_from(registration).map_err(within)?)
                .is_some()
            {
                return Err(ShapeError::at(&place, format!("{of} is listed twice")));
            }
        }
        let (node, addresses) = (read("node", &from.node)?, addresses(&from.addresses)?);
        Ok(Self { node, addresses, instances })
    }
}

impl TryFrom<ServiceRegistration> for core::ServiceRegistration {
    type Error = ShapeError;
    fn try_from(from: ServiceRegistration) -> Result<Self, ShapeError> {
        if from.tags.len() > core::MAX_WORDS || from.meta.len() > core::MAX_WORDS {
            let reason = format!("more than {}", core::MAX_WORDS);
            return Err(ShapeError::at(
                if from.tags.len() > core::MAX_WORDS { "tags" } else { "meta" },
                reason,
            ));
        }
        let long = |text: &String| text.len() > core::MAX_WORD_BYTES;
        if from.meta.iter().any(|(key, value)| long(key) || long(value)) {
            let reason = format!("a key or value exceeds {} bytes", core::MAX_WORD_BYTES);
            return Err(ShapeError::at("meta", reason));
        }
        if long(&from.reason) || from.reason.chars().any(char::is_control) {
            let reason = format!("must be one line of at most {} bytes", core::MAX_WORD_BYTES);
            return Err(ShapeError::at("reason", reason));
        }
        let tags = from.tags.iter().map(|tag| read::<Tag>("tags", tag)).collect::<Result<_, _>>()?;
        let reason: Arc<str> = from.reason.into();
        let serving = match from.status {
            CheckStatus::Passing => core::CheckStatus::Passing,
            CheckStatus::Warning => core::CheckStatus::Warning { reason },
            CheckStatus::Failing => core::CheckStatus::Failing { reason },
        };
        Ok(Self {
            addresses: from.addresses.as_ref().map(addresses).transpose()?,
            port: from.port,
            tags,
            meta: from.meta,
            entity: read_some("entity", from.entity.as_deref())?,
            waits_for: waits_for(&from.waits_for)?,
            serving,
            since: Timestamp::from_millis(from.since_ms),
        })
    }
}

impl From<&core::CheckStatus> for CheckStatus {
    fn from(from: &core::CheckStatus) -> Self {
        match from {
            core::CheckStatus::Passing => Self::Passing,
            core::CheckStatus::Warning { .. } => Self::Warning,
            core::CheckStatus::Failing { .. } => Self::Failing,
        }
    }
}

impl From<&core::KnownService> for KnownService {
    fn from(from: &core::KnownService) -> Self {
        Self {
            name: from.name.to_string(),
            first_registered_at_ms: from.first_at.as_millis(),
            idle_since_ms: from.idle_since.map(Timestamp::as_millis),
        }
    }
}

impl TryFrom<KnownService> for core::KnownService {
    type Error = ShapeError;
    fn try_from(from: KnownService) -> Result<Self, ShapeError> {
        Ok(Self {
            name: read("name", &from.name)?,
            first_at: Timestamp::from_millis(from.first_registered_at_ms),
            idle_since: from.idle_since_ms.map(Timestamp::from_millis),
        })
    }
}
