//! Explanations of the state of an object.

use serde::{Deserialize, Serialize};

/// The explanation of the state of an object, the most important reason first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Why {
    /// The object, as `node/NAME`, `entity/NAME`, `service/NAME`, `slot/NAME` or `target/ENTITY/NAME`.
    pub subject: String,
    /// Whether anything waits, is refused or has failed.
    pub waiting: bool,
    /// The reasons, one per line.
    pub lines: Vec<String>,
}
