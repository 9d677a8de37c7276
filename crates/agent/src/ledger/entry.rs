//! What the ledger keeps.

use std::collections::BTreeMap;

use bellwether_api::v1::service::definition::ServiceDefinition;
use bellwether_core::catalogue::need::Need;
use bellwether_core::local::memory::EntityMemory;
use bellwether_core::words::name::{InstanceName, ServiceName};

use crate::apply::process::ProcessMark;

/// Needs that were met, by the instance that has them: it does not wait for them again.
pub(crate) type MetNeeds = BTreeMap<(ServiceName, InstanceName), Vec<Need>>;

/// The replicas of a former primary that are to follow the new one: by address, the address by which each follows the former one.
pub(crate) type FormerReplicas = BTreeMap<String, String>;

/// A handover of a data store that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HandoverEntry {
    /// Address of the replica that is to be the primary; empty if an older agent began it.
    pub(crate) next: String,
    /// The other replicas, as far as they do not follow that one yet.
    pub(crate) replicas: FormerReplicas,
}

/// A service that a program registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisteredService {
    pub(crate) definition: ServiceDefinition,
    /// The process that registered it, if known.
    pub(crate) pid: Option<i32>,
}

/// The ledger's entry of one entity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EntityEntry {
    pub(crate) memory: EntityMemory,
    /// The supervised process, if one was started.
    pub(crate) process: Option<ProcessMark>,
    /// The run in progress, if any: processes with this in their environment are leftovers of it.
    pub(crate) run: Option<String>,
    /// Digest of the followed services when the dynamic part last ran.
    pub(crate) followed: Option<u64>,
    /// Digest of the live params from which the files were last rendered; 0 without any.
    pub(crate) rendered: u64,
}
