//! The snapshot that an ensemble is founded from: requests, orders, answers and what is stored of it.

use bellwether_core::records::ensemble_restore as core;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// The snapshot that an ensemble is founded from, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreSpec {
    /// Name of the node on which the snapshot is. The first member is on it.
    #[schema(example = "db-1")]
    pub node: String,
    /// Name of the snapshot, as the snapshots of its ensemble list it; its file has the same name. The ensemble may have been deleted since.
    #[schema(example = "store-19ab0c3d4e5-3-19ab0c3f000")]
    pub snapshot: String,
}

impl From<&core::RestoreSource> for RestoreSpec {
    fn from(from: &core::RestoreSource) -> Self {
        Self { node: from.node.to_string(), snapshot: from.snapshot.to_string() }
    }
}

impl TryFrom<RestoreSpec> for core::RestoreSource {
    type Error = ShapeError;
    fn try_from(from: RestoreSpec) -> Result<Self, ShapeError> {
        Ok(Self {
            node: read("restore.node", &from.node)?,
            snapshot: read("restore.snapshot", &from.snapshot)?,
        })
    }
}
