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

/// Entities and services that wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Circle {
    /// The members, each waiting for a service that the next offers or is.
    pub members: Vec<Member>,
    /// When it was found.
    pub since_ms: u64,
}

/// One that waits: an entity or a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Member {
    /// Which entity, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Which service, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// A node where it waits.
    pub node: String,
    /// What it waits for.
    pub waits_for: String,
}

impl From<&core::Circles> for Circles {
    fn from(from: &core::Circles) -> Self {
        let member = |member: &core::Member| {
            let (entity, service) = match &member.who {
                core::Waiter::Entity(name) => (Some(name.to_string()), None),
                core::Waiter::Service(name) => (None, Some(name.to_string())),
            };
            let (node, waits_for) = (member.node.to_string(), member.waits_for.to_string());
            Member { entity, service, node, waits_for }
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
            let who = match (&member.entity, &member.service) {
                (Some(name), None) => core::Waiter::Entity(read("entity", name)?),
                (None, Some(name)) => core::Waiter::Service(read("service", name)?),
                (Some(_), Some(_)) | (None, None) => {
                    return Err(ShapeError::at("members", "each is either an entity or a service"));
                }
            };
            Ok::<_, ShapeError>(core::Member {
                who,
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
