//! What failed across a namespace, and what nobody knows.

use serde::{Deserialize, Serialize};

use super::status::Status;

/// Every failed status of the nodes that count, and every silence. Silent is not failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Failures {
    /// Statuses that are failed, by node and category.
    pub failed: Vec<Failure>,
    /// Statuses that were not refreshed within their lifetime.
    pub silent: Vec<Failure>,
    /// Nodes that are unreachable: what is said of them was true when they were last heard from.
    pub unreachable: Vec<Unreachable>,
    /// The revision this is of.
    pub revision: u64,
}

/// One status that is not well, or not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Failure {
    /// Whose.
    pub node: String,
    /// In which category.
    pub category: String,
    /// What it says.
    pub status: Status,
}

/// A node that is silent as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Unreachable {
    /// Which.
    pub node: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub since_ms: u64,
}
