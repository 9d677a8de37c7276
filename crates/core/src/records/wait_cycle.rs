//! Wait cycles: entities and services that wait for each other. Written only by the decider that finds them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::words::name::{EntityName, NodeName, ServiceName};
use crate::words::time::Timestamp;

/// The wait cycles of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitCycles(pub Vec<WaitCycle>);

/// Entities and services that wait for each other: each waits for a service that the next one provides, and
/// the last for one of the first. It begins with the member whose name comes first, entities before services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitCycle {
    /// The members.
    pub members: Vec<CycleMember>,
    /// Time it was found, by the server's clock.
    pub since: Timestamp,
}

/// A member of a wait cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleMember {
    /// The waiting entity or service.
    pub who: Waiter,
    /// A node on which it waits; there may be others.
    pub node: NodeName,
    /// The service it waits for.
    pub waits_for: ServiceName,
}

/// An entity or service that waits for services.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiter {
    /// An entity, before its version is applied.
    Entity(EntityName),
    /// A service with needs of its own, before it becomes functional.
    Service(ServiceName),
}

impl WaitCycle {
    /// Whether both have the same members waiting for the same services.
    #[must_use]
    pub fn is_same(&self, other: &[CycleMember]) -> bool {
        let pairs = self.members.iter().zip(other);
        self.members.len() == other.len()
            && pairs.into_iter().all(|(own, of)| own.who == of.who && own.waits_for == of.waits_for)
    }

    /// What could end the cycle, in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        let first = self.members.first().map_or("it", |member| member.waits_for.as_str());
        alloc::format!("lower one need to level \"addressable\", or start {first} without its need")
    }
}

impl Waiter {
    /// The name that events use for it: `entity/app`, `service/db`.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::Entity(name) => alloc::format!("entity/{name}"),
            Self::Service(name) => alloc::format!("service/{name}"),
        }
    }
}

/// `app`, or `service db`.
impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entity(name) => name.fmt(f),
            Self::Service(name) => write!(f, "service {name}"),
        }
    }
}

/// `app (on web-1) waits for db, service db (on db-1) waits for app`.
impl fmt::Display for WaitCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, member) in self.members.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{} (on {}) waits for {}", member.who, member.node, member.waits_for)?;
        }
        Ok(())
    }
}
