//! Circular waits, as they are kept.

use bellwether_core::records::circle as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// The circular waits of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Circles {
    /// Each once.
    pub circles: Vec<Circle>,
}

/// Entities that wait for each other's services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Circle {
    /// The members, each waiting for a service that the next offers.
    pub members: Vec<Member>,
    /// When it was found.
    pub since_ms: u64,
}

/// An entity that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Member {
    /// Which.
    pub entity: String,
    /// A node where it waits.
    pub node: String,
    /// What it waits for.
    pub waits_for: String,
}

impl From<&core::Circles> for Circles {
    fn from(from: &core::Circles) -> Self {
        let member = |member: &core::Member| Member {
            entity: member.entity.to_string(),
            node: member.node.to_string(),
            waits_for: member.waits_for.to_string(),
        };
        let circles = from.0.iter().map(|circle| Circle {
            members: circle.members.iter().map(member).collect(),
            since_ms: circle.since.as_millis(),
        });
        Self { circles: circles.collect() }
    }
}

impl TryFrom<Circles> for core::Circles {
    type Error = ShapeError;
    fn try_from(from: Circles) -> Result<Self, ShapeError> {
        let member = |member: Member| {
            Ok::<_, ShapeError>(core::Member {
                entity: read("entity", &member.entity)?,
                node: read("node", &member.node)?,
                waits_for: read("waits_for", &member.waits_for)?,
            })
        };
        let circles = from.circles.into_iter().map(|circle| {
            let members = circle.members.into_iter().map(member).collect::<Result<_, _>>()?;
            Ok::<_, ShapeError>(core::Circle { members, since: Timestamp::from_millis(circle.since_ms) })
        });
        Ok(Self(circles.collect::<Result<_, _>>()?))
    }
}
