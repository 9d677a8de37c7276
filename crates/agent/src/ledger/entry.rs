//! What the ledger keeps.

use std::collections::BTreeMap;

use bellwether_api::v1::service::definition::ServiceDefinition;
use bellwether_core::catalogue::need::Need;
use bellwether_core::local::memory::EntityMemory;
use bellwether_core::words::name::{InstanceName, ServiceName};

use crate::apply::process::ProcessMark;

/// The needs that were met, by the instance of a service that has them: it waits for them no more.
pub(crate) type MetNeeds = BTreeMap<(ServiceName, InstanceName), Vec<Need>>;

/// A service that a program registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisteredService {
    pub(crate) definition: ServiceDefinition,
    /// The program, if it is known.
    pub(crate) pid: Option<i32>,
}

/// What is kept of one entity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EntityEntry {
    pub(crate) memory: EntityMemory,
    /// The supervised process, if one was started.
    pub(crate) process: Option<ProcessMark>,
    /// The run that was begun and whose end was not seen: what carries this in its environment is a leftover.
    pub(crate) run: Option<String>,
    /// What the services that it follows were made of when its dynamic part last ran.
    pub(crate) followed: Option<u64>,
}
