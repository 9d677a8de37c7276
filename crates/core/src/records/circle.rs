//! Circular waits: entities that wait for each other's services. Written only by the decider that finds them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::words::name::{EntityName, NodeName, ServiceName};
use crate::words::time::Timestamp;

/// The circular waits of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Circles(pub Vec<Circle>);

/// Entities that wait for each other's services, each for one that the next offers, and the last for one that the first
/// offers. The one whose name comes first begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle {
    /// The members.
    pub members: Vec<Member>,
    /// When it was found, by the server's clock.
    pub since: Timestamp,
}

/// An entity that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Which.
    pub entity: EntityName,
    /// A node where it waits; there may be more.
    pub node: NodeName,
    /// What it waits for.
    pub waits_for: ServiceName,
}

impl Circle {
    /// Whether both are the same entities waiting for the same services.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let key = |circle: &Self| -> Vec<(EntityName, ServiceName)> {
            circle.members.iter().map(|of| (of.entity.clone(), of.waits_for.clone())).collect()
        };
        key(self) == key(other)
    }

    /// Whether an entity is in it.
    #[must_use]
    pub fn has(&self, entity: &EntityName) -> bool {
        self.members.iter().any(|member| member.entity == *entity)
    }

    /// What could end it, in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        let first = self.members.first().map_or("it", |member| member.waits_for.as_str());
        alloc::format!(
            "let one of them need only level \"addressable\" of the other, or start {first} without it"
        )
    }
}

/// `app (on web-1) waits for db, db (on db-1) waits for app`.
impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, member) in self.members.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{} (on {}) waits for {}", member.entity, member.node, member.waits_for)?;
        }
        Ok(())
    }
}
