//! Lists: items, where the next page begins, and the revision of the world that was read.

use serde::{Deserialize, Serialize};

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Page<T> {
    /// The items, in order of their names or numbers.
    pub items: Vec<T>,
    /// Pass this as `after` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The store revision this was read at.
    pub revision: u64,
}
