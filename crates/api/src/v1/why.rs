//! Why something is as it is.

use serde::{Deserialize, Serialize};

/// An answer to "why": lines for a person, the most telling first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Why {
    /// What was asked about, as `node/NAME`, `entity/NAME`, `service/NAME`, `slot/NAME` or `target/ENTITY/NAME`.
    pub subject: String,
    /// Whether anything waits, is refused or failed.
    pub waiting: bool,
    /// One reason a line.
    pub lines: Vec<String>,
}
