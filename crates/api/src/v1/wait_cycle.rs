//! Stored wait cycles.

use bellwether_core::records::wait_cycle as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// The wait cycles of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitCycles {
    /// The cycles, each once.
    pub wait_cycles: Vec<WaitCycle>,
}

/// A wait cycle: entities and services that wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitCycle {
    /// The members; each waits for a service that the next one is, or registers.
    pub members: Vec<CycleMember>,
    /// Time at which the cycle was found, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}

/// A member of a wait cycle: an entity or a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CycleMember {
    /// Entity name; absent if the member is a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Service name; absent if the member is an entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Name of a node on which it waits.
    pub node: String,
    /// Name of the service that it waits for.
    pub waits_for: String,
}

impl From<&core::WaitCycles> for WaitCycles {
    fn from(from: &core::WaitCycles) -> Self {
        let member = |member: &core::CycleMember| {
            let (entity, service) = match &member.who {
                core::Waiter::Entity(name) => (Some(name.to_string()), None),
                core::Waiter::Service(name) => (None, Some(name.to_string())),
            };
            let (node, waits_for) = (member.node.to_string(), member.waits_for.to_string());
            CycleMember { entity, service, node, waits_for }
        };
        let wait_cycles = from.0.iter().map(|wait_cycle| WaitCycle {
            members: wait_cycle.members.iter().map(member).collect(),
            since_ms: wait_cycle.since.as_millis(),
        });
        Self { wait_cycles: wait_cycles.collect() }
    }
}

impl TryFrom<WaitCycles> for core::WaitCycles {
    type Error = ShapeError;
    fn try_from(from: WaitCycles) -> Result<Self, ShapeError> {
        let member = |member: CycleMember| {
            let who = match (&member.entity, &member.service) {
                (Some(name), None) => core::Waiter::Entity(read("entity", name)?),
                (None, Some(name)) => core::Waiter::Service(read("service", name)?),
                (Some(_), Some(_)) | (None, None) => {
                    return Err(ShapeError::at("members", "each member is either an entity or a service"));
                }
            };
            Ok::<_, ShapeError>(core::CycleMember {
                who,
                node: read("node", &member.node)?,
                waits_for: read("waits_for", &member.waits_for)?,
            })
        };
        let wait_cycles = from.wait_cycles.into_iter().map(|wait_cycle| {
            let members = wait_cycle.members.into_iter().map(member).collect::<Result<_, _>>()?;
            Ok::<_, ShapeError>(core::WaitCycle {
                members,
                since: Timestamp::from_millis(wait_cycle.since_ms),
            })
        });
        Ok(Self(wait_cycles.collect::<Result<_, _>>()?))
    }
}
