//! Everything that fails in a namespace: statuses, service instances, and nodes that do not report.

use bellwether_core::decide::ensembles::failing as core;
use bellwether_core::words::name::EnsembleName;
use serde::{Deserialize, Serialize};

use super::status::Status;

/// The failed and outdated statuses of a namespace, its failing service instances, what fails of its ensembles, and its unreachable nodes. A
/// missing report does not count as a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Failures {
    /// Statuses with state `failed`, ordered by node and category.
    pub failed: Vec<Failure>,
    /// Statuses that were not refreshed within their lifetime.
    pub silent: Vec<Failure>,
    /// Service instances with a failing check, ordered by node, service and instance. Those of drained and of
    /// unreachable nodes are not listed.
    #[serde(default)]
    pub services: Vec<FailingInstance>,
    /// Members and OSDs of ensembles that do not work, on nodes that are reachable, ordered by ensemble.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ensembles: Vec<FailingPart>,
    /// Unreachable nodes; their statuses are those of their last report.
    pub unreachable: Vec<Unreachable>,
    /// The store revision at which this was read.
    pub revision: u64,
}

/// One status that is failed or unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Failure {
    /// Node name.
    pub node: String,
    /// Status category.
    pub category: String,
    /// The status.
    pub status: Status,
}

/// A service instance with a failing check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FailingInstance {
    /// Service name.
    pub service: String,
    /// Name of the instance, unique among the instances of the service on its node.
    pub instance: String,
    /// Name of the node that registered it.
    pub node: String,
    /// Time since which it fails, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// The check and its output, one line.
    pub reason: String,
}

/// A member or an OSD of an ensemble that does not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FailingPart {
    /// Name of the ensemble.
    #[schema(example = "store")]
    pub ensemble: String,
    /// What it is: `member N` or `OSD N`, by its number in the ensemble.
    #[schema(example = "member 2")]
    pub part: String,
    /// Name of its node.
    pub node: String,
    /// Time since which it is as it is, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Why, as its node says it, one line.
    pub reason: String,
}

impl FailingPart {
    /// The shape of what does not work of an ensemble.
    #[must_use]
    pub fn of(ensemble: &EnsembleName, from: core::FailingPart) -> Self {
        let part = match from.part {
            core::EnsemblePart::Member(number) => format!("member {number}"),
            core::EnsemblePart::Osd(number) => format!("OSD {number}"),
        };
        Self {
            ensemble: ensemble.to_string(),
            part,
            node: from.node.to_string(),
            since_ms: from.since.as_millis(),
            reason: from.reason,
        }
    }
}

/// A node that does not report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Unreachable {
    /// Node name.
    pub node: String,
    /// Time since which it is unreachable, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}
