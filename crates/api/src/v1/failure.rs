//! Everything that fails in a namespace: statuses, service instances, and nodes that do not report.

use serde::{Deserialize, Serialize};

use super::status::Status;

/// The failed and outdated statuses of a namespace, its failing service instances and its unreachable nodes. A
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

/// A node that does not report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Unreachable {
    /// Node name.
    pub node: String,
    /// Time since which it is unreachable, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}
