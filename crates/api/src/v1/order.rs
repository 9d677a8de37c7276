//! Orders, as they travel and are kept.

use std::collections::BTreeMap;

use bellwether_core::records::order as core;
use bellwether_core::words::counter::{AssignmentNumber, Generation, Term};
use serde::{Deserialize, Serialize};

use super::server::LiveServers;
use super::service::CatalogueUpdate;
use crate::shape::{ShapeError, map_from, read, try_map_from};

/// How a node applies an assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case", from = "String")]
pub enum ApplyMethod {
    /// With the node's own configuration of the entity.
    Apply,
    /// By rendering the entity's files from a profile revision.
    Render,
    /// By running an action once.
    Run,
    /// Without running anything: the action ran before this node joined, and is only reported as done.
    Acknowledge,
    /// A method that only newer servers know: an agent refuses the order and stays at the one it has.
    #[serde(skip_serializing)]
    #[schema(ignore)]
    Unknown,
}

impl From<String> for ApplyMethod {
    fn from(word: String) -> Self {
        match word.as_str() {
            "apply" => Self::Apply,
            "render" => Self::Render,
            "run" => Self::Run,
            "acknowledge" => Self::Acknowledge,
            _ => Self::Unknown,
        }
    }
}

impl From<core::ApplyMethod> for ApplyMethod {
    fn from(from: core::ApplyMethod) -> Self {
        match from {
            core::ApplyMethod::Apply => Self::Apply,
            core::ApplyMethod::Render => Self::Render,
            core::ApplyMethod::Run => Self::Run,
            core::ApplyMethod::Acknowledge => Self::Acknowledge,
        }
    }
}

impl TryFrom<ApplyMethod> for core::ApplyMethod {
    type Error = ShapeError;
    fn try_from(from: ApplyMethod) -> Result<Self, ShapeError> {
        match from {
            ApplyMethod::Apply => Ok(Self::Apply),
            ApplyMethod::Render => Ok(Self::Render),
            ApplyMethod::Run => Ok(Self::Run),
            ApplyMethod::Acknowledge => Ok(Self::Acknowledge),
            ApplyMethod::Unknown => Err(ShapeError::at("method", "this version does not know it")),
        }
    }
}

/// Everything one node is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Order {
    /// Grows with every change.
    pub generation: u64,
    /// The leadership that wrote it.
    pub term: u64,
    /// What each entity is to be at, by name.
    pub entities: BTreeMap<String, Assignment>,
    /// Why nothing new may start, if a person paused the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
}

/// A version a node was told to be at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Assignment {
    /// The version.
    pub version: String,
    /// Which telling this is.
    pub number: u64,
    /// How the node applies it; `apply` if absent.
    #[serde(default = "apply", skip_serializing_if = "is_apply")]
    pub method: ApplyMethod,
}

const fn apply() -> ApplyMethod {
    ApplyMethod::Apply
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_apply(method: &ApplyMethod) -> bool {
    *method == ApplyMethod::Apply
}

/// The answer to a hanging sync request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OrderPoll {
    /// The order, if it is newer than the one named in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The server knows no report of this node: send it whole.
    pub report_requested: bool,
    /// What the node's copy of the catalogue lacks, if the request named how far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<CatalogueUpdate>,
    /// The servers that may be called, if the request named the tag of those that the node knows and it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<LiveServers>,
}

impl From<&core::Order> for Order {
    fn from(from: &core::Order) -> Self {
        let entities = from.content.entities.iter();
        Self {
            generation: from.generation.get(),
            term: from.term.get(),
            entities: map_from(entities.map(|(name, assignment)| (name.to_string(), assignment.into()))),
            paused: from.content.paused.clone(),
        }
    }
}

impl TryFrom<Order> for core::Order {
    type Error = ShapeError;
    fn try_from(from: Order) -> Result<Self, ShapeError> {
        let entities = from.entities.into_iter().map(|(name, assignment)| {
            let at = |error: ShapeError| error.within(&format!("entities.{name}"));
            Ok((read("name", &name).map_err(at)?, assignment.try_into().map_err(at)?))
        });
        let entities = try_map_from(entities)?;
        Ok(Self {
            generation: Generation::new(from.generation),
            term: Term::new(from.term),
            content: core::OrderContent { entities, paused: from.paused },
        })
    }
}

impl From<&core::Assignment> for Assignment {
    fn from(from: &core::Assignment) -> Self {
        Self { version: from.version.to_string(), number: from.number.get(), method: from.method.into() }
    }
}

impl TryFrom<Assignment> for core::Assignment {
    type Error = ShapeError;
    fn try_from(from: Assignment) -> Result<Self, ShapeError> {
        let number = AssignmentNumber::new(from.number);
        Ok(Self { version: read("version", &from.version)?, number, method: from.method.try_into()? })
    }
}
